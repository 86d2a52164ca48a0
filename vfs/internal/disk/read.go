package disk

import (
	"sync/atomic"
	"syscall"
)

// reader reads a file that is open for reading only, of which the system may have parts in
// memory and others not.
type reader struct {
	conn  syscall.RawConn
	order readOrder
	// waits is positive if one of the last tries had to wait for the disk. While it is not, and
	// while no other goroutine reads, one read in tryEach is tried without waiting: a try adds a
	// seventh to a read of 10 KiB from memory, and 5 us to one from the disk.
	waits atomic.Int32
	reads atomic.Uint32
	// refused is set once the file system has refused a read that does not wait.
	refused atomic.Bool
}

const (
	// waitReads is how many tries after one that waited make a file warm again.
	waitReads = 64
	tryEach   = 16
)

// reading is how many reads of files that may be cold are under way in the process. A read
// alone keeps no other from the processor.
var reading atomic.Int32

// newReader returns a reader of f, nil if the system takes no advice.
func newReader(f *File) *reader {
	if f.control("advise", func(fd uintptr) error { return advise(fd, false) }) != nil {
		return nil
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	r := &reader{conn: conn}
	r.waits.Store(waitReads)
	return r
}

// ReadAt implements io.ReaderAt.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	r := f.reader
	if r == nil || r.refused.Load() {
		return f.File.ReadAt(p, off)
	}
	try := r.reads.Add(1)%tryEach == 0
	if !try && r.waits.Load() <= 0 {
		return f.File.ReadAt(p, off)
	}
	if inOrder, changed := r.order.read(off, int64(len(p))); changed {
		// Without it, reads wait longer.
		_ = f.control("advise", func(fd uintptr) error { return advise(fd, inOrder) })
	}
	others := reading.Add(1) > 1
	defer reading.Add(-1)
	if !try && !others {
		return f.File.ReadAt(p, off)
	}
	n := r.tryReadAt(p, off)
	if n == len(p) {
		if r.waits.Load() > 0 {
			r.waits.Add(-1)
		}
		return n, nil
	}
	r.waits.Store(waitReads)
	rest, err := f.File.ReadAt(p[n:], off+int64(n))
	return n + rest, err
}
