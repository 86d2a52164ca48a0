package vfs

import (
	"maps"
	"sync"

	"github.com/tablerock-db/tablerock/vfs/internal/crash"
)

// maxFileBytes limits offsets: a huge one would allocate a huge list of chunks.
const maxFileBytes = 1 << 40

// inode is a file or a directory of a Mem.
type inode struct {
	id  uint64
	dir *dir // nil for a file

	// Guarded by Mem.mu.
	nlink  int    // names in the current directories
	open   int    // open handles
	copied *inode // its copy while the Mem is copied or crashes

	// syncing serializes syncs, which call the hook between their steps.
	syncing sync.Mutex

	mu sync.RWMutex
	// The contents that readers see.
	// +checklocks:mu
	cache crash.Image
	// Bytes that count against the capacity: [0, alloc).
	// +checklocks:mu
	alloc int64

	// Crash tracking only.
	// +checklocks:mu
	disk crash.File
}

// dir holds the entries of a directory, guarded by Mem.mu.
type dir struct {
	names map[string]*inode
	// durable holds the entries that survive any crash; nil means names.
	durable map[string]*inode
	pending []dirOp
}

func newDir() *dir { return &dir{names: map[string]*inode{}} }

// dirOp is one change of a name.
type dirOp struct {
	seq  uint64
	name string
	node *inode // nil removes the name
	from string // the old name of a rename within the directory
}

func (op *dirOp) apply(names map[string]*inode) {
	if op.from != "" {
		delete(names, op.from)
	}
	if op.node == nil {
		delete(names, op.name)
		return
	}
	names[op.name] = op.node
}

// durableNames returns the entries that survive any crash.
func (d *dir) durableNames() map[string]*inode {
	if d.durable == nil {
		return d.names
	}
	return d.durable
}

// change makes a change. If tracked, a crash can lose it until the next sync.
func (d *dir) change(op dirOp, tracked bool) {
	if tracked {
		if d.durable == nil {
			d.durable = maps.Clone(d.names)
		}
		d.pending = append(d.pending, op)
	}
	op.apply(d.names)
}

func (d *dir) sync() { d.durable, d.pending = nil, nil }
