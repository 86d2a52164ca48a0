package lsm

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/bound"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/keyrange"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/vfs"
)

// file is an open file.
type file struct {
	number uint64
	size   int64
	f      vfs.File
	o      sstable.ReaderOptions
	// opened is the reader, nil until the first use.
	opened atomic.Pointer[sstable.Reader]
	openMu sync.Mutex // held to set opened
	tables bound.Tables
	// snapshots are those for which the compaction that wrote the file to the bottom kept entries, nil if there were none, or if
	// the file was opened with the Tree.
	snapshots []uint64
	// refs counts the virtual sstables of the file in all referenced versions.
	refs atomic.Int32
	// obsolete is set when the durable manifest does not list the file.
	obsolete atomic.Bool
}

// virtualSST is an element of a run: a file, or the range of a file that no
// compaction has consumed. It is immutable, and versions share it.
type virtualSST struct {
	*file
	// meta is the record in the manifest. Bounds, tier and run are those of the
	// virtual sstable, all other fields are those of the file.
	meta manifest.File
	// lo and hi are the user keys of the first and the last entry.
	lo, hi []byte
	// clipped says that the file contains keys beyond lo..hi.
	clipped bool
	// bytes and entries are those of lo..hi, estimates if clipped.
	bytes   int64
	entries uint64
}

// reader returns the reader. The first call reads footer, index and filter: reading those of all files would take 10 of 12 ms of an
// Open of 160 files (reopen/from=load of package bench). The error is that of sstable.Open; the next call tries again.
func (f *file) reader() (*sstable.Reader, error) {
	if r := f.opened.Load(); r != nil {
		return r, nil
	}
	return f.open()
}

func (f *file) open() (*sstable.Reader, error) {
	f.openMu.Lock()
	defer f.openMu.Unlock()
	if r := f.opened.Load(); r != nil {
		return r, nil
	}
	r, err := sstable.Open(f.f, f.o)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", f.o.Name, err)
	}
	f.opened.Store(r)
	return r, nil
}

// mayContain reports whether the file may have a version of the user key with this hash.
// A file that cannot be read may: a read of the key returns the error.
func (f *file) mayContain(keyHash uint64) bool {
	r, err := f.reader()
	return err != nil || r.MayContain(keyHash)
}

// newVirtualSST returns the virtual sstable of f that meta lists, of about the given size.
func newVirtualSST(f *file, meta manifest.File, bytes int64) *virtualSST {
	s := &virtualSST{file: f, meta: meta, bytes: bytes, entries: meta.Entries}
	var first, last uint64
	s.lo, first = bound.Split(meta.Smallest)
	s.hi, last = bound.Split(meta.Largest)
	s.clipped = first == bound.ClippedFirst || last == bound.ClippedLast
	return s
}

// measured sets the size and the entries of a clipped s by the index of its file.
func (s *virtualSST) measured() (*virtualSST, error) {
	if !s.clipped {
		return s, nil
	}
	r, err := s.reader()
	if err != nil {
		return nil, err
	}
	entries, share := r.Within(s.lo, s.hi)
	s.entries, s.bytes = entries, max(1, int64(float64(s.size)*share))
	return s, nil
}

// tombstones estimates the tombstones within lo..hi.
func (s *virtualSST) tombstones() uint64 {
	if !s.clipped {
		return s.meta.Tombstones
	}
	return uint64(float64(s.meta.Tombstones) * float64(s.entries) / float64(s.meta.Entries))
}

// moved returns a copy of s in another run.
func (s *virtualSST) moved(tier uint32, run uint64) *virtualSST {
	q := *s
	q.meta.Tier, q.meta.Run = tier, run
	return &q
}

// overlaps reports whether s may contain keys within [lower, upper); nil is open.
func (s *virtualSST) overlaps(lower, upper []byte) bool {
	return bytes.Compare(s.hi, lower) >= 0 && (upper == nil || bytes.Compare(s.lo, upper) < 0)
}

// inside reports whether all keys of s are within [lower, upper).
func (s *virtualSST) inside(lower, upper []byte) bool {
	return bytes.Compare(s.lo, lower) >= 0 && (upper == nil || bytes.Compare(s.hi, upper) < 0)
}

// bytesWithin estimates the size of the entries of s within [lower, upper): by the index, if the file is open.
func (s *virtualSST) bytesWithin(lower, upper []byte) int64 {
	if s.inside(lower, upper) {
		return s.bytes
	}
	if r := s.opened.Load(); r != nil {
		return max(1, min(s.bytes, int64(float64(s.size)*r.Between(s.lo, s.hi, lower, upper))))
	}
	return keyrange.OverlapBytes(s.bytes, s.lo, s.hi, lower, upper)
}

// garbage estimates the bytes of older versions that n bytes of s hide, at most n.
// An entry that hides a version counts twice, because it may be smaller than that version, or a tombstone.
func (s *virtualSST) garbage(n int64) int64 {
	newKeys := float64(s.meta.NewKeys) / manifest.AllNewKeys
	return int64(float64(n) * min(1, 2*(1-newKeys)))
}

// bounds narrows o to the bounds of s.
func (s *virtualSST) bounds(o IterOptions) IterOptions {
	if !s.clipped {
		return o
	}
	if bytes.Compare(o.Lower, s.lo) < 0 {
		o.Lower = s.lo
	}
	if end := bound.After(s.hi); o.Upper == nil || bytes.Compare(o.Upper, end) > 0 {
		o.Upper = end
	}
	return o
}

// without returns s without the keys in [lower, upper): at most two virtual sstables,
// whose bounds are keys of the file.
func (s *virtualSST) without(lower, upper []byte) ([]*virtualSST, error) {
	if s.inside(lower, upper) {
		return nil, nil
	}
	r, err := s.reader()
	if err != nil {
		return nil, err
	}
	var metas []manifest.File
	it := r.NewIterator(s.bounds(IterOptions{Snapshot: codec.MaxSeq}))
	if lower != nil && it.SeekLT(lower) {
		hi, _, _ := codec.SplitTrailer(it.Key())
		meta := s.meta
		meta.Largest = bound.Clip(hi, bound.ClippedLast)
		metas = append(metas, meta)
	}
	if upper != nil && it.Err() == nil && it.SeekGE(upper) {
		lo, _, _ := codec.SplitTrailer(it.Key())
		meta := s.meta
		meta.Smallest = bound.Clip(lo, bound.ClippedFirst)
		metas = append(metas, meta)
	}
	err = it.Err()
	if cerr := it.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, fmt.Errorf("bounds of the rest of %s: %w", filename.Make(filename.SSTable, s.number), err)
	}
	var rest []*virtualSST
	for _, meta := range metas {
		part, err := newVirtualSST(s.file, meta, 0).measured()
		if err != nil {
			return nil, err
		}
		rest = append(rest, part)
	}
	return rest, nil
}

// openFile opens a file that the manifest lists and checks its size.
func (t *Tree) openFile(meta *manifest.File) (*file, error) {
	name := filename.Make(filename.SSTable, meta.Number)
	f, err := t.o.FS.Open(path.Join(t.o.Dir, name))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	size, err := f.Size()
	if err == nil && size != meta.Size {
		err = corrupt.Newf(name, min(size, meta.Size), "file of %d bytes, not %d", size, meta.Size)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", name, err), f.Close())
	}
	return &file{number: meta.Number, size: meta.Size, f: f, o: sstable.ReaderOptions{
		DBID:    meta.Origin,
		Number:  meta.Number,
		Size:    meta.Size,
		Name:    name,
		Seq:     meta.MinSeq,
		Stamp:   edm.Ticks(meta.Stamp),
		Cache:   t.o.Cache,
		CacheDB: t.o.CacheDB,
	}}, nil
}
