// Package keyrange estimates how many bytes are in ranges of keys, and picks the ranges
// that are worth a compaction.
package keyrange

import (
	"bytes"
	"sort"
)

// Range is the range of keys from the start of a file of the bottom to the
// start of the next file.
type Range struct {
	Start  []byte
	Bottom int64 // bytes of the bottom
	Above  int64 // estimated bytes of the tiers above
	// Garbage estimates how many bytes of obsolete versions the range contains.
	Garbage int64
	// Consumed estimates the bytes that compactions have consumed in the file of the bottom. They
	// take space until the rest of the file is compacted too.
	Consumed int64
	Entries  uint64 // of the bottom

	tombstones float64 // estimated, see AddTombstones
}

// entriesPerTombstone is the number of entries of the bottom that are worth rewriting for
// each tombstone.
const entriesPerTombstone = 4

// mostlyDeleted reports whether the range is worth a compaction for its tombstones.
func (r *Range) mostlyDeleted() bool {
	return r.tombstones > 0 && r.tombstones*entriesPerTombstone >= float64(r.Entries)
}

// live estimates the bytes without garbage.
func (r *Range) live() int64 { return r.Bottom + r.Above - r.Garbage }

// freed estimates the bytes that a compaction of the range frees.
func (r *Range) freed() int64 { return r.Garbage + r.Consumed }

// mostlyGarbage reports whether half of the range may be garbage.
func (r *Range) mostlyGarbage() bool { return r.Garbage > 0 && r.Garbage >= r.live() }

// Ranges partition the keys where the files of the bottom start. The first
// range starts at the least key, whatever its start says.
type Ranges []Range

// Find returns the index of the range that contains key.
func (rs Ranges) Find(key []byte) int {
	return sort.Search(len(rs)-1, func(i int) bool { return bytes.Compare(rs[i+1].Start, key) > 0 })
}

// Bounds returns the bounds of ranges [i, j).
func (rs Ranges) Bounds(i, j int) (lower, upper []byte) {
	if i > 0 {
		lower = rs[i].Start
	}
	if j < len(rs) {
		upper = rs[j].Start
	}
	return lower, upper
}

// Live estimates the bytes of all ranges without garbage.
func (rs Ranges) Live() (n int64) {
	for i := range rs {
		n += rs[i].live()
	}
	return n
}

// AddTombstones adds a file from key lo to key hi with n tombstones that are worth a
// compaction. They hide as large a share of the entries in each range.
func (rs Ranges) AddTombstones(lo, hi []byte, n uint64) {
	rs = rs[rs.Find(lo) : rs.Find(hi)+1]
	entries := uint64(0)
	for i := range rs {
		entries += rs[i].Entries
	}
	for i := range rs {
		share := 1.0
		if entries > 0 {
			share = float64(rs[i].Entries) / float64(entries)
		}
		rs[i].tombstones += share * float64(n)
	}
}

// MostlyDeleted returns the first range that is worth a compaction for its tombstones, -1 for
// none.
func (rs Ranges) MostlyDeleted() int {
	for i := range rs {
		if rs[i].mostlyDeleted() {
			return i
		}
	}
	return -1
}

// Pick returns the range to compact, -1 for none: the first that is mostly
// garbage, searched from first on and around. If space is short, a third of
// garbage is enough, with what was consumed, and if no range has that much, it
// returns the range with the largest share.
func (rs Ranges) Pick(first int, spaceShort bool) int {
	n, best := len(rs), -1
	for j := range n {
		i := (first + j) % n
		r := &rs[i]
		if r.mostlyGarbage() || spaceShort && r.freed() > 0 && r.freed() >= r.live()/2 {
			return i
		}
		// Compare freed/live without dividing.
		if spaceShort && r.freed() > 0 &&
			(best < 0 || float64(r.freed())*float64(rs[best].live()) > float64(rs[best].freed())*float64(r.live())) {
			best = i
		}
	}
	return best
}

// PickEnd returns the end of the ranges to compact together with range i: the
// following ranges that are mostly garbage, and others as long as the output
// would be a small file.
func (rs Ranges) PickEnd(i int, fileBytes int64) (end int) {
	bottom, total := rs[i].Bottom, rs[i].Bottom+rs[i].Above
	for end = i + 1; end < len(rs); end++ {
		r := &rs[end]
		if !r.mostlyGarbage() && bottom >= fileBytes/2 {
			break
		}
		bottom += r.Bottom
		total += r.Bottom + r.Above
		if total > 2*fileBytes {
			break
		}
	}
	return end
}
