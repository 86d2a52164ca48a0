// Package manifest reads and writes the list of a database's live sstables and log
// segments, with the counters that must never decrease. The list is one small file
// that each change replaces by a rename.
package manifest

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"

	"github.com/tablerock-db/tablerock/internal/feature"
)

// BottomTier is the last tier: no file has older entries.
const BottomTier uint32 = math.MaxUint32

// Manifest lists the live files of a database.
type Manifest struct {
	Version   uint32 // of the format; Write accepts 0 for the current one
	DBID      [16]byte
	NextFile  uint64 // greater than the number of every log and file so far
	HighWater uint64 // ticks; no timestamp in Files or lost with unsynced logs is greater
	LastSeq   uint64 // Files hold exactly the writes up to here; logs hold the rest
	// Required and Optional are the feature words; see package feature. Changes keep
	// them and Extensions.
	Required, Optional uint64
	// Epoch counts the histories of the database: a restore or a new owner raises it.
	Epoch uint64
	// Extensions is the extension area; immutable. ReservedSeq reads one of its records.
	Extensions []byte
	Logs       []Log  // in order of number
	Files      []File // in the order of Sort
}

// Log is a live segment of the write-ahead log.
type Log struct {
	Number uint64
	Sealed int64 // exact end of its records, 0 if the log is open
	// Proven is the minimum end of an open log: its records up to there were
	// durable when the manifest was written. 0 if unknown or sealed.
	Proven int64
}

// File is a live sstable, or a range of one (a virtual sstable). Logs and files get
// their numbers from one counter.
type File struct {
	Number     uint64
	Size       int64
	Tier       uint32 // 0 for flushed files, BottomTier for the last tier
	Run        uint64 // equal for the files of one run; greater is newer
	Smallest   []byte // internal keys, inclusive; immutable
	Largest    []byte
	MinSeq     uint64
	MaxSeq     uint64
	Entries    uint64 // including tombstones
	Tombstones uint64
	Hash       uint64 // of the whole file
	// NewKeys estimates the share of the entries that are the newest version of a key in the
	// file, and whose keys no older run contained when it was written, of AllNewKeys. Other
	// versions were kept for snapshots. It is 0 if unknown.
	NewKeys uint32
	// Stamp is the Timestamp of all entries of a loaded file, in ticks, and MinSeq, which is
	// MaxSeq, their sequence number: the file was written before either was known, so
	// readers ignore what it says. It is 0 for any other file.
	Stamp uint64
	// Origin is the id of the database that wrote the file. The checksums of the file
	// depend on it.
	Origin [16]byte
	// Extensions is the extension area; immutable.
	Extensions []byte
}

// Format returns the name of the format of the database, which follows from the version
// of its manifest. docs/format.md says what each name means.
func (m *Manifest) Format() string {
	return formats[min(m.Version, version)]
}

// Clone returns a copy. It shares the bytes of keys, which are immutable.
func (m *Manifest) Clone() *Manifest {
	c := *m
	c.Logs = slices.Clone(m.Logs)
	c.Files = slices.Clone(m.Files)
	return &c
}

// SkipNumbers raises NextFile by a random number. Call it for a copy of a database: the copy and
// its source have one id, and their later files must not have the same numbers. Else a file of
// one could pass for one of the other, if a file system shows the bytes of removed files after a
// power cut.
func (m *Manifest) SkipNumbers(random io.Reader) error {
	var b [4]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return fmt.Errorf("draw the next number: %w", err)
	}
	if next := m.NextFile + uint64(binary.LittleEndian.Uint32(b[:])); next <= maxNext {
		m.NextFile = next
	}
	return nil
}

// Same reports whether m and o list the same, except for NextFile.
func (m *Manifest) Same(o *Manifest) bool {
	return m.DBID == o.DBID && m.HighWater == o.HighWater && m.LastSeq == o.LastSeq &&
		slices.Equal(m.Logs, o.Logs) &&
		slices.EqualFunc(m.Files, o.Files, func(f, g File) bool {
			return f.Number == g.Number && f.Tier == g.Tier && f.Run == g.Run &&
				string(f.Smallest) == string(g.Smallest) && string(f.Largest) == string(g.Largest)
		})
}

// Sort brings logs and files into the order of the encoding: logs by number; files
// by tier, in a tier by run, newest first, in a run by key. The bottom tier counts as
// one run.
func (m *Manifest) Sort() {
	slices.SortFunc(m.Logs, func(a, b Log) int { return cmp.Compare(a.Number, b.Number) })
	slices.SortFunc(m.Files, func(a, b File) int { return compareFiles(&a, &b) })
}

func compareFiles(a, b *File) int {
	if c := cmp.Compare(a.Tier, b.Tier); c != 0 {
		return c
	}
	if c := cmp.Compare(b.Run, a.Run); c != 0 && a.Tier != BottomTier {
		return c
	}
	if c := bytes.Compare(a.Smallest, b.Smallest); c != 0 {
		return c
	}
	return cmp.Compare(a.Number, b.Number)
}

// check verifies the invariants of a manifest.
func (m *Manifest) check() error {
	if len(m.Logs) > maxLogs || len(m.Files) > maxFiles {
		return fmt.Errorf("%d logs and %d files, at most %d and %d", len(m.Logs), len(m.Files), maxLogs, maxFiles)
	}
	if len(m.Extensions) > maxExtensions {
		return fmt.Errorf("extension area of %d bytes, at most %d", len(m.Extensions), maxExtensions)
	}
	if err := feature.Check(m.Extensions, m.Required, knownFeatures); err != nil {
		return err
	}
	if m.LastSeq > maxSeq {
		return fmt.Errorf("last sequence is %d, at most %d", m.LastSeq, uint64(maxSeq))
	}
	if seq := m.ReservedSeq(); seq > maxSeq {
		return fmt.Errorf("reserved sequence is %d, at most %d", seq, uint64(maxSeq))
	}
	if m.NextFile > maxNext {
		return fmt.Errorf("next number is %d, at most %d", m.NextFile, uint64(maxNext))
	}
	for i, l := range m.Logs {
		if l.Sealed < 0 || l.Sealed > maxEnd || l.Proven < 0 || l.Proven > maxEnd {
			return fmt.Errorf("log %d is sealed at %d and proven to %d", l.Number, l.Sealed, l.Proven)
		}
		if l.Sealed > 0 && l.Proven > 0 {
			return fmt.Errorf("log %d is both sealed at %d and proven to %d", l.Number, l.Sealed, l.Proven)
		}
		if i > 0 && l.Number <= m.Logs[i-1].Number {
			return fmt.Errorf("log %d is listed after log %d", l.Number, m.Logs[i-1].Number)
		}
	}
	for i := range m.Files {
		f := &m.Files[i]
		if err := f.check(m); err != nil {
			return fmt.Errorf("file %d: %w", f.Number, err)
		}
		if i > 0 {
			if err := f.checkAfter(&m.Files[i-1]); err != nil {
				return err
			}
		}
	}
	return m.checkNumbers()
}

// checkNumbers verifies that no two logs or files have one number. Virtual sstables
// of one file share its number: the file is listed once for each live range.
func (m *Manifest) checkNumbers() error {
	used := make(map[uint64]*File, len(m.Logs)+len(m.Files))
	for _, l := range m.Logs {
		if l.Number == 0 || l.Number >= m.NextFile {
			return fmt.Errorf("number %d, want 1 to %d", l.Number, m.NextFile-1)
		}
		used[l.Number] = nil
	}
	for i := range m.Files {
		f := &m.Files[i]
		if f.Number == 0 || f.Number >= m.NextFile {
			return fmt.Errorf("number %d, want 1 to %d", f.Number, m.NextFile-1)
		}
		if first, ok := used[f.Number]; ok && (first == nil || !first.sameFile(f)) {
			return fmt.Errorf("number %d is used twice", f.Number)
		}
		used[f.Number] = f
	}
	return nil
}

// sameFile reports whether f and g can be two virtual sstables of one file.
func (f *File) sameFile(g *File) bool {
	a, b := *f, *g
	a.Smallest, a.Largest, a.Tier, a.Run = nil, nil, 0, 0
	b.Smallest, b.Largest, b.Tier, b.Run = nil, nil, 0, 0
	return reflect.DeepEqual(a, b)
}

// check verifies the invariants of one file of m.
func (f *File) check(m *Manifest) error {
	switch {
	case f.Tier > maxTier && f.Tier != BottomTier:
		return fmt.Errorf("tier %d, at most %d", f.Tier, maxTier)
	case f.Size <= 0:
		return fmt.Errorf("size is %d", f.Size)
	case len(f.Smallest) <= trailerLen || len(f.Smallest) > maxKey || len(f.Largest) <= trailerLen || len(f.Largest) > maxKey:
		return fmt.Errorf("bounds of %d and %d bytes, want %d to %d", len(f.Smallest), len(f.Largest), trailerLen+1, maxKey)
	case bytes.Compare(f.Smallest, f.Largest) > 0:
		return fmt.Errorf("smallest key %x is above the largest, %x", f.Smallest, f.Largest)
	case f.MinSeq > f.MaxSeq || f.MaxSeq > m.LastSeq:
		return fmt.Errorf("sequences %d to %d, the last is %d", f.MinSeq, f.MaxSeq, m.LastSeq)
	case f.Entries == 0 || f.Tombstones > f.Entries:
		return fmt.Errorf("%d entries with %d tombstones", f.Entries, f.Tombstones)
	case f.Stamp > m.HighWater || f.Stamp > 0 && (f.MinSeq != f.MaxSeq || f.Tombstones > 0):
		return fmt.Errorf("loaded with the timestamp %d, sequences %d to %d and %d tombstones", f.Stamp, f.MinSeq, f.MaxSeq, f.Tombstones)
	case f.NewKeys > AllNewKeys:
		return fmt.Errorf("share of new keys is %d, at most %d", f.NewKeys, AllNewKeys)
	case len(f.Extensions) > maxFileExtensions:
		return fmt.Errorf("extension area of %d bytes, at most %d", len(f.Extensions), maxFileExtensions)
	}
	return feature.Check(f.Extensions, 0, knownFeatures)
}

// checkAfter verifies that f may follow prev. All versions of a key are in one file
// of a run, so it compares bounds without their trailers.
func (f *File) checkAfter(prev *File) error {
	if compareFiles(prev, f) >= 0 {
		return fmt.Errorf("file %d is listed after file %d", f.Number, prev.Number)
	}
	sameRun := f.Tier == prev.Tier && (f.Run == prev.Run || f.Tier == BottomTier)
	if sameRun && bytes.Compare(userKey(prev.Largest), userKey(f.Smallest)) >= 0 {
		return fmt.Errorf("files %d and %d of run %d overlap", prev.Number, f.Number, f.Run)
	}
	return nil
}

func userKey(internal []byte) []byte { return internal[:len(internal)-trailerLen] }
