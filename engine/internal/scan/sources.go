package scan

import (
	"github.com/tablerock-db/tablerock/internal/lsm"
	"github.com/tablerock-db/tablerock/internal/memtable"
	"github.com/tablerock-db/tablerock/internal/merge"
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
func (s *Sources) SetFiles(v *lsm.Version, o lsm.IterOptions) {
	s.files = v.Sources(s.usedFiles, o)
	if len(s.files) > len(s.usedFiles) {
		s.usedFiles = s.files
	}
	s.all = lsm.AppendSources(s.all, s.files)
}

// reset removes all sources, which are closed.
func (s *Sources) reset() { s.mems, s.files, s.all = 0, nil, s.all[:0] }

// Entries returns an iterator over the entries of data with keys in [lower, upper). Close it
// before data.
func Entries(data Data, lower, upper []byte) *merge.Iterator {
	var s Sources
	data.AddSources(&s, lower, upper, nil)
	it := new(merge.Iterator)
	it.Init(s.all, merge.Options{})
	return it
}
