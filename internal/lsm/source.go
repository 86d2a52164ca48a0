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

// runSource shows the parts of a run one after the other. An iterator of a part
// is opened when the walk gets there.
type runSource struct {
	parts []*part
	older []*run // the runs below
	o     IterOptions
	i     int // the part that it reads
	it    *sstable.Iterator
	err   error
}

// open moves to part i and reports whether there is one.
func (s *runSource) open(i int) bool {
	if s.it != nil && s.i == i {
		return true
	}
	s.release()
	if s.err != nil || i < 0 || i >= len(s.parts) {
		return false
	}
	s.i = i
	p := s.parts[i]
	o := p.bounds(s.o)
	if o.Prune != nil && overlapsAny(s.older, p) {
		o.Prune = nil
	}
	s.it = p.reader.NewIterator(o)
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

// forward takes over a move that led to an entry or to the end of a part, and
// goes on into the next parts.
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
	i := sort.Search(len(s.parts), func(i int) bool { return bytes.Compare(s.parts[i].hi, key) >= 0 })
	return s.open(i) && s.forward(s.it.SeekGE(key))
}

// SeekLT moves to the last entry whose user key is < key; nil is the end.
func (s *runSource) SeekLT(key []byte) bool {
	s.err = nil
	i := len(s.parts)
	if key != nil {
		i = sort.Search(i, func(i int) bool { return bytes.Compare(s.parts[i].lo, key) >= 0 })
	}
	return s.open(i-1) && s.backward(s.it.SeekLT(key))
}

// Next moves to the next entry.
func (s *runSource) Next() bool { return s.Valid() && s.forward(s.it.Next()) }

// Prev moves to the previous entry.
func (s *runSource) Prev() bool { return s.Valid() && s.backward(s.it.Prev()) }

// Valid reports whether it stands at an entry.
func (s *runSource) Valid() bool { return s.err == nil && s.it != nil && s.it.Valid() }

// Key returns the internal key.
func (s *runSource) Key() []byte { return s.it.Key() }

// Row returns the row, nil for a tombstone.
func (s *runSource) Row() codec.ShapedRow { return s.it.Row() }

// Err returns the first error since the last Seek, that of a value of the
// present row included.
func (s *runSource) Err() error {
	if s.err == nil && s.it != nil {
		return s.it.Err()
	}
	return s.err
}

// Close releases what is open.
func (s *runSource) Close() error {
	s.err = nil
	s.release()
	return s.err
}

// counted is the input of a merge: it tallies each entry that the merge leaves
// behind.
type counted struct {
	merge.Source
	in *fingerprint
}

// Next moves to the next entry.
func (c *counted) Next() bool {
	c.in.add(c.Source.Key())
	return c.Source.Next()
}

// countedRun is counted for a run's files: a file that was read from its first
// to its last entry must have held as many as the manifest says.
type countedRun struct {
	*runSource
	in *fingerprint
	n  uint64 // entries of the part that were left behind
}

// Next moves to the next entry.
func (c *countedRun) Next() bool {
	c.in.add(c.Key())
	c.n++
	at := c.i
	ok := c.runSource.Next()
	if c.i != at || !ok {
		c.endPart(at)
	}
	return ok && c.err == nil
}

// Valid reports whether it stands at an entry.
func (c *countedRun) Valid() bool { return c.err == nil && c.runSource.Valid() }

func (c *countedRun) endPart(at int) {
	p := c.parts[at]
	n := c.n
	c.n = 0
	if c.err == nil && !p.clipped && p.inside(c.o.Lower, c.o.Upper) && n != p.meta.Entries {
		c.err = corrupt.Newf(filename.Make(filename.SSTable, p.number), 0, "holds %d entries, the manifest says %d", n, p.meta.Entries)
	}
}
