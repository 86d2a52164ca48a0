// Package errorfs is a file system for tests that fails on demand. A Rule
// looks at each operation and may give it a Fault: an error, a short write, a
// lost answer, changed bytes, or a failed sync. A Rule may also wait, which
// makes a slow or hanging disk.
package errorfs

import (
	"errors"
	"io"
	"io/fs"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/vfs"
)

// Fault describes what happens to one operation.
type Fault struct {
	// Err is returned, wrapped in a *fs.PathError. With a nil Err the
	// operation returns its own result.
	Err error
	// Short is the number of bytes that a read or write transfers before it
	// returns Err.
	Short int
	// Applied makes the operation take full effect before it returns Err, as
	// if only the answer was lost.
	Applied bool
	// Sync says what a failed sync does to the file.
	Sync SyncFailure
	// Corrupt changes the bytes that a read returned from off.
	Corrupt func(p []byte, off int64)
}

// SyncFailure says what a file system does with a file's unsynced changes after
// it failed to write them. Only a Mem made by vfs.NewCrashMem tells these apart.
type SyncFailure uint8

const (
	// SyncKeeps keeps the changes dirty: the next sync writes them.
	SyncKeeps SyncFailure = iota
	// SyncForgets marks the changes as clean although they were not written,
	// as ext4 and XFS do: readers see them, the next sync succeeds, and a
	// crash loses them.
	SyncForgets
	// SyncReverts discards the changes, as btrfs does: readers see the file
	// as of the last sync.
	SyncReverts
)

// syncLoser is a file that can lose its unsynced changes: one of a vfs.Mem.
type syncLoser interface {
	// LoseUnsynced drops the changes that no sync has covered from what a
	// crash can keep, and with revert also from what readers see.
	LoseUnsynced(revert bool)
}

// loseUnsynced applies a SyncFailure to a file.
func loseUnsynced(file vfs.File, how SyncFailure) {
	if f, ok := file.(syncLoser); ok && how != SyncKeeps {
		f.LoseUnsynced(how == SyncReverts)
	}
}

// Rule decides before each operation whether and how it fails; nil lets it
// pass. It runs in the operation's goroutine, without a lock, concurrently for
// concurrent operations. It may block.
type Rule func(op vfs.Op) *Fault

// FS is a file system that applies a Rule to each operation. Its methods may be
// called concurrently.
type FS struct {
	// FS applies the rule and then calls the file system below. Each operation
	// counts, also those on its files.
	vfs.FS

	rule atomic.Pointer[Rule]
	ops  atomic.Uint64
}

// Wrap returns a file system that passes each operation to under unless rule
// decides otherwise. A nil rule lets all pass.
func Wrap(under vfs.FS, rule Rule) *FS {
	x := &FS{}
	x.FS = layer{x: x, under: under}
	x.SetRule(rule)
	return x
}

// SetRule replaces the rule.
func (x *FS) SetRule(rule Rule) {
	if rule == nil {
		rule = func(vfs.Op) *Fault { return nil }
	}
	x.rule.Store(&rule)
}

// Ops returns the number of operations so far.
func (x *FS) Ops() uint64 { return x.ops.Load() }

// decide counts an operation and applies the rule to it.
func (x *FS) decide(op vfs.Op) *Fault {
	op.Index = x.ops.Add(1)
	return (*x.rule.Load())(op)
}

// wrap returns the error that a fault gives an operation.
func (f *Fault) wrap(kind string, name string) error {
	var pathErr *fs.PathError
	if errors.As(f.Err, &pathErr) {
		return f.Err
	}
	return &fs.PathError{Op: kind, Path: name, Err: f.Err}
}

// run does an operation or fails it.
func (x *FS) run(op vfs.Op, do func() error) error {
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

// value is run for an operation with a result, which it drops on an error.
func value[T any](x *FS, op vfs.Op, get func() (T, error)) (T, error) {
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

// layer implements vfs.FS for an FS.
type layer struct {
	x     *FS
	under vfs.FS
}

func (l layer) open(kind string, name string, open func(string) (vfs.File, error)) (vfs.File, error) {
	var f vfs.File
	err := l.x.run(vfs.Op{Kind: kind, Name: name}, func() (err error) {
		f, err = open(name)
		return err
	})
	if err != nil {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
		return nil, err
	}
	return &file{
		closer: closer{x: l.x, kind: "close", name: name, close: f.Close},
		under:  f,
	}, nil
}

func (l layer) Create(name string) (vfs.File, error) {
	return l.open("create", name, l.under.Create)
}

func (l layer) Open(name string) (vfs.File, error) { return l.open("open", name, l.under.Open) }

func (l layer) OpenReadWrite(name string) (vfs.File, error) {
	return l.open("open-rw", name, l.under.OpenReadWrite)
}

func (l layer) Rename(oldname, newname string) error {
	return l.x.run(vfs.Op{Kind: "rename", Name: oldname, NewName: newname}, func() error {
		return l.under.Rename(oldname, newname)
	})
}

func (l layer) Link(oldname, newname string) error {
	return l.x.run(vfs.Op{Kind: "link", Name: oldname, NewName: newname}, func() error {
		return l.under.Link(oldname, newname)
	})
}

func (l layer) Remove(name string) error {
	return l.x.run(vfs.Op{Kind: "remove", Name: name}, func() error { return l.under.Remove(name) })
}

func (l layer) List(dir string) ([]string, error) {
	return value(l.x, vfs.Op{Kind: "list", Name: dir}, func() ([]string, error) { return l.under.List(dir) })
}

func (l layer) Stat(name string) (vfs.Info, error) {
	return value(l.x, vfs.Op{Kind: "stat", Name: name}, func() (vfs.Info, error) { return l.under.Stat(name) })
}

func (l layer) Space(dir string) (vfs.Space, error) {
	return value(l.x, vfs.Op{Kind: "space", Name: dir}, func() (vfs.Space, error) { return l.under.Space(dir) })
}

func (l layer) MkdirAll(dir string) error {
	return l.x.run(vfs.Op{Kind: "mkdir", Name: dir}, func() error { return l.under.MkdirAll(dir) })
}

func (l layer) SyncDir(dir string) error {
	return l.x.run(vfs.Op{Kind: "sync-dir", Name: dir}, func() error { return l.under.SyncDir(dir) })
}

func (l layer) Lock(name string) (io.Closer, error) {
	var lock io.Closer
	err := l.x.run(vfs.Op{Kind: "lock", Name: name}, func() (err error) {
		lock, err = l.under.Lock(name)
		return err
	})
	if err != nil {
		if lock != nil {
			err = errors.Join(err, lock.Close())
		}
		return nil, err
	}
	return &closer{x: l.x, kind: "close", name: name, close: lock.Close}, nil
}

func (l layer) Locked(name string) (holder string, held bool, err error) {
	err = l.x.run(vfs.Op{Kind: "locked", Name: name}, func() (err error) {
		holder, held, err = l.under.Locked(name)
		return err
	})
	return holder, held, err
}

// closer closes once. It closes what is below also if it returns an error, as
// the operating system does.
type closer struct {
	x      *FS
	kind   string
	name   string
	close  func() error
	closed atomic.Bool
}

func (c *closer) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	f := c.x.decide(vfs.Op{Kind: c.kind, Name: c.name})
	err := c.close()
	if f != nil && f.Err != nil {
		return f.wrap(c.kind, c.name)
	}
	return err
}

// file is an open file of an FS.
type file struct {
	closer
	under vfs.File
}

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	fault := f.x.decide(vfs.Op{Kind: "read", Name: f.name, Off: off, Len: int64(len(p))})
	if fault == nil {
		return f.under.ReadAt(p, off)
	}
	if fault.Err != nil && !fault.Applied {
		p = p[:min(max(fault.Short, 0), len(p))]
	}
	n, err := f.under.ReadAt(p, off)
	if fault.Corrupt != nil {
		fault.Corrupt(p[:n], off)
	}
	if fault.Err != nil && (err == nil || err == io.EOF) {
		err = fault.wrap("read", f.name)
	}
	return n, err
}

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	fault := f.x.decide(vfs.Op{Kind: "write", Name: f.name, Off: off, Len: int64(len(p))})
	if fault == nil || fault.Err == nil {
		return f.under.WriteAt(p, off)
	}
	if !fault.Applied {
		p = p[:min(max(fault.Short, 0), len(p))]
	}
	n, err := 0, error(nil)
	if len(p) > 0 {
		n, err = f.under.WriteAt(p, off)
	}
	if err == nil {
		err = fault.wrap("write", f.name)
	}
	return n, err
}

func (f *file) Sync() error {
	fault := f.x.decide(vfs.Op{Kind: "sync", Name: f.name})
	if fault == nil || fault.Err == nil {
		return f.under.Sync()
	}
	if fault.Applied {
		if err := f.under.Sync(); err != nil {
			return err
		}
	} else {
		loseUnsynced(f.under, fault.Sync)
	}
	return fault.wrap("sync", f.name)
}

// LoseUnsynced implements syncLoser, so that one FS can wrap another.
func (f *file) LoseUnsynced(revert bool) {
	if under, ok := f.under.(syncLoser); ok {
		under.LoseUnsynced(revert)
	}
}

func (f *file) Preallocate(off, n int64) error {
	return f.x.run(vfs.Op{Kind: "preallocate", Name: f.name, Off: off, Len: n}, func() error {
		return f.under.Preallocate(off, n)
	})
}

func (f *file) Size() (int64, error) {
	return value(f.x, vfs.Op{Kind: "size", Name: f.name}, f.under.Size)
}
