package memtable

import (
	"bytes"
	"slices"

	"github.com/tablerock-db/tablerock/codec"
)

// IterOptions choose what an Iterator shows.
type IterOptions struct {
	// Lower and Upper bound the user keys to [Lower, Upper); nil is open. The
	// iterator keeps them.
	Lower, Upper []byte
	// Snapshot is the greatest sequence number that is seen.
	Snapshot uint64
	// AllVersions shows every version that the table holds, whatever Snapshot
	// is, newest first within a key. Such an iterator only goes forward.
	AllVersions bool
}

// Batches grow, so that a short scan copies little and a long one seldom
// searches.
const (
	firstBatch  = 32
	growBatch   = 4
	maxBatch    = 256
	maxExamined = 256 // rows looked at while a shard is locked
)

// Iterator goes through the rows of a Table in key order, each at its newest
// version with a sequence number of at most Snapshot, tombstones included.
// It copies a batch of rows at a time and holds no lock between its calls, so
// it may run beside Apply as long as Snapshot is among those that Apply's keep
// covers. It is for one goroutine.
type Iterator struct {
	t       *Table
	o       IterOptions
	reverse bool
	done    bool // nothing lies behind the batch

	batch []ref // in the direction of travel
	i     int   // the current one
	limit int   // length of the next batch

	// The partition being read; more says that it may have rows yet, the first
	// of them at from, or behind it when skip is set.
	part    place
	more    bool
	from    []byte
	skip    bool
	bounded bool // the bound in the direction of travel lies in the partition

	// While the shard is locked: whether and with which prefix rows are
	// compared with the bound, and how many were looked at.
	check    bool
	bound    uint64
	examined int

	// The partitions that come next, and where the directory goes on behind
	// them: at dirFrom, or behind it when dirSkip is set.
	queue   []place
	qi      int
	dirFrom []byte
	dirSkip bool

	takeRow   func(item) bool
	takePlace func(place) bool

	row  codec.Row
	key  []byte
	seek []byte
}

// ref is one version that the iterator shows.
type ref struct {
	trail  uint64
	off    uint32
	keyLen uint16
}

// NewIterator returns an iterator that is nowhere yet.
func (t *Table) NewIterator(o IterOptions) *Iterator {
	it := &Iterator{t: t, o: o, limit: firstBatch}
	it.takeRow, it.takePlace = it.addRow, it.addPlace
	return it
}

// SeekGE goes to the first row whose key is at least key.
func (it *Iterator) SeekGE(key []byte) bool {
	if it.o.Lower != nil && bytes.Compare(key, it.o.Lower) < 0 {
		key = it.o.Lower
	}
	it.start(false)
	if it.o.Upper != nil && bytes.Compare(key, it.o.Upper) >= 0 {
		return false
	}
	n := codec.PartitionLen(key)
	it.dirFrom, it.dirSkip = key, n > 0
	if n > 0 {
		it.dirFrom = key[:n:n]
		it.find(key)
	}
	return it.fill()
}

// SeekLT goes to the last row whose key is smaller than key, to the last row
// of all when key is nil.
func (it *Iterator) SeekLT(key []byte) bool {
	if it.o.AllVersions {
		panic("memtable: AllVersions goes forward only")
	}
	if it.o.Upper != nil && (key == nil || bytes.Compare(key, it.o.Upper) > 0) {
		key = it.o.Upper
	}
	it.start(true)
	if key != nil && it.o.Lower != nil && bytes.Compare(key, it.o.Lower) <= 0 {
		return false
	}
	it.dirFrom, it.dirSkip = key, true
	switch n := codec.PartitionLen(key); {
	case n > 0:
		it.dirFrom = key[:n:n]
		it.find(key)
	case codec.IsPartitionEnd(key):
		// The rows of that partition, if any, are the next ones below.
		it.seek = codec.AppendPartitionOfEnd(it.seek[:0], key)
		it.dirFrom = it.seek
		if it.find(it.seek) {
			it.from = nil
		}
	}
	return it.fill()
}

// Next goes to the next row.
func (it *Iterator) Next() bool {
	if !it.Valid() {
		return false
	}
	if it.reverse {
		it.seek = append(append(it.seek[:0], it.userKey()...), 0)
		return it.SeekGE(it.seek)
	}
	if it.i++; it.i < len(it.batch) {
		return true
	}
	return it.fill()
}

// Prev goes to the row before.
func (it *Iterator) Prev() bool {
	if !it.Valid() {
		return false
	}
	if !it.reverse {
		return it.SeekLT(it.userKey())
	}
	if it.i++; it.i < len(it.batch) {
		return true
	}
	return it.fill()
}

// Valid reports whether the iterator is at a row.
func (it *Iterator) Valid() bool { return it.i < len(it.batch) }

// Key returns the internal key of the current row, valid until the iterator
// moves.
func (it *Iterator) Key() []byte {
	r := &it.batch[it.i]
	it.key = append(it.key[:0], it.userKey()...)
	it.key = codec.AppendTrailer(it.key, r.trail>>8, codec.Kind(r.trail))
	return it.key
}

// Row returns the current row, nil for a tombstone, valid until the iterator
// moves. The bytes of its values are bytes of the image.
func (it *Iterator) Row() codec.ShapedRow {
	r := &it.batch[it.i]
	if codec.Kind(r.trail) != codec.KindPut {
		return nil
	}
	it.t.setRow(&it.row, r.off)
	return &it.row
}

// Err returns nil: nothing here can fail.
func (it *Iterator) Err() error { return nil }

// Close ends the use of the iterator.
func (it *Iterator) Close() error {
	it.batch, it.queue, it.i = nil, nil, 0
	return nil
}

func (it *Iterator) userKey() []byte {
	r := &it.batch[it.i]
	return it.t.image[r.off+codec.EntryHeaderLen:][:r.keyLen]
}

// start forgets where the iterator is.
func (it *Iterator) start(reverse bool) {
	it.reverse, it.done, it.more, it.skip = reverse, false, false, false
	it.batch, it.i, it.limit = it.batch[:0], 0, firstBatch
	it.queue, it.qi = it.queue[:0], 0
}

// find makes the partition of key, if the table has it, the one being read,
// from key on. A scan within one partition so never asks the directory.
func (it *Iterator) find(key []byte) bool {
	prefix := key[:codec.PartitionLen(key)]
	hash := codec.PartitionHash(prefix)
	s := it.t.shard(hash)
	s.mu.Lock()
	id, p := s.find(hash, prefix)
	var at place
	if p != nil {
		at = place{off: p.off, id: id*shardCount + uint32(hash%shardCount), keyLen: p.keyLen}
	}
	s.mu.Unlock()
	if p == nil {
		return false
	}
	it.enter(at)
	it.from, it.skip = key, it.reverse
	it.dirFrom = it.t.partitionKey(at)
	return true
}

// enter makes the partition at p the one being read, from its end on.
func (it *Iterator) enter(p place) {
	bound := it.o.Upper
	if it.reverse {
		bound = it.o.Lower
	}
	it.part, it.more, it.from, it.skip = p, true, nil, false
	it.bounded = bound != nil && bytes.HasPrefix(bound, it.t.partitionKey(p))
}

// fill reads the next batch and goes to its first row.
func (it *Iterator) fill() bool {
	it.batch, it.i = slices.Grow(it.batch[:0], it.limit), 0
	for len(it.batch) < it.limit && !it.done {
		if it.more {
			it.readRows()
			continue
		}
		if it.qi == len(it.queue) && (len(it.batch) > 0 || !it.readPlaces()) {
			break // what comes next may never be asked for
		}
		p := it.queue[it.qi]
		it.qi++
		if it.beyond(p) {
			it.done = true
			break
		}
		it.enter(p)
	}
	// The loads do not wait for each other, as those of the caller would.
	for i := range it.batch {
		r := &it.batch[i]
		r.keyLen = uint16(codec.EntryKeyLen(it.t.image[r.off:]))
	}
	it.limit = min(it.limit*growBatch, maxBatch)
	return len(it.batch) > 0
}

// beyond reports whether all rows of the partition at p lie beyond the bound.
func (it *Iterator) beyond(p place) bool {
	if it.reverse {
		lower := it.o.Lower
		if lower == nil {
			return false
		}
		key := it.t.partitionKey(p)
		return bytes.Compare(key, lower) < 0 && !bytes.HasPrefix(lower, key)
	}
	return it.o.Upper != nil && bytes.Compare(it.t.partitionKey(p), it.o.Upper) >= 0
}

// readRows copies rows of the current partition.
func (it *Iterator) readRows() {
	s := &it.t.shards[it.part.id%shardCount]
	it.more, it.examined = false, 0
	s.mu.Lock()
	p := s.parts.at(it.part.id / shardCount)
	if it.within(s, p) {
		if it.reverse {
			s.descend(p, it.from, it.takeRow)
		} else {
			s.ascend(p, it.from, it.takeRow)
		}
	}
	s.mu.Unlock()
}

// within reports whether rows of p can be within the bound, and prepares their
// comparison with it.
func (it *Iterator) within(s *shard, p *partition) bool {
	it.check = false
	if !it.bounded {
		return true
	}
	prefix, where := uint64(0), 0
	if it.reverse {
		prefix, where = s.prefixFor(p, it.o.Lower)
		where = -where
	} else {
		prefix, where = s.prefixFor(p, it.o.Upper)
	}
	it.check, it.bound = where == 0, prefix
	return where >= 0
}

// addRow takes one row of the current partition, whose shard is locked, and
// reports whether it wants more.
func (it *Iterator) addRow(x item) bool {
	if it.skip {
		it.skip = false
		if bytes.Equal(it.t.key(x.off), it.from) {
			return true
		}
	}
	if it.check && it.outside(x) {
		return false
	}
	s := &it.t.shards[it.part.id%shardCount]
	if it.o.AllVersions {
		it.addVersions(s, x)
	} else if v, ok := s.visible(x, it.o.Snapshot); ok {
		it.batch = append(it.batch, ref{trail: v.trail, off: v.off})
	}
	if it.examined++; it.examined < maxExamined && len(it.batch) < it.limit {
		return true
	}
	it.more, it.from, it.skip = true, it.t.key(x.off), true
	return false
}

// addVersions takes all versions of a row.
func (it *Iterator) addVersions(s *shard, x item) {
	it.batch = append(it.batch, ref{trail: x.trail, off: x.off})
	for i := x.prev; i != 0; {
		v := s.versions.at(i - 1)
		it.batch = append(it.batch, ref{trail: v.trail, off: v.off})
		i = v.prev
	}
}

// outside reports whether x is beyond the bound.
func (it *Iterator) outside(x item) bool {
	if it.reverse {
		if x.prefix != it.bound {
			return x.prefix < it.bound
		}
		return bytes.Compare(it.t.key(x.off), it.o.Lower) < 0
	}
	if x.prefix != it.bound {
		return x.prefix > it.bound
	}
	return bytes.Compare(it.t.key(x.off), it.o.Upper) >= 0
}

// readPlaces asks the directory which partitions come next and reports whether
// there are any.
func (it *Iterator) readPlaces() bool {
	it.queue, it.qi = it.queue[:0], 0
	if it.lastPartition() {
		it.done = true
		return false
	}
	if it.reverse {
		it.t.dir.descend(it.dirFrom, it.takePlace)
	} else {
		it.t.dir.ascend(it.dirFrom, it.takePlace)
	}
	if len(it.queue) == 0 {
		it.done = true
		return false
	}
	it.dirFrom, it.dirSkip = it.t.partitionKey(it.queue[len(it.queue)-1]), true
	return true
}

// lastPartition reports whether the bounds exclude every partition beyond
// dirFrom.
func (it *Iterator) lastPartition() bool {
	if it.reverse {
		return it.o.Lower != nil && it.dirFrom != nil && bytes.Compare(it.o.Lower, it.dirFrom) >= 0
	}
	if it.o.Upper == nil || !it.dirSkip {
		return false
	}
	n := len(it.dirFrom)
	return bytes.HasPrefix(it.o.Upper, it.dirFrom) ||
		len(it.o.Upper) == n && codec.IsPartitionEnd(it.o.Upper) && bytes.Equal(it.o.Upper[:n-1], it.dirFrom[:n-1])
}

// addPlace takes one partition, with the directory locked, and reports whether
// it wants more.
func (it *Iterator) addPlace(p place) bool {
	if it.dirSkip {
		it.dirSkip = false
		if bytes.Equal(it.t.partitionKey(p), it.dirFrom) {
			return true
		}
	}
	it.queue = append(it.queue, p)
	return len(it.queue) < it.limit
}
