package vfs

import (
	"maps"
	"slices"
	"sync"

	"github.com/tablerock-db/tablerock/vfs/internal/cow"
)

const (
	// sectorBytes is what a disk writes whole or not at all.
	sectorBytes = 512
	// maxFileBytes keeps a wild offset from taking all memory for the list of
	// a file's chunks.
	maxFileBytes = 1 << 40
)

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
	cache cow.Image
	// Bytes that count against the capacity: [0, alloc). +checklocks:mu
	alloc int64

	// Crash tracking only. durable with pending applied in order is cache,
	// unless a failed sync parted them. +checklocks:mu
	durable cow.Image
	// +checklocks:mu
	pending []item
	// The last syncs, for devices that lie. +checklocks:mu
	history []syncRecord
}

// item is one change of a file that no sync has covered: data, or a size, or
// both.
type item struct {
	seq uint64 // position in the order of all changes of the Mem
	// data is whole sectors as they were after the change, at off. It is never
	// changed once the item is made.
	data []byte
	off  int64
	// size is what the file is at least (or exactly, with cut) after it.
	size int64
	cut  bool
}

func (it *item) sectors() int { return len(it.data) / sectorBytes }

// split cuts a write after its first n sectors.
func (it item) split(n int) (head, tail item) {
	head, tail = it, it
	at := it.off + int64(n)*sectorBytes
	head.data, tail.data = it.data[:at-it.off], it.data[at-it.off:]
	head.size = min(it.size, at)
	tail.off = at
	return head, tail
}

// apply makes the change in a durable image.
func (it *item) apply(im *cow.Image) {
	if it.cut {
		im.Truncate(it.size)
		return
	}
	im.Size = max(im.Size, it.size)
	if n := im.Size - it.off; n > 0 {
		im.Put(it.data[:min(int64(len(it.data)), n)], it.off)
	}
}

// syncRecord is one sync that reported success.
type syncRecord struct {
	before cow.Image
	items  []item
}

// historySyncs is how many of a file's syncs a lying device may have dropped.
const historySyncs = 4

func (n *inode) rememberSyncLocked() {
	if len(n.history) == historySyncs {
		n.history = slices.Clone(n.history[1:])
	}
	n.history = append(n.history, syncRecord{before: n.durable.Freeze()})
}

// flushLocked makes the first changes durable, up to a number of sectors, and
// notes them in the newest record of the history.
func (n *inode) flushLocked(sectors int) {
	done := 0
	for done < len(n.pending) && sectors > 0 {
		it := &n.pending[done]
		if it.sectors() > sectors {
			break
		}
		sectors -= max(it.sectors(), 1)
		done++
	}
	flushed, rest := n.pending[:done], n.pending[done:]
	if sectors > 0 && len(rest) > 0 {
		head, tail := rest[0].split(sectors)
		flushed = append(slices.Clone(flushed), head)
		rest = append([]item{tail}, rest[1:]...)
	}
	for i := range flushed {
		flushed[i].apply(&n.durable)
	}
	last := &n.history[len(n.history)-1]
	last.items = append(last.items, flushed...)
	n.pending = rest
	if len(rest) == 0 {
		n.pending = nil
	}
}

func (n *inode) pendingSectorsLocked() int {
	sum := 0
	for i := range n.pending {
		sum += max(n.pending[i].sectors(), 1)
	}
	return sum
}

// noteWriteLocked records a write that cache already holds.
func (n *inode) noteWriteLocked(seq uint64, off, end int64) {
	first, last := off/sectorBytes*sectorBytes, (end+sectorBytes-1)/sectorBytes*sectorBytes
	data := make([]byte, last-first)
	n.cache.Read(data, first)
	n.pending = append(n.pending, item{seq: seq, data: data, off: first, size: end})
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
