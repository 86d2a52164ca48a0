package columnchunk

import (
	"github.com/cespare/xxhash/v2"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/sstable/internal/rowgroup"
)

// MaxColumns limits the columns of a Set, whose chunks are copied.
const MaxColumns = 8

// minAdded is how many groups a Set adds at least to a chunk that it does not complete.
const minAdded = Groups / 4

// File is a file whose chunks a cache keeps.
type File struct {
	Cache      *cache.Cache
	DB, Number uint64 // of cache.Key
	Kind       uint8
	Count      int // groups of the file
}

// Set is the chunks of the columns that an iterator selects by, for some consecutive groups.
// They have the groups whose heads were read for a filter before. What they lack is added from
// the heads that the iterator reads. The zero Set has no chunks. A Set is not safe for concurrent
// use.
//
// Without chunks, filters that match 1 % of a million cached entities need 30 to 150 % more CPU,
// and an equality that matches none two to five times as much (bench, Query/runs=1/filter).
type Set struct {
	file    File
	open    bool
	first   int // group
	list    []cached
	columns []Column // of one group
}

// cached is the column of one property.
type cached struct {
	name    string
	pin     cache.Handle
	chunk   chunk // nil if the cache does not have it
	builder builder
	began   bool // builder has the groups of chunk, and what was added
}

// key returns the key of a chunk in the cache. Two chunks may have the same key: a chunk says
// which one it is.
func (s *Set) key(name string) cache.Key {
	at := xxhash.Sum64String(name) ^ uint64(s.first)
	return cache.Key{DB: s.file.DB, File: s.file.Number, Offset: at, Kind: s.file.Kind}
}

// Opened reports whether Open was called for the chunks of group g.
func (s *Set) Opened(g int) bool { return s.open && g-g%Groups == s.first }

// Open closes s and pins the chunks of group g that the cache has.
func (s *Set) Open(f File, g int, names []string) {
	s.Close()
	first := g - g%Groups
	if cap(s.list) < len(names) {
		s.list, s.columns = make([]cached, len(names)), make([]Column, len(names))
	}
	s.file, s.open, s.first, s.list, s.columns = f, true, first, s.list[:len(names)], s.columns[:len(names)]
	for i, name := range names {
		k := &s.list[i]
		k.name = name
		pin, ok := f.Cache.Get(s.key(name))
		if ok && chunk(pin.Bytes()).is(first, name) {
			k.pin, k.chunk = pin, pin.Bytes()
		} else {
			pin.Release()
		}
	}
}

// Close puts chunks with new groups into the cache, and releases all.
func (s *Set) Close() {
	if !s.open {
		return
	}
	for i := range s.list {
		k := &s.list[i]
		whole := min(Groups, s.file.Count-s.first)
		if k.began && (k.builder.added() >= minAdded || k.builder.complete(whole)) {
			s.keep(k)
		}
		k.pin.Release()
		k.pin, k.chunk, k.began = cache.Handle{}, nil, false
	}
	s.open, s.file = false, File{}
}

// keep puts the chunk of the builder of k into the cache. Groups that another iterator added
// meanwhile are lost.
func (s *Set) keep(k *cached) {
	b := k.builder.chunk()
	if k.chunk != nil {
		if pin, ok := s.file.Cache.Renew(k.pin, len(b)); ok {
			copy(pin.Bytes(), b)
			pin.Replace(k.pin, nil, 0)
			pin.Release()
		}
		return
	}
	pin, loaded, ok := s.file.Cache.AcquireKept(s.key(k.name), len(b), cache.Apart)
	if ok && !loaded {
		copy(pin.Bytes(), b)
		pin.Fill(nil, 0)
	}
	pin.Release()
}

// Columns returns the columns of group g, valid until the next call for another one. It reports
// false if the cache lacks one, or has one with newer rows than a snapshot.
func (s *Set) Columns(g int, snapshot uint64) ([]Column, bool) {
	for i := range s.list {
		k := &s.list[i]
		if k.chunk == nil {
			return nil, false
		}
		if k.chunk.column(g-s.first, &s.columns[i]); s.columns[i].maxSeq > snapshot {
			return nil, false
		}
	}
	return s.columns, true
}

// Lack is what the cache lacks of a column.
type Lack uint8

// The values of Lack.
const (
	Nothing Lack = iota
	Values
	All
)

// Lacks returns what the cache lacks of column i of group g, Nothing without Open.
func (s *Set) Lacks(i, g int) Lack {
	if !s.open {
		return Nothing
	}
	k := &s.list[i]
	if k.chunk == nil || !k.chunk.has(g-s.first) {
		return All
	}
	if k.chunk.column(g-s.first, &s.columns[i]); s.columns[i].unread {
		return Values
	}
	return Nothing
}

// Add adds column i of group g, whose head is h: a property of its shape, by its index there, of the
// type t, or None or Timestamp. plain says that all rows have the same shape, none is a tombstone, and
// no two have the same user key. texts may be nil.
func (s *Set) Add(i, g int, h *rowgroup.Head, property int, t edm.Type, plain bool, texts Texts) {
	s.builderOf(i).addGroup(g-s.first, h, property, t, plain, texts)
}

// AddGathered is Add for a column that has begun, of a group that is plain but for the shapes of its
// rows.
func (s *Set) AddGathered(i, g int, from *Gathered) { s.builderOf(i).addGathered(g-s.first, from) }

// builderOf returns the builder of column i, which has the groups of its chunk.
func (s *Set) builderOf(i int) *builder {
	k := &s.list[i]
	switch {
	case k.began:
	case k.chunk != nil:
		k.builder.extend(k.chunk)
	default:
		k.builder.begin(s.first, k.name)
	}
	k.began = true
	return &k.builder
}
