package scan

import (
	"cmp"
	"iter"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/lsm"
	"github.com/tablerock-db/tablerock/internal/memtable"
	"github.com/tablerock-db/tablerock/internal/merge"
	"github.com/tablerock-db/tablerock/sstable"
)

// Sources are the sorted sources of a query. After reset, their memory is used again.
type Sources struct {
	mems  int // memtables added
	files []*lsm.Source
	all   []merge.Source

	usedMems  []*memtable.Iterator // mems of them are in use
	usedFiles []*lsm.Source        // those of files come first
}

// AddMemtable adds the rows of a memtable, which must be older than those added before and
// newer than those of files.
func (s *Sources) AddMemtable(t *memtable.Table, o memtable.IterOptions) {
	if s.mems == len(s.usedMems) {
		s.usedMems = append(s.usedMems, new(memtable.Iterator))
	}
	it := s.usedMems[s.mems]
	it.Init(t, o)
	s.mems++
	s.all = append(s.all, it)
}

// SetFiles adds the rows of the sstables of a version, once, after all memtables.
func (s *Sources) SetFiles(v *lsm.Version, o sstable.IterOptions) {
	s.files = v.Sources(s.usedFiles, o)
	if len(s.files) > len(s.usedFiles) {
		s.usedFiles = s.files
	}
	for _, f := range s.files {
		s.all = append(s.all, f)
	}
}

// reset removes all sources, which are closed.
func (s *Sources) reset() { s.mems, s.files, s.all = 0, nil, s.all[:0] }

// entries returns an iterator over the entries of data with keys in [lower, upper). It must be
// closed before data.
func entries(data Data, lower, upper []byte) *merge.Iterator {
	var s Sources
	data.AddSources(&s, lower, upper, nil)
	it := new(merge.Iterator)
	it.Init(s.all, merge.Options{})
	return it
}

// Rows returns the rows of a table in data, loaded. A row is valid until the next one. An
// error comes without a row and is the last pair.
func Rows(data Data, table uint32) iter.Seq2[edm.Row, error] {
	return func(yield func(edm.Row, error) bool) {
		lower, upper := codec.AppendTable(nil, table), codec.AppendTable(nil, table+1)
		it := entries(data, lower, upper)
		var err error
		for ok := it.SeekGE(lower); ok && err == nil; ok = it.Next() {
			row := it.Row()
			if row == nil {
				continue // a tombstone
			}
			if err = row.Load(); err == nil && !yield(row, nil) {
				_ = it.Close()
				return
			}
		}
		if err = cmp.Or(err, it.Err(), it.Close()); err != nil { // Close repeats Err
			yield(nil, err)
		}
	}
}

// HasFrom reports whether data has entries of a table with the given id or a later one.
func HasFrom(data Data, table uint32) (bool, error) {
	lower := codec.AppendTable(nil, table)
	it := entries(data, lower, nil)
	found := it.SeekGE(lower)
	return found, cmp.Or(it.Err(), it.Close())
}
