package runs

import (
	"errors"
	"fmt"
	"path"
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/bound"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/vfs"
)

// Opener opens the files of a directory. Set its fields before the first call. It may be used
// concurrently.
type Opener struct {
	FS      vfs.FS
	Dir     string
	Cache   *cache.Cache // of blocks, nil for none
	CacheDB uint64       // the number of the database in Cache
}

// File is an open file. It may be used concurrently, but see Close and Assign.
type File struct {
	Number uint64
	Size   int64
	// Tables are the tables that the file has rows of.
	Tables bound.Tables
	// Snapshots are those for which the compaction that wrote the file to the bottom kept entries,
	// nil if there were none, or if the file was opened with the Tree. Set them before the file is
	// listed.
	Snapshots []uint64

	f vfs.File
	o sstable.ReaderOptions
	// opened is the reader, nil until the first use.
	opened atomic.Pointer[sstable.Reader]
	openMu sync.Mutex // held to set opened
	// refs counts the virtual sstables of the file in all lists with a reference.
	refs atomic.Int32
	// obsolete is set when the durable manifest does not list the file.
	obsolete atomic.Bool
}

// Open opens a file that the manifest lists and checks its size. It reads nothing. The caller owns
// the file.
func (o *Opener) Open(meta *manifest.File) (*File, error) {
	name := filename.Make(filename.SSTable, meta.Number)
	f, err := o.FS.Open(path.Join(o.Dir, name))
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
	return &File{Number: meta.Number, Size: meta.Size, f: f, o: sstable.ReaderOptions{
		DBID:    meta.Origin,
		Number:  meta.Number,
		Size:    meta.Size,
		Name:    name,
		Seq:     meta.MinSeq,
		Stamp:   edm.Ticks(meta.Stamp),
		Cache:   o.Cache,
		CacheDB: o.CacheDB,
	}}, nil
}

// Reader returns the reader, which is valid until Close. The first call reads footer, index and
// filter: reading those of all files would take 10 of 12 ms of an Open of 160 files
// (reopen/from=load of package bench). The error is that of sstable.Open; the next call tries
// again.
func (f *File) Reader() (*sstable.Reader, error) {
	if r := f.opened.Load(); r != nil {
		return r, nil
	}
	return f.open()
}

func (f *File) open() (*sstable.Reader, error) {
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

// MayContain reports whether the file may have a version of the user key with this hash.
// A file that cannot be read may: a read of the key returns the error.
func (f *File) MayContain(keyHash uint64) bool {
	r, err := f.Reader()
	return err != nil || r.MayContain(keyHash)
}

// Assign sets the sequence number and the Timestamp of all rows of a loaded file, which the file
// itself does not have. Nothing may use f meanwhile, and readers that it returned before do not
// know them.
func (f *File) Assign(seq uint64, stamp edm.Ticks) {
	f.o.Seq, f.o.Stamp = seq, stamp
	f.opened.Store(nil) // opened without them
}

// Close closes the file. Nothing may use f any more.
func (f *File) Close() error {
	if r := f.opened.Load(); r != nil {
		return r.Close()
	}
	return f.f.Close()
}
