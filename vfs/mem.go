package vfs

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/tablerock-db/tablerock/vfs/internal/crash"
)

// Mem is a file system in memory. Made by NewCrashMem, it also records unsynced changes
// and can lose them in a simulated power cut: see the crash model in the package
// comment. All methods may be called concurrently.
//
// The root directory exists; "a/b", "/a/b" and "./a/b" are the same name.
//
// For tests, Mem has methods beside those of FS: Crash, CrashStates and
// CrashStateCount simulate power cuts, Clone a killed process, SetCapacity a full
// disk, Patch damage at rest. OnOp calls a hook at each point where one can happen.
type Mem struct {
	tracked  bool
	capacity atomic.Int64 // 0: no limit
	used     atomic.Int64
	hook     atomic.Pointer[func(Op)]
	ops      atomic.Uint64 // operations that change something
	seq      atomic.Uint64 // tracked changes

	// mu is locked shared to change contents and exclusively to change names or to
	// copy the file system. Lock it before inode.mu.
	mu sync.RWMutex
	// +checklocks:mu
	root *inode
	// +checklocks:mu
	nextID uint64
	// +checklocks:mu
	locks map[*inode]struct{}
	// Contents of the files removed last, which unwritten sectors can show.
	// +checklocks:mu
	removed []crash.Image
}

// NewMem returns an empty file system without crash tracking: Sync and SyncDir are
// almost free.
func NewMem() *Mem {
	m := &Mem{locks: map[*inode]struct{}{}}
	m.root = m.newNodeLocked(newDir()) // +checklocksignore: not shared yet
	return m
}

// NewCrashMem returns an empty file system that tracks unsynced changes, for Crash and
// CrashStates.
func NewCrashMem() *Mem {
	m := NewMem()
	m.tracked = true
	return m
}

// OnOp sets a hook. It is called before each operation that can change something: all
// kinds but open, open-rw, list, stat, locked, space, read, size and close. It is also
// called at up to three points inside each write and each sync: after the first sector, in the
// middle, and before the last sector. The hook runs without locks.
// It may call Crash, CrashStates and Clone, but must not use the file system itself. A
// nil hook removes it.
func (m *Mem) OnOp(hook func(Op)) {
	if hook == nil {
		m.hook.Store(nil)
		return
	}
	m.hook.Store(&hook)
}

// SetCapacity limits the total bytes of all files; 0 removes the limit. A write beyond
// it stores the bytes that fit and returns ENOSPC.
func (m *Mem) SetCapacity(bytes int64) { m.capacity.Store(bytes) }

// Used returns the bytes that count against the capacity: of each file those up to the
// last written or preallocated one. A removed file counts until its last handle is
// closed.
func (m *Mem) Used() int64 { return m.used.Load() }

// Space implements FS.
func (m *Mem) Space(dir string) (Space, error) {
	total := m.capacity.Load()
	if total == 0 {
		return Space{}, memError("space", dir, errors.ErrUnsupported)
	}
	return Space{Total: total, Free: max(0, total-m.used.Load())}, nil
}

// begin counts an operation, calls the hook and returns it.
func (m *Mem) begin(op *Op) func(Op) {
	op.Index = m.ops.Add(1)
	hook := m.hook.Load()
	if hook == nil {
		return nil
	}
	(*hook)(*op)
	return *hook
}

// +checklocks:m.mu
func (m *Mem) newNodeLocked(d *dir) *inode {
	m.nextID++
	return &inode{id: m.nextID, dir: d}
}

func memError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// lookupLocked returns the directory of name, its last element, and the node of that
// name, nil if it does not exist. The root has no directory.
// +checklocksread:m.mu
func (m *Mem) lookupLocked(op, name string) (parent *dir, base string, node *inode, err error) {
	if name == "" {
		return nil, "", nil, memError(op, name, syscall.ENOENT)
	}
	node = m.root
	rest := strings.TrimPrefix(path.Clean("/"+name), "/")
	for rest != "" {
		if node == nil {
			return nil, "", nil, memError(op, name, syscall.ENOENT)
		}
		if node.dir == nil {
			return nil, "", nil, memError(op, name, syscall.ENOTDIR)
		}
		base, rest, _ = strings.Cut(rest, "/")
		parent = node.dir
		node = parent.names[base]
	}
	return parent, base, node, nil
}

// findLocked returns the node of name, or ENOENT.
// +checklocksread:m.mu
func (m *Mem) findLocked(op, name string) (*inode, error) {
	_, _, node, err := m.lookupLocked(op, name)
	if err == nil && node == nil {
		err = memError(op, name, syscall.ENOENT)
	}
	return node, err
}

// linkLocked and dropNameLocked maintain the link count of a node.
func (m *Mem) linkLocked(d *dir, name string, node *inode) {
	node.nlink++
	d.change(dirOp{seq: m.seq.Add(1), name: name, node: node}, m.tracked)
}

// +checklocks:m.mu
func (m *Mem) dropNameLocked(node *inode) {
	node.nlink--
	m.reclaimLocked(node)
}

// maxRemoved is the number of removed files whose contents are kept.
const maxRemoved = 4

// reclaimLocked releases the space of a file without names and handles.
// +checklocks:m.mu
func (m *Mem) reclaimLocked(node *inode) {
	if node.nlink > 0 || node.open > 0 || node.dir != nil {
		return
	}
	node.mu.Lock()
	defer node.mu.Unlock()
	m.used.Add(-node.alloc)
	node.alloc = 0
	if m.tracked {
		if len(m.removed) == maxRemoved {
			m.removed = slices.Clone(m.removed[1:])
		}
		m.removed = append(m.removed, node.cache.Freeze())
	}
}

// Create implements FS.
func (m *Mem) Create(name string) (File, error) {
	m.begin(&Op{Kind: "create", Name: name})
	m.mu.Lock()
	defer m.mu.Unlock()
	parent, base, node, err := m.lookupLocked("create", name)
	if err == nil && node != nil {
		err = memError("create", name, syscall.EEXIST)
	}
	if err != nil {
		return nil, err
	}
	node = m.newNodeLocked(nil)
	m.linkLocked(parent, base, node)
	return m.openLocked(name, node, true), nil
}

// Open implements FS.
func (m *Mem) Open(name string) (File, error) { return m.open(name, false) }

// OpenReadWrite implements FS.
func (m *Mem) OpenReadWrite(name string) (File, error) { return m.open(name, true) }

func (m *Mem) open(name string, write bool) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	node, err := m.findLocked("open", name)
	if err == nil && node.dir != nil {
		err = memError("open", name, ErrNotRegular)
	}
	if err != nil {
		return nil, err
	}
	return m.openLocked(name, node, write), nil
}

func (m *Mem) openLocked(name string, node *inode, write bool) *memFile {
	node.open++
	return &memFile{m: m, node: node, name: name, write: write}
}

// Rename implements FS.
func (m *Mem) Rename(oldname, newname string) error {
	m.begin(&Op{Kind: "rename", Name: oldname, NewName: newname})
	m.mu.Lock()
	defer m.mu.Unlock()
	fromDir, from, node, err := m.lookupLocked("rename", oldname)
	if err == nil && (node == nil || fromDir == nil) {
		err = memError("rename", oldname, syscall.ENOENT)
	}
	if err != nil {
		return err
	}
	toDir, to, target, err := m.lookupLocked("rename", newname)
	switch {
	case err != nil:
		return err
	case target == node:
		return nil // POSIX: both names stay
	case toDir == nil || target != nil && target.dir != nil:
		return memError("rename", newname, syscall.EEXIST)
	case node.dir != nil && target != nil:
		return memError("rename", newname, syscall.ENOTDIR)
	case node.dir != nil && strings.HasPrefix(path.Clean("/"+newname), path.Clean("/"+oldname)+"/"):
		return memError("rename", newname, syscall.EINVAL)
	}
	if fromDir == toDir {
		toDir.change(dirOp{seq: m.seq.Add(1), name: to, node: node, from: from}, m.tracked)
	} else {
		toDir.change(dirOp{seq: m.seq.Add(1), name: to, node: node}, m.tracked)
		fromDir.change(dirOp{seq: m.seq.Add(1), name: from}, m.tracked)
	}
	if target != nil {
		m.dropNameLocked(target)
	}
	return nil
}

// Link implements FS.
func (m *Mem) Link(oldname, newname string) error {
	m.begin(&Op{Kind: "link", Name: oldname, NewName: newname})
	m.mu.Lock()
	defer m.mu.Unlock()
	node, err := m.findLocked("link", oldname)
	if err == nil && node.dir != nil {
		err = memError("link", oldname, syscall.EPERM)
	}
	if err != nil {
		return err
	}
	parent, base, target, err := m.lookupLocked("link", newname)
	if err == nil && target != nil {
		err = memError("link", newname, syscall.EEXIST)
	}
	if err != nil {
		return err
	}
	m.linkLocked(parent, base, node)
	return nil
}

// Remove implements FS.
func (m *Mem) Remove(name string) error {
	m.begin(&Op{Kind: "remove", Name: name})
	m.mu.Lock()
	defer m.mu.Unlock()
	parent, base, node, err := m.lookupLocked("remove", name)
	switch {
	case err != nil:
		return err
	case node == nil:
		return memError("remove", name, syscall.ENOENT)
	case parent == nil:
		return memError("remove", name, syscall.EINVAL)
	case node.dir != nil && len(node.dir.names) > 0:
		return memError("remove", name, syscall.ENOTEMPTY)
	}
	parent.change(dirOp{seq: m.seq.Add(1), name: base}, m.tracked)
	m.dropNameLocked(node)
	return nil
}

// List implements FS.
func (m *Mem) List(name string) ([]string, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	node, err := m.findLocked("list", name)
	if err == nil && node.dir == nil {
		err = memError("list", name, syscall.ENOTDIR)
	}
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(node.dir.names)), nil
}

// Stat implements FS.
func (m *Mem) Stat(name string) (Info, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	node, err := m.findLocked("stat", name)
	if err != nil {
		return Info{}, err
	}
	if node.dir != nil {
		return Info{Dir: true}, nil
	}
	node.mu.RLock()
	defer node.mu.RUnlock()
	return Info{Size: node.cache.Size, Regular: true}, nil
}

// MkdirAll implements FS.
func (m *Mem) MkdirAll(name string) error {
	m.begin(&Op{Kind: "mkdir", Name: name})
	m.mu.Lock()
	defer m.mu.Unlock()
	if name == "" {
		return memError("mkdir", name, syscall.ENOENT)
	}
	node := m.root
	for base := range strings.SplitSeq(strings.Trim(path.Clean("/"+name), "/"), "/") {
		if base == "" {
			break
		}
		next := node.dir.names[base]
		if next == nil {
			next = m.newNodeLocked(newDir()) // +checklocksignore: in a range function
			m.linkLocked(node.dir, base, next)
		}
		if next.dir == nil {
			return memError("mkdir", name, syscall.ENOTDIR)
		}
		node = next
	}
	return nil
}

// SyncDir implements FS.
func (m *Mem) SyncDir(name string) error {
	m.begin(&Op{Kind: "sync-dir", Name: name})
	m.mu.Lock()
	defer m.mu.Unlock()
	node, err := m.findLocked("sync", name)
	if err == nil && node.dir == nil {
		err = memError("sync", name, syscall.ENOTDIR)
	}
	if err != nil {
		return err
	}
	node.dir.sync()
	return nil
}

// memHolder is the text of a Mem's lock file. It is constant, so that tests can compare
// contents.
const memHolder = "this process"

// Lock implements FS. A copy made by Clone or Crash has no locks.
func (m *Mem) Lock(name string) (io.Closer, error) {
	m.begin(&Op{Kind: "lock", Name: name})
	m.mu.Lock()
	defer m.mu.Unlock()
	parent, base, node, err := m.lookupLocked("lock", name)
	if err == nil && node != nil && node.dir != nil {
		err = memError("lock", name, ErrNotRegular)
	}
	if err != nil {
		return nil, err
	}
	if node == nil {
		node = m.newNodeLocked(nil)
		m.linkLocked(parent, base, node)
	}
	if _, ok := m.locks[node]; ok {
		return nil, &LockedError{Name: name, Holder: memHolder}
	}
	m.locks[node] = struct{}{}
	f := m.openLocked(name, node, true)
	// As on a real disk, the text may not fit.
	f.writeCacheLocked([]byte(memHolder+"\n"), 0)
	return &memLock{m: m, f: f}, nil
}

// Locked implements FS.
func (m *Mem) Locked(name string) (holder string, held bool, err error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	node, err := m.findLocked("lock", name)
	if err == nil && node.dir != nil {
		err = memError("lock", name, ErrNotRegular)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if _, held = m.locks[node]; held {
		holder = memHolder
	}
	return holder, held, err
}

type memLock struct {
	m *Mem
	f *memFile
}

func (l *memLock) Close() error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if l.f.closed.Load() {
		return nil
	}
	delete(l.m.locks, l.f.node)
	l.f.closeLocked() // +checklocksignore: l.f.m is l.m
	return nil
}

// reserve takes up to n bytes of the capacity; with all it takes n or none.
func (m *Mem) reserve(n int64, all bool) int64 {
	for {
		used, limit := m.used.Load(), m.capacity.Load()
		grant := n
		if limit > 0 && used+n > limit {
			grant = max(limit-used, 0)
			if all {
				grant = 0
			}
		}
		if m.used.CompareAndSwap(used, used+grant) {
			return grant
		}
	}
}
