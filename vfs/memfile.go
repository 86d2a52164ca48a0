package vfs

import (
	"io"
	"io/fs"
	"math"
	"sync/atomic"
	"syscall"

	"github.com/tablerock-db/tablerock/vfs/internal/crash"
)

// memFile is a handle of a Mem's file.
type memFile struct {
	m      *Mem
	node   *inode
	name   string
	write  bool
	closed atomic.Bool
}

// check returns an error for a closed handle, a write through a handle for reading, and
// an invalid range.
func (f *memFile) check(op string, off, n int64, write bool) error {
	switch {
	case f.closed.Load():
		return memError(op, f.name, fs.ErrClosed)
	case write && !f.write:
		return memError(op, f.name, syscall.EBADF)
	case off < 0 || n < 0:
		return memError(op, f.name, syscall.EINVAL)
	case write && off > maxFileBytes-n:
		return memError(op, f.name, syscall.EFBIG)
	}
	return nil
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.check("read", off, int64(len(p)), false); err != nil {
		return 0, err
	}
	n := f.node
	n.mu.RLock()
	defer n.mu.RUnlock()
	have := min(int64(len(p)), max(n.cache.Size-off, 0))
	n.cache.Read(p[:have], off)
	if have < int64(len(p)) {
		return int(have), io.EOF
	}
	return int(have), nil
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.check("write", off, int64(len(p)), true); err != nil {
		return 0, err
	}
	op := Op{Kind: "write", Name: f.name, Off: off, Len: int64(len(p))}
	hook := f.m.begin(&op)
	if hook == nil || len(p) == 0 {
		return f.writeSome(p, off)
	}
	first := off / crash.SectorBytes
	count := (off+int64(len(p))-1)/crash.SectorBytes - first + 1
	done := 0
	for _, k := range inside(count) {
		end := (first+k)*crash.SectorBytes - off
		n, err := f.writeSome(p[done:end], off+int64(done))
		done += n
		if err != nil {
			return done, err
		}
		op.Done = int64(done)
		hook(op)
	}
	n, err := f.writeSome(p[done:], off+int64(done))
	return done + n, err
}

// inside returns the points inside an operation of n sectors at which the hook is
// called, as numbers of sectors done.
func inside(n int64) []int64 {
	points := make([]int64, 0, 3)
	for _, k := range [...]int64{1, n / 2, n - 1} {
		if k > 0 && k < n && (len(points) == 0 || points[len(points)-1] < k) {
			points = append(points, k)
		}
	}
	return points
}

func (f *memFile) writeSome(p []byte, off int64) (int, error) {
	f.m.mu.RLock()
	defer f.m.mu.RUnlock()
	n := f.writeCacheLocked(p, off)
	if n < len(p) {
		return n, memError("write", f.name, syscall.ENOSPC)
	}
	return n, nil
}

// writeCacheLocked stores the bytes that fit. The caller holds Mem.mu.
func (f *memFile) writeCacheLocked(p []byte, off int64) int {
	n := f.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(p) == 0 {
		return 0
	}
	if need := off + int64(len(p)) - n.alloc; need > 0 {
		granted := f.m.reserve(need, false)
		p = p[:max(int64(len(p))-(need-granted), 0)]
		if len(p) == 0 {
			f.m.used.Add(-granted)
			return 0
		}
		n.alloc += granted
	}
	n.cache.Write(p, off)
	if f.m.tracked {
		n.disk.Write(f.m.seq.Add(1), &n.cache, off, off+int64(len(p)))
	}
	return len(p)
}

func (f *memFile) Sync() error {
	if err := f.check("sync", 0, 0, false); err != nil {
		return err
	}
	op := Op{Kind: "sync", Name: f.name}
	hook := f.m.begin(&op)
	if !f.m.tracked {
		return nil
	}
	n := f.node
	n.syncing.Lock()
	defer n.syncing.Unlock()
	if hook == nil {
		f.syncSome(true, math.MaxInt)
		return nil
	}
	f.m.mu.RLock()
	n.mu.RLock()
	count := n.disk.Pending()
	n.mu.RUnlock()
	f.m.mu.RUnlock()
	for _, k := range inside(int64(count)) {
		f.syncSome(op.Done == 0, int(k-op.Done))
		op.Done = k
		hook(op)
	}
	f.syncSome(op.Done == 0, math.MaxInt)
	return nil
}

// syncSome makes the next sectors durable; first begins a new sync.
func (f *memFile) syncSome(first bool, sectors int) {
	f.m.mu.RLock()
	defer f.m.mu.RUnlock()
	n := f.node
	n.mu.Lock()
	defer n.mu.Unlock()
	n.disk.Sync(first, sectors)
}

func (f *memFile) Preallocate(off, length int64) error {
	if err := f.check("preallocate", off, length, true); err != nil {
		return err
	}
	f.m.begin(&Op{Kind: "preallocate", Name: f.name, Off: off, Len: length})
	f.m.mu.RLock()
	defer f.m.mu.RUnlock()
	n := f.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if length == 0 {
		return nil
	}
	end := off + length
	if need := end - n.alloc; need > 0 {
		if f.m.reserve(need, true) < need {
			return memError("preallocate", f.name, syscall.ENOSPC)
		}
		n.alloc = end
	}
	if end <= n.cache.Size {
		return nil
	}
	if f.m.tracked {
		n.disk.Grow(f.m.seq.Add(1), end)
	}
	n.cache.Grow(end)
	return nil
}

func (f *memFile) Size() (int64, error) {
	if err := f.check("size", 0, 0, false); err != nil {
		return 0, err
	}
	f.node.mu.RLock()
	defer f.node.mu.RUnlock()
	return f.node.cache.Size, nil
}

func (f *memFile) Close() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	f.closeLocked()
	return nil
}

// +checklocks:f.m.mu
func (f *memFile) closeLocked() {
	if f.closed.Swap(true) {
		return
	}
	f.node.open--
	f.m.reclaimLocked(f.node)
}

// LoseUnsynced acts out a failed sync: a crash loses the changes that no sync
// has covered, and with revert readers do too. Package errorfs calls it. Without
// crash tracking it changes nothing.
func (f *memFile) LoseUnsynced(revert bool) {
	if !f.m.tracked {
		return
	}
	f.m.mu.RLock()
	defer f.m.mu.RUnlock()
	n := f.node
	n.mu.Lock()
	defer n.mu.Unlock()
	n.disk.Forget()
	if revert {
		n.cache = n.disk.Durable.Freeze()
		f.m.used.Add(n.cache.Size - n.alloc)
		n.alloc = n.cache.Size
	}
}

// Patch overwrites bytes of a file at rest, both for readers and on the disk, like decay
// of the medium. It is not an operation, and its bytes need no sync. They must be
// within the file.
func (m *Mem) Patch(name string, off int64, p []byte) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n, err := m.findLocked("patch", name)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.dir != nil || off < 0 || off > n.cache.Size-int64(len(p)) {
		return memError("patch", name, syscall.EINVAL)
	}
	n.cache.Write(p, off)
	if m.tracked && off < n.disk.Durable.Size {
		n.disk.Durable.Write(p[:min(int64(len(p)), n.disk.Durable.Size-off)], off)
	}
	return nil
}
