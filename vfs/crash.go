package vfs

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/tablerock-db/tablerock/vfs/internal/crash"
)

// CrashModes lists the modes of a crash in which synced changes survive.
var CrashModes = []string{crashMin, crashMax, "prefix", "subset", crashSector, "dirs"}

const (
	crashMin    = "min"
	crashMax    = "max"
	crashSector = "sector"
	crashLying  = "lying"
)

// CrashOptions selects one of the disks that a power cut can leave. Equal options
// after equal operations give equal disks.
type CrashOptions struct {
	// Mode selects the unsynced changes that survive:
	//
	//	min     none
	//	max     all
	//	prefix  those before a random point of their order, which may be in the
	//	        middle of a write
	//	subset  each change as a whole, at random
	//	sector  each sector of each write, each size and each name, independently
	//	        and at random
	//	dirs    all contents, and each name at random
	//	lying   as sector, on a device that acknowledged the last syncs of one file
	//	        without writing, in whole or in one sector. Acknowledged data may
	//	        be lost; a program passes if it reports the loss. Without a synced
	//	        file it equals sector.
	Mode string
	// Seed selects one of the disks that Mode allows.
	Seed uint64
	// File is the file whose syncs were lost in mode lying. The default is
	// a random one. Other modes ignore it.
	File string
}

// Crash returns a disk that a power cut at this time could leave. The result is an
// independent Mem with crash tracking: everything on it is durable, no file is open
// and no lock is held. It is cheap: contents are copied on write. Crash panics if m was
// not made by NewCrashMem, and if the mode is unknown.
func (m *Mem) Crash(o CrashOptions) *Mem { return m.crash(o, crash.FillAny, 0) }

// crash is Crash with a given Fill and, in mode prefix, the number of sectors,
// sizes and names to keep in the order of the changes; 0 draws the number.
// +checklocksignore
func (m *Mem) crash(o CrashOptions, fill crash.Fill, keep int) *Mem {
	if !m.tracked {
		panic("vfs: Crash of a Mem that NewCrashMem did not make")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	d := newDraw(o, fill)
	var l lyingFile
	if o.Mode == crashLying {
		l = d.pickLyingLocked(m, o.File)
	}
	p := newPlanLocked(m, l)
	return p.buildLocked(d.choose(p, o.Mode, keep), d)
}

// CrashStateCount returns the number of ways to keep or lose each pending sector (in
// each of its versions), size and name, or math.MaxUint64 on overflow. Different ways
// can leave equal disks.
func (m *Mem) CrashStateCount() uint64 {
	return newPlanLocked(m.Clone(), lyingFile{}).Count() // +checklocksignore: the copy is not shared
}

// CrashStates yields the disks that a power cut at this time could leave. If
// CrashStateCount is at most limit, it yields all: each way once with unwritten sectors
// as zeros and, if there are any, again as garbage and as stale sectors. Otherwise it
// yields a fixed sample of limit ways: all changes lost, all kept, then random ones.
// Later changes of m do not affect the sequence.
func (m *Mem) CrashStates(limit int) iter.Seq[*Mem] {
	if !m.tracked {
		panic("vfs: CrashStates of a Mem that NewCrashMem did not make")
	}
	return m.Clone().crashStates(limit)
}

// crashStates is CrashStates of a Mem that is not shared.
// +checklocksignore
func (m *Mem) crashStates(limit int) iter.Seq[*Mem] {
	return func(yield func(*Mem) bool) {
		p := newPlanLocked(m, lyingFile{})
		for pick := range p.picks(limit) {
			for _, fill := range [...]crash.Fill{crash.FillZeros, crash.FillGarbage, crash.FillStale} {
				d := newDraw(CrashOptions{}, fill)
				m.mu.Lock()
				state := p.buildLocked(pick, d)
				m.mu.Unlock()
				if fill != crash.FillZeros && !d.filled {
					break
				}
				if !yield(state) {
					return
				}
			}
		}
	}
}

// picks yields all picks of the plan, or a sample of limit.
func (p *plan) picks(limit int) iter.Seq[[]int] {
	if p.Count() <= uint64(max(limit, 0)) {
		return p.Picks()
	}
	return func(yield func([]int) bool) {
		for i := range limit {
			o := CrashOptions{Mode: crashSector, Seed: uint64(i)}
			switch i {
			case 0:
				o.Mode = crashMin
			case 1:
				o.Mode = crashMax
			}
			if !yield(newDraw(o, crash.FillAny).choose(p, o.Mode, 0)) {
				return
			}
		}
	}
}

// Clone returns an independent copy with all unsynced changes: the file system that a
// killed process leaves. In the copy no file is open, no lock is held, and there is no
// hook. Contents are copied on write.
func (m *Mem) Clone() *Mem { return m.clone() }

// clone is Clone.
// +checklocksignore
func (m *Mem) clone() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.emptyCopyLocked()
	nodes := m.reachableLocked()
	for _, node := range nodes {
		node.copied = node.cloneFile()
	}
	c.root = m.root.copied
	for _, node := range nodes {
		if node.dir != nil {
			node.copied.dir = node.dir.clone()
		}
	}
	for _, node := range nodes {
		node.copied = nil
	}
	c.countLinksLocked()
	return c
}

// +checklocksignore
func (m *Mem) emptyCopyLocked() *Mem {
	c := &Mem{
		tracked: m.tracked,
		nextID:  m.nextID,
		locks:   map[*inode]struct{}{},
		removed: slices.Clone(m.removed),
	}
	c.capacity.Store(m.capacity.Load())
	c.seq.Store(m.seq.Load())
	return c
}

// reachableLocked returns the files and directories that have a name or could have one
// after a crash, in order of creation.
// +checklocksignore
func (m *Mem) reachableLocked() []*inode {
	seen := make(map[*inode]struct{}, 16)
	var nodes []*inode
	visit := func(n *inode) {
		if n == nil {
			return
		}
		if _, ok := seen[n]; !ok {
			seen[n] = struct{}{}
			nodes = append(nodes, n)
		}
	}
	visit(m.root)
	for i := 0; i < len(nodes); i++ {
		d := nodes[i].dir
		if d == nil {
			continue
		}
		for _, n := range d.names {
			visit(n)
		}
		for _, n := range d.durable {
			visit(n)
		}
		for j := range d.pending {
			visit(d.pending[j].node)
		}
	}
	slices.SortFunc(nodes, func(a, b *inode) int { return cmp.Compare(a.id, b.id) })
	return nodes
}

// cloneFile copies a node without the entries of a directory.
// +checklocksignore
func (n *inode) cloneFile() *inode {
	n.mu.Lock()
	defer n.mu.Unlock()
	return &inode{id: n.id, cache: n.cache.Freeze(), alloc: n.alloc, disk: n.disk.Clone()}
}

// clone copies the entries and replaces each node by its copy.
func (d *dir) clone() *dir {
	return &dir{
		names:   copyNames(d.names),
		durable: copyNames(d.durable),
		pending: copyOps(d.pending),
	}
}

func copyNames(names map[string]*inode) map[string]*inode {
	names = maps.Clone(names)
	for name, node := range names {
		names[name] = node.copied
	}
	return names
}

func copyOps(ops []dirOp) []dirOp {
	ops = slices.Clone(ops)
	for i := range ops {
		if ops[i].node != nil {
			ops[i].node = ops[i].node.copied
		}
	}
	return ops
}

// countLinksLocked computes link counts and the used space from the entries.
// +checklocksignore
func (m *Mem) countLinksLocked() {
	var used int64
	var count func(n *inode)
	count = func(n *inode) {
		n.nlink++
		if n.dir == nil {
			if n.nlink == 1 {
				used += n.alloc
			}
			return
		}
		for _, child := range n.dir.names {
			count(child)
		}
	}
	count(m.root)
	m.used.Store(used)
}
