package space

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/lsm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

const (
	// files is the number of files of a complete reserve.
	files = 8
	// fileUnit is a multiple of the allocation unit of usual file systems. The size
	// of a file is a multiple of it.
	fileUnit = 4 << 10
	// MaxBytes is the size of the reserve on a large volume. On a smaller one it is
	// 1/volumeShare of the volume.
	MaxBytes    = 16 << 20
	volumeShare = 16
)

// A volume has space for at least segmentsPerVolume segments and filesPerVolume sstables,
// because the space of a file is free only when the whole file is removed.
const (
	segmentsPerVolume = 64
	filesPerVolume    = 512
)

// SegmentBytes returns the size of segments on a volume of the given size, 0 if that is
// unknown, at most limit.
func SegmentBytes(limit, volume int64) int64 { return share(limit, volume, segmentsPerVolume) }

// FileBytes returns the size of sstables on a volume of the given size, 0 if that is
// unknown, at most limit.
func FileBytes(limit, volume int64) int64 { return share(limit, volume, filesPerVolume) }

func share(limit, volume, shares int64) int64 {
	if volume == 0 {
		return limit
	}
	return min(limit, volume/shares)
}

// The shares of a complete reserve that each use leaves, of levels. A drop needs little,
// and may use more than an sstable: after it, whole files can be removed.
const (
	levels       = 2 * files
	deletesLeave = levels * 5 / 8
	oneLeaves    = levels / 4
	outputsLeave = levels / 8
	dropsLeave   = levels / 16
)

// manifestBytes is the most that a drop leaves for manifests.
const manifestBytes = 512 << 10

// Use says why the log grows.
type Use uint8

// The uses.
const (
	Write  Use = iota // any record but those below
	Delete            // a record that only deletes entities
	Drop              // the drop of a table
)

// Frees reports whether the use makes space free.
func (u Use) Frees() bool { return u != Write }

// Refusal returns err, the error of a wait before a write. It is nil if the disk is full and the write
// makes space free.
func (u Use) Refusal(err error) error {
	if u.Frees() && errors.Is(err, store.ErrNoSpace) {
		return nil
	}
	return err
}

// Volume returns the volume of a directory, and false if the file system cannot tell
// or has no limit.
func Volume(fsys vfs.FS, dir string) (vfs.Space, bool) {
	s, err := fsys.Space(dir)
	return s, err == nil
}

// Reserve is the reserve of one database. Its methods may be called concurrently.
type Reserve struct {
	fs   vfs.FS
	dir  string
	file int64 // bytes of a new file, 0 without a reserve

	mu sync.Mutex
	// sizes has the size of each file, 0 if it is missing.
	// +checklocks:mu
	sizes [files]int64
	// count is the number of files that exist, bytes is their size.
	count atomic.Int32
	bytes atomic.Int64
	// reclaimed is set by setReclaimed, until a delete is admitted for it.
	reclaimed atomic.Bool
}

// Open returns the reserve of the database in dir, with the files that an earlier process left,
// and the size of the volume, 0 if it has no limit. An error to ask for the size fails it: without
// the size there would be no reserve, and the files that are there would be removed.
func Open(fsys vfs.FS, dir string, bytes int64) (r *Reserve, volume int64, err error) {
	s, err := fsys.Space(dir)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, 0, fmt.Errorf("size of the volume: %w", err)
	}
	r = New(fsys, dir, bytes, s.Total)
	return r, s.Total, r.adopt()
}

// New returns the reserve of the database in dir, without its files: call adopt and
// Refill. It has at most the given number of bytes and at most a sixteenth of a volume
// of the given size, and none at all if that is too little to be of use.
func New(fsys vfs.FS, dir string, bytes, volume int64) *Reserve {
	bytes = min(bytes, volume/volumeShare)
	return &Reserve{fs: fsys, dir: dir, file: max(0, bytes/files/fileUnit*fileUnit)}
}

// adopt finds the files that an earlier process left. It enlarges files that are smaller
// than those of this reserve, unless the disk is full, and removes larger ones and those
// that are too small to be of use.
func (r *Reserve) adopt() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	names, err := r.fs.List(r.dir)
	if err != nil {
		return fmt.Errorf("list directory: %w", err)
	}
	for _, name := range names {
		kind, number := filename.Parse(name)
		if kind != filename.Reserve {
			continue
		}
		info, err := r.fs.Stat(path.Join(r.dir, name))
		size := info.Size
		if size < r.file && r.Free() >= r.file {
			size = r.file
		}
		if err == nil && info.Regular && size >= fileUnit && size <= r.file && number <= files && r.allocate(name, size) == nil {
			r.setLocked(int(number-1), size)
			continue
		}
		if err == nil && !info.Regular && r.file > 0 && number <= files {
			return fmt.Errorf("%s is not a regular file: move it away, the database needs the name", name)
		}
		if err == nil && info.Regular {
			err = r.fs.Remove(path.Join(r.dir, name))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove %s: %w", name, err)
		}
	}
	return nil
}

// allocate makes sure that a file takes its space: a crash may have left its size alone.
func (r *Reserve) allocate(name string, size int64) error {
	f, err := r.fs.OpenReadWrite(path.Join(r.dir, name))
	if err != nil {
		return err
	}
	return errors.Join(f.Preallocate(0, size), f.Close())
}

// Refill makes the missing files, also those that somebody else has removed. It stops at
// the first that the disk has no space for.
func (r *Reserve) Refill() error {
	if r.file == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.sizes {
		if _, err := r.fs.Stat(r.path(i)); errors.Is(err, fs.ErrNotExist) {
			r.setLocked(i, 0)
		}
	}
	for i := range r.sizes {
		if r.sizes[i] > 0 {
			continue
		}
		// A preallocation that fails may take all the space that is left, and the log fails
		// if it has none meanwhile.
		err := error(syscall.ENOSPC)
		if r.Free() >= r.file {
			err = r.makeLocked(i)
		}
		if err != nil {
			return fmt.Errorf("refill the reserve: %w", err)
		}
	}
	return nil
}

// makeLocked makes one file.
// +checklocks:r.mu
func (r *Reserve) makeLocked(i int) error {
	f, err := r.fs.Create(r.path(i))
	if errors.Is(err, fs.ErrExist) { // a failed attempt has left it
		if err = r.fs.Remove(r.path(i)); err == nil {
			f, err = r.fs.Create(r.path(i))
		}
	}
	if err != nil {
		return err
	}
	err = f.Preallocate(0, r.file)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, r.fs.Remove(r.path(i)))
	}
	r.setLocked(i, r.file)
	return nil
}

// +checklocks:r.mu
func (r *Reserve) setLocked(i int, size int64) {
	r.bytes.Add(size - r.sizes[i])
	switch before := r.sizes[i]; {
	case before == 0 && size > 0:
		r.count.Add(1)
	case before > 0 && size == 0:
		r.count.Add(-1)
	}
	r.sizes[i] = size
}

func (r *Reserve) path(i int) string {
	return path.Join(r.dir, filename.Make(filename.Reserve, uint64(i+1)))
}

// release removes as many files as n bytes need, and at least one, but leaves the given
// number of files. It reports whether it removed any.
func (r *Reserve) release(n int64, leave int) (released bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := files - 1; i >= 0 && n > 0 && int(r.count.Load()) > leave; i-- {
		size := r.sizes[i]
		if size == 0 {
			continue
		}
		if err := r.fs.Remove(r.path(i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return released
		}
		r.setLocked(i, 0)
		released = true
		n -= size
	}
	return released
}

// Full reports whether no file of the reserve is missing.
func (r *Reserve) Full() bool { return r.file == 0 || r.count.Load() == files }

// Bytes returns the space that the files of the reserve take.
func (r *Reserve) Bytes() int64 { return r.bytes.Load() }

// Free returns how many bytes the volume has beside the reserve, math.MaxInt64 if that
// is not known.
func (r *Reserve) Free() int64 {
	s, ok := Volume(r.fs, r.dir)
	if !ok {
		return math.MaxInt64
	}
	return s.Free
}

// setReclaimed notes whether the space of everything that was deleted is free again. If
// another program has taken some of the reserve, that may be too little for the share of
// deletes. Then Admit admits one more, whose flush and compaction need little.
func (r *Reserve) setReclaimed(reclaimed bool) { r.reclaimed.Store(reclaimed) }

// Admit returns an error unless the log may grow by grow bytes. Deletes and drops may use
// the reserve. For other writes there must be space beside it for the flush of the log,
// which takes up to flush bytes, and with half of the reserve for a compaction of
// everything, which takes up to work bytes before it removes its inputs.
func (r *Reserve) Admit(use Use, grow, flush, work int64) error {
	if use.Frees() {
		keep := r.keep(deletesLeave)
		if use == Drop {
			keep = min(r.keep(dropsLeave), manifestBytes)
		}
		have := r.above(keep)
		if use == Delete && have < grow && r.reclaimed.Swap(false) {
			have = r.above(r.keep(oneLeaves))
		}
		if have < grow {
			return fmt.Errorf("the log needs %d bytes, the disk has %d for deletes: %w", grow, max(0, have), syscall.ENOSPC)
		}
		return nil
	}
	work = max(0, work-r.Bytes()/2)
	if free := r.Free(); free-grow < flush+work {
		return fmt.Errorf("the log needs %d bytes, its flush %d and compactions %d, the disk has %d: %w", grow, flush, work, free, syscall.ENOSPC)
	}
	if !r.Full() {
		return fmt.Errorf("the reserve for deletes is not complete: %w", syscall.ENOSPC)
	}
	return nil
}

// ForOutputs returns how many bytes the sstables of a flush or a compaction may take.
func (r *Reserve) ForOutputs() int64 { return r.above(r.keep(outputsLeave)) }

// keep returns the bytes that a complete reserve has at the given level.
func (r *Reserve) keep(leave int64) int64 {
	missing := files - int64(r.count.Load())
	return (r.Bytes() + missing*r.file) / levels * leave
}

// above returns the free bytes with those of the reserve, without the bytes to keep.
func (r *Reserve) above(keep int64) int64 {
	free := r.Free()
	return free - keep + min(r.Bytes(), math.MaxInt64-free)
}

// NoSpace reports whether err says that a disk or a quota is full, so that it ends when there is
// space. A log that failed for want of space, and a manifest in doubt, last until the next Open.
func NoSpace(err error) bool {
	for _, lasting := range []error{lsm.ErrInDoubt, store.ErrReadOnly, store.ErrOutcomeUnknown} {
		if errors.Is(err, lasting) {
			return false
		}
	}
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// Refusal returns the error of a write that did not happen because background work or the
// manifest failed with err. It is nil if err is.
func Refusal(err error) error {
	switch {
	case err == nil:
		return nil
	case NoSpace(err):
		return fmt.Errorf("%w: %w", store.ErrNoSpace, err)
	}
	return fmt.Errorf("%w: background work fails: %w", store.ErrReadOnly, err)
}

// JobError returns err, the error of a flush or a compaction that a caller waits for, with the error of
// package store that says what it means.
func JobError(err error) error {
	for _, said := range []error{store.ErrNoSpace, store.ErrReadOnly, store.ErrOutcomeUnknown} {
		if errors.Is(err, said) {
			return err
		}
	}
	if NoSpace(err) || errors.Is(err, lsm.ErrInDoubt) {
		return Refusal(err)
	}
	return err
}
