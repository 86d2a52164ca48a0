package vfs

import (
	"maps"
	"sync"

	"github.com/tablerock-db/tablerock/vfs/internal/crash"
)

// maxFileBytes keeps a wild offset from taking all memory for the list of a file's
// chunks.
const maxFileBytes = 1 << 40

// inode is a file or a directory of a Mem.
type inode struct {
	id  uint64
	dir *dir // nil for a file

	// Guarded by Mem.mu.
	nlink int    // names in the present directories
	open  int    // open handles
	twin  *inode // its copy while the Mem is copied

	// syncing keeps syncs with a hook inside them apart.
	syncing sync.Mutex

	mu sync.RWMutex
	// What readers see. +checklocks:mu
	cache crash.Image
	// Bytes that count against the capacity: [0, alloc). +checklocks:mu
	alloc int64

	// Crash tracking only. +checklocks:mu
	disk crash.File
}

// dir is the entries of a directory, guarded by Mem.mu.
type dir struct {
	names map[string]*inode
	// durable is what a crash leaves for certain; nil means as names.
	durable map[string]*inode
	pending []dirOp
}

func newDir() *dir { return &dir{names: map[string]*inode{}} }

// dirOp is one change of names.
type dirOp struct {
	seq  uint64
	name string
	node *inode // nil: the name goes away
	from string // for a rename within the directory: the name that goes away
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

// durableNames returns the entries that a crash leaves for certain.
func (d *dir) durableNames() map[string]*inode {
	if d.durable == nil {
		return d.names
	}
	return d.durable
}

// change makes a change, to be lost in a crash if it is tracked.
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
