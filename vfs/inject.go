package vfs

import (
	"errors"
	"io"
	"io/fs"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/vfs/internal/callsite"
)

// Fault is what Inject does to one operation.
type Fault struct {
	// Err is returned, wrapped in a *fs.PathError; nil returns what the
	// operation itself returns.
	Err error
	// Short is how many bytes a read or write handles before it returns Err.
	Short int
	// Applied lets the operation take effect in whole before it returns Err,
	// as when the answer was lost.
	Applied bool
	// Sync says what a failed sync does to the file.
	Sync SyncFailure
	// Corrupt changes the bytes that a read found at off.
	Corrupt func(p []byte, off int64)
}

// SyncFailure is how a file system behaves when it could not write a file's
// changes. It matters on a Mem that tracks crashes.
type SyncFailure uint8

const (
	// SyncKeeps keeps the changes to be written: the next sync covers them.
	SyncKeeps SyncFailure = iota
	// SyncForgets marks them as written although they are not, as ext4 and
	// XFS do: readers see them, the next sync succeeds, a crash loses them.
	SyncForgets
	// SyncReverts throws them away, as btrfs does: readers see the file as it
	// was at the last sync.
	SyncReverts
)

// failingSync is a file that can act out a SyncFailure.
type failingSync interface {
	failSync(how SyncFailure)
}

// Rule decides the fate of each operation before it happens; nil lets it
// pass. It is called in the operation's goroutine without a lock and at the
// same time for concurrent operations, and may wait: so a slow or hanging
// disk is a rule that waits.
type Rule func(op Op) *Fault

// Injected is a file system that fails on demand.
type Injected struct {
	fs    FS
	rule  atomic.Pointer[Rule]
	ops   atomic.Uint64
	sites atomic.Pointer[callsite.Table[OpKind]]
}

// Inject returns a file system that passes every operation to under, unless
// rule decides otherwise. A nil rule decides nothing.
func Inject(under FS, rule Rule) *Injected {
	x := &Injected{fs: under}
	x.SetRule(rule)
	return x
}

// SetRule replaces the rule.
func (x *Injected) SetRule(rule Rule) {
	if rule == nil {
		rule = func(Op) *Fault { return nil }
	}
	x.rule.Store(&rule)
}

// Ops returns the number of operations so far.
func (x *Injected) Ops() uint64 { return x.ops.Load() }

// decide counts an operation and asks the rule about it.
func (x *Injected) decide(op Op) *Fault {
	op.Index = x.ops.Add(1)
	f := (*x.rule.Load())(op)
	if t := x.sites.Load(); t != nil {
		t.Note(op.Kind, f != nil && f.Err != nil)
	}
	return f
}

// wrap returns the error that a fault gives an operation.
func (f *Fault) wrap(kind OpKind, name string) error {
	var pathErr *fs.PathError
	if errors.As(f.Err, &pathErr) {
		return f.Err
	}
	return &fs.PathError{Op: kind.String(), Path: name, Err: f.Err}
}

// run does an operation, or fails it.
func (x *Injected) run(op Op, do func() error) error {
	f := x.decide(op)
	if f == nil || f.Err == nil {
		return do()
	}
	if f.Applied {
		if err := do(); err != nil {
			return err
		}
	}
	return f.wrap(op.Kind, op.Name)
}

// value is run for an operation that has a result, which an error hides.
func value[T any](x *Injected, op Op, get func() (T, error)) (T, error) {
	var v, none T
	err := x.run(op, func() (err error) {
		v, err = get()
		return err
	})
	if err != nil {
		return none, err
	}
	return v, nil
}

func (x *Injected) open(kind OpKind, name string, open func(string) (File, error)) (File, error) {
	var file File
	err := x.run(Op{Kind: kind, Name: name}, func() (err error) {
		file, err = open(name)
		return err
	})
	if err != nil {
		if file != nil {
			err = errors.Join(err, file.Close())
		}
		return nil, err
	}
	return &injectedFile{
		injectedClose: injectedClose{x: x, kind: OpClose, name: name, close: file.Close},
		file:          file,
	}, nil
}

// Create implements FS.
func (x *Injected) Create(name string) (File, error) { return x.open(OpCreate, name, x.fs.Create) }

// Open implements FS.
func (x *Injected) Open(name string) (File, error) { return x.open(OpOpen, name, x.fs.Open) }

// OpenReadWrite implements FS.
func (x *Injected) OpenReadWrite(name string) (File, error) {
	return x.open(OpOpenReadWrite, name, x.fs.OpenReadWrite)
}

// Rename implements FS.
func (x *Injected) Rename(oldname, newname string) error {
	return x.run(Op{Kind: OpRename, Name: oldname, NewName: newname}, func() error {
		return x.fs.Rename(oldname, newname)
	})
}

// Link implements FS.
func (x *Injected) Link(oldname, newname string) error {
	return x.run(Op{Kind: OpLink, Name: oldname, NewName: newname}, func() error {
		return x.fs.Link(oldname, newname)
	})
}

// Remove implements FS.
func (x *Injected) Remove(name string) error {
	return x.run(Op{Kind: OpRemove, Name: name}, func() error { return x.fs.Remove(name) })
}

// List implements FS.
func (x *Injected) List(dir string) ([]string, error) {
	return value(x, Op{Kind: OpList, Name: dir}, func() ([]string, error) { return x.fs.List(dir) })
}

// Stat implements FS.
func (x *Injected) Stat(name string) (Info, error) {
	return value(x, Op{Kind: OpStat, Name: name}, func() (Info, error) { return x.fs.Stat(name) })
}

// MkdirAll implements FS.
func (x *Injected) MkdirAll(dir string) error {
	return x.run(Op{Kind: OpMkdirAll, Name: dir}, func() error { return x.fs.MkdirAll(dir) })
}

// SyncDir implements FS.
func (x *Injected) SyncDir(dir string) error {
	return x.run(Op{Kind: OpSyncDir, Name: dir}, func() error { return x.fs.SyncDir(dir) })
}

// FreeSpace implements FS.
func (x *Injected) FreeSpace(dir string) (uint64, error) {
	return value(x, Op{Kind: OpFreeSpace, Name: dir}, func() (uint64, error) { return x.fs.FreeSpace(dir) })
}

// Lock implements FS.
func (x *Injected) Lock(name string) (io.Closer, error) {
	var lock io.Closer
	err := x.run(Op{Kind: OpLock, Name: name}, func() (err error) {
		lock, err = x.fs.Lock(name)
		return err
	})
	if err != nil {
		if lock != nil {
			err = errors.Join(err, lock.Close())
		}
		return nil, err
	}
	return &injectedClose{x: x, kind: OpUnlock, name: name, close: lock.Close}, nil
}

// Locked implements FS.
func (x *Injected) Locked(name string) (holder string, held bool, err error) {
	err = x.run(Op{Kind: OpLocked, Name: name}, func() (err error) {
		holder, held, err = x.fs.Locked(name)
		return err
	})
	return holder, held, err
}

// injectedClose closes once and for real, whatever it returns: a failed close
// of the system has closed too.
type injectedClose struct {
	x      *Injected
	kind   OpKind
	name   string
	close  func() error
	closed atomic.Bool
}

func (c *injectedClose) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	f := c.x.decide(Op{Kind: c.kind, Name: c.name})
	err := c.close()
	if f != nil && f.Err != nil {
		return f.wrap(c.kind, c.name)
	}
	return err
}

// injectedFile is an open file of an Injected.
type injectedFile struct {
	injectedClose
	file File
}

func (f *injectedFile) ReadAt(p []byte, off int64) (int, error) {
	fault := f.x.decide(Op{Kind: OpRead, Name: f.name, Off: off, Len: int64(len(p))})
	if fault == nil {
		return f.file.ReadAt(p, off)
	}
	if fault.Err != nil && !fault.Applied {
		p = p[:min(max(fault.Short, 0), len(p))]
	}
	n, err := f.file.ReadAt(p, off)
	if fault.Corrupt != nil {
		fault.Corrupt(p[:n], off)
	}
	if fault.Err != nil && (err == nil || err == io.EOF) {
		err = fault.wrap(OpRead, f.name)
	}
	return n, err
}

func (f *injectedFile) WriteAt(p []byte, off int64) (int, error) {
	fault := f.x.decide(Op{Kind: OpWrite, Name: f.name, Off: off, Len: int64(len(p))})
	if fault == nil || fault.Err == nil {
		return f.file.WriteAt(p, off)
	}
	if !fault.Applied {
		p = p[:min(max(fault.Short, 0), len(p))]
	}
	n, err := 0, error(nil)
	if len(p) > 0 {
		n, err = f.file.WriteAt(p, off)
	}
	if err == nil {
		err = fault.wrap(OpWrite, f.name)
	}
	return n, err
}

func (f *injectedFile) Sync() error {
	fault := f.x.decide(Op{Kind: OpSync, Name: f.name})
	if fault == nil || fault.Err == nil {
		return f.file.Sync()
	}
	if fault.Applied {
		if err := f.file.Sync(); err != nil {
			return err
		}
	} else if file, ok := f.file.(failingSync); ok {
		file.failSync(fault.Sync)
	}
	return fault.wrap(OpSync, f.name)
}

func (f *injectedFile) failSync(how SyncFailure) {
	if file, ok := f.file.(failingSync); ok {
		file.failSync(how)
	}
}

func (f *injectedFile) Truncate(size int64) error {
	return f.x.run(Op{Kind: OpTruncate, Name: f.name, Off: size}, func() error {
		return f.file.Truncate(size)
	})
}

func (f *injectedFile) Preallocate(off, n int64) error {
	return f.x.run(Op{Kind: OpPreallocate, Name: f.name, Off: off, Len: n}, func() error {
		return f.file.Preallocate(off, n)
	})
}

func (f *injectedFile) Size() (int64, error) {
	return value(f.x, Op{Kind: OpSize, Name: f.name}, f.file.Size)
}
