package lsm

import (
	"bytes"
	"sort"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/merge"
	"github.com/tablerock-db/tablerock/sstable"
)

// runSource returns the entries of sstables that do not overlap, of one or several runs.
// It opens the iterator of an sstable when it gets to the sstable.
type runSource struct {
	version *Version      // nil for a compaction, which does not prune
	ssts    []*virtualSST // sorted by key
	o       IterOptions
	i       int // index of the current sstable
	it      *sstable.Iterator
	err     error
}

// open moves to sstable i and reports whether there is one.
func (s *runSource) open(i int) bool {
	if s.it != nil && s.i == i {
		return true
	}
	s.release()
	if s.err != nil || i < 0 || i >= len(s.ssts) {
		return false
	}
	s.i = i
	sst := s.ssts[i]
	o := sst.bounds(s.o)
	if o.Prune != nil && s.version.overlapsOlder(sst) {
		o.Prune = nil
	}
	s.it = sst.reader.NewIterator(o)
	return true
}

func (s *runSource) release() {
	if s.it == nil {
		return
	}
	if err := s.it.Close(); err != nil && s.err == nil {
		s.err = err
	}
	s.it = nil
}

// forward completes a move forward: if ok is false, at the end of an sstable, it moves
// to the first entry of the next sstables.
func (s *runSource) forward(ok bool) bool {
	for !ok {
		if s.failed() || !s.open(s.i+1) {
			return false
		}
		ok = s.it.SeekGE(nil)
	}
	return true
}

func (s *runSource) backward(ok bool) bool {
	for !ok {
		if s.failed() || !s.open(s.i-1) {
			return false
		}
		ok = s.it.SeekLT(nil)
	}
	return true
}

func (s *runSource) failed() bool {
	if err := s.it.Err(); err != nil {
		s.err = err
	}
	return s.err != nil
}

// SeekGE moves to the first entry whose user key is >= key.
func (s *runSource) SeekGE(key []byte) bool {
	s.err = nil
	i := sort.Search(len(s.ssts), func(i int) bool { return bytes.Compare(s.ssts[i].hi, key) >= 0 })
	return s.open(i) && s.forward(s.it.SeekGE(key))
}

// SeekLT moves to the last entry whose user key is < key; nil is the end.
func (s *runSource) SeekLT(key []byte) bool {
	s.err = nil
	i := len(s.ssts)
	if key != nil {
		i = sort.Search(i, func(i int) bool { return bytes.Compare(s.ssts[i].lo, key) >= 0 })
	}
	return s.open(i-1) && s.backward(s.it.SeekLT(key))
}

// Next moves to the next entry.
func (s *runSource) Next() bool { return s.Valid() && s.forward(s.it.Next()) }

// Prev moves to the previous entry.
func (s *runSource) Prev() bool { return s.Valid() && s.backward(s.it.Prev()) }

// Valid reports whether the source is at an entry.
func (s *runSource) Valid() bool { return s.err == nil && s.it != nil && s.it.Valid() }

// Key returns the internal key.
func (s *runSource) Key() []byte { return s.it.Key() }

// Row returns the row, nil for a tombstone.
func (s *runSource) Row() codec.ShapedRow { return s.it.Row() }

// Err returns the first error since the last Seek, including an error of a value of
// the current row.
func (s *runSource) Err() error {
	if s.err == nil && s.it != nil {
		return s.it.Err()
	}
	return s.err
}

// Close closes the current iterator.
func (s *runSource) Close() error {
	s.err = nil
	s.release()
	return s.err
}

// counted is an input of a flush. It adds each entry to the fingerprint in when it
// moves past the entry.
type counted struct {
	merge.Source
	in *fingerprint
}

// Next moves to the next entry.
func (c *counted) Next() bool {
	c.in.add(c.Source.Key())
	return c.Source.Next()
}

// countedRun is an input of a compaction. Like counted, it computes the fingerprint.
// It also compares the number of entries of each file that it read completely with
// the manifest.
type countedRun struct {
	*runSource
	in *fingerprint
	n  uint64 // entries of the current sstable that it moved past
}

// Next moves to the next entry.
func (c *countedRun) Next() bool {
	c.in.add(c.Key())
	c.n++
	at := c.i
	ok := c.runSource.Next()
	if c.i != at || !ok {
		c.endSST(at)
	}
	return ok && c.err == nil
}

// Valid reports whether the source is at an entry.
func (c *countedRun) Valid() bool { return c.err == nil && c.runSource.Valid() }

func (c *countedRun) endSST(at int) {
	sst := c.ssts[at]
	n := c.n
	c.n = 0
	if c.err == nil && !sst.clipped && sst.inside(c.o.Lower, c.o.Upper) && n != sst.meta.Entries {
		c.err = corrupt.Newf(filename.Make(filename.SSTable, sst.number), 0, "holds %d entries, the manifest says %d", n, sst.meta.Entries)
	}
}
