package lsm

import (
	"bytes"
	"sort"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/fingerprint"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/runs"
	"github.com/tablerock-db/tablerock/internal/merge"
	"github.com/tablerock-db/tablerock/sstable"
)

// Source returns the entries of sstables that do not overlap, of one or several runs.
// It opens the iterator of an sstable when it gets to the sstable. It belongs to one goroutine, and
// its Version must be pinned until Close.
//
// It has two positions, which do not depend on each other: an entry, as a merge.Source,
// and a span of keys. SpanIterator moves the first one to the sstable of the second.
type Source struct {
	ssts []*runs.SST // sorted by key
	o    sstable.IterOptions
	i    int               // index of the current sstable
	it   *sstable.Iterator // iter, nil if no sstable is open
	iter sstable.Iterator
	err  error

	spanned bool // span is set
	span    sstable.Span
	spanSST int    // index of the sstable of span
	end     []byte // of the keys of that sstable
}

// open moves to sstable i and reports whether there is one.
func (s *Source) open(i int) bool {
	if s.it != nil && s.i == i {
		return true
	}
	s.release()
	if s.err != nil || i < 0 || i >= len(s.ssts) {
		return false
	}
	s.i = i
	sst := s.ssts[i]
	r, err := sst.Reader()
	if err != nil {
		s.err = err
		return false
	}
	s.iter.Init(r, sst.Bounds(s.o))
	s.it = &s.iter
	return true
}

func (s *Source) release() {
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
func (s *Source) forward(ok bool) bool {
	for !ok {
		if s.failed() || !s.open(s.i+1) {
			return false
		}
		ok = s.it.SeekGE(nil)
	}
	return true
}

func (s *Source) backward(ok bool) bool {
	for !ok {
		if s.failed() || !s.open(s.i-1) {
			return false
		}
		ok = s.it.SeekLT(nil)
	}
	return true
}

func (s *Source) failed() bool {
	if err := s.it.Err(); err != nil {
		s.err = err
	}
	return s.err != nil
}

// SeekGE moves to the first entry whose user key is >= key.
func (s *Source) SeekGE(key []byte) bool {
	s.err = nil
	i := sort.Search(len(s.ssts), func(i int) bool { return bytes.Compare(s.ssts[i].Hi, key) >= 0 })
	return s.open(i) && s.forward(s.it.SeekGE(key))
}

// SeekLT moves to the last entry whose user key is < key; nil is the end.
func (s *Source) SeekLT(key []byte) bool {
	s.err = nil
	i := len(s.ssts)
	if key != nil {
		i = sort.Search(i, func(i int) bool { return bytes.Compare(s.ssts[i].Lo, key) >= 0 })
	}
	return s.open(i-1) && s.backward(s.it.SeekLT(key))
}

// Next moves to the next entry.
func (s *Source) Next() bool { return s.Valid() && s.forward(s.it.Next()) }

// Prev moves to the previous entry.
func (s *Source) Prev() bool { return s.Valid() && s.backward(s.it.Prev()) }

// Valid reports whether the source is at an entry.
func (s *Source) Valid() bool { return s.err == nil && s.it != nil && s.it.Valid() }

// Key returns the internal key.
func (s *Source) Key() []byte { return s.it.Key() }

// Row returns the row, nil for a tombstone.
func (s *Source) Row() codec.ShapedRow { return s.it.Row() }

// Ahead implements merge.Ahead.
func (s *Source) Ahead(key []byte, reverse bool) int { return s.it.Ahead(key, reverse) }

// Err returns the first error since the last Seek, including an error of a value of
// the current row.
func (s *Source) Err() error {
	if s.err == nil && s.it != nil {
		return s.it.Err()
	}
	return s.err
}

// Close closes the current iterator. Version.Sources may use the memory of s again.
func (s *Source) Close() error {
	s.err = nil
	s.release()
	err := s.err
	s.ssts, s.o, s.err, s.spanned, s.span, s.spanSST = nil, sstable.IterOptions{}, nil, false, sstable.Span{}, 0
	return err
}

// counted is an input of a flush. It adds each entry to the fingerprint in when it
// moves past the entry.
type counted struct {
	merge.Source
	in *fingerprint.Fingerprint
}

// Next moves to the next entry.
func (c *counted) Next() bool {
	c.in.Add(c.Source.Key())
	return c.Source.Next()
}

// countedRun is an input of a compaction. Like counted, it computes the fingerprint. It also
// counts tombstones, and compares the number of entries of each file that it read completely with
// the manifest.
type countedRun struct {
	*Source
	in         *fingerprint.Fingerprint
	tombstones map[*runs.SST]uint64 // that it moved past
	n          uint64               // entries of the current sstable that it moved past
}

// Next moves to the next entry.
func (c *countedRun) Next() bool {
	key := c.Key()
	c.in.Add(key)
	c.n++
	at := c.i
	if _, _, kind := codec.SplitTrailer(key); kind == codec.KindDelete {
		c.tombstones[c.ssts[at]]++
	}
	ok := c.Source.Next()
	if c.i != at || !ok {
		c.endSST(at)
	}
	return ok && c.err == nil
}

// Valid reports whether the source is at an entry.
func (c *countedRun) Valid() bool { return c.err == nil && c.Source.Valid() }

func (c *countedRun) endSST(at int) {
	sst := c.ssts[at]
	n := c.n
	c.n = 0
	if c.err == nil && !sst.Clipped && sst.Inside(c.o.Lower, c.o.Upper) && n != sst.Meta.Entries {
		c.err = corrupt.Newf(filename.Make(filename.SSTable, sst.Number), 0, "holds %d entries, the manifest says %d", n, sst.Meta.Entries)
	}
}
