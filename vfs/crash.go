package vfs

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/tablerock-db/tablerock/vfs/internal/crash"
)

// CrashMode says which unsynced changes a power cut leaves on the disk.
type CrashMode uint8

const (
	// CrashMin keeps nothing.
	CrashMin CrashMode = iota + 1
	// CrashMax keeps everything.
	CrashMax
	// CrashPrefix keeps the changes up to a random point of their order, which
	// can be within a write.
	CrashPrefix
	// CrashSubset keeps or loses each change as a whole.
	CrashSubset
	// CrashSector keeps or loses each sector of each write, each size and
	// each name by itself.
	CrashSector
	// CrashDirs keeps all contents, and keeps or loses each name by itself.
	CrashDirs
	// CrashLying takes one file's last syncs back, in whole or in one sector,
	// and otherwise is CrashSector. It breaks the promise of Sync: what was
	// acknowledged may be lost, and must be missed. Without a synced file it
	// is CrashSector.
	CrashLying
)

// CrashModes lists the modes that keep the promise of Sync.
var CrashModes = []CrashMode{CrashMin, CrashMax, CrashPrefix, CrashSubset, CrashSector, CrashDirs}

// String returns the mode's name.
func (c CrashMode) String() string {
	names := [...]string{"", "min", "max", "prefix", "subset", "sector", "dirs", "lying"}
	if int(c) < len(names) && c != 0 {
		return names[c]
	}
	return "unknown"
}

// CrashOptions pick one of the disks that a power cut can leave. Equal options
// on equal histories give equal disks.
type CrashOptions struct {
	Mode CrashMode
	Seed uint64
	// File names the file whose syncs did nothing in mode CrashLying. Empty
	// picks one by Seed. Other modes ignore it.
	File string
}

// Crash returns a disk that power loss at this moment could leave, as an
// independent Mem with crash tracking, on which everything is durable, no file
// is open and no lock is held. Contents are shared until they change, so it
// costs little. It panics unless NewCrashMem made m.
func (m *Mem) Crash(o CrashOptions) *Mem { return m.crash(o, crash.FillAny, 0) }

// crash is Crash with a given Fill and, in mode CrashPrefix, the number of
// sectors, sizes and names to keep, in the order of the changes; 0 draws it.
func (m *Mem) crash(o CrashOptions, fill crash.Fill, keep int) *Mem {
	if !m.tracked {
		panic("vfs: Crash of a Mem that NewCrashMem did not make")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	d := newDraw(o, fill)
	var l lie
	if o.Mode == CrashLying {
		l = d.liarLocked(m, o.File)
	}
	p := newPlanLocked(m, l)
	return p.buildLocked(d.choose(p, o.Mode, keep), d)
}

// CrashStateCount returns how many ways there are to keep or lose each pending
// sector (in each of its versions), size and name, or math.MaxUint64 if that
// does not fit. Different ways can leave equal disks.
func (m *Mem) CrashStateCount() uint64 {
	return newPlanLocked(m.Clone(), lie{}).Count()
}

// CrashStates yields every disk that power loss at this moment could leave, if
// CrashStateCount is at most limit: each way once with unwritten sectors as
// zeros and, if it has any, again as garbage and as stale sectors. With more
// ways than limit it yields that many: nothing and everything kept, then
// random ones, always the same. Later changes of m do not matter to it.
func (m *Mem) CrashStates(limit int) iter.Seq[*Mem] {
	if !m.tracked {
		panic("vfs: CrashStates of a Mem that NewCrashMem did not make")
	}
	m = m.Clone()
	return func(yield func(*Mem) bool) {
		p := newPlanLocked(m, lie{})
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

// picks yields every choice of one version per unit, or a sample of limit.
func (p *plan) picks(limit int) iter.Seq[[]int] {
	if p.Count() <= uint64(max(limit, 0)) {
		return p.Picks()
	}
	return func(yield func([]int) bool) {
		for i := range limit {
			o := CrashOptions{Mode: CrashSector, Seed: uint64(i)}
			switch i {
			case 0:
				o.Mode = CrashMin
			case 1:
				o.Mode = CrashMax
			}
			if !yield(newDraw(o, crash.FillAny).choose(p, o.Mode, 0)) {
				return
			}
		}
	}
}

// Clone returns an independent copy of everything, unsynced changes included:
// what a process that is killed leaves behind. No file is open in it, no lock
// is held, and it has no hook. Contents are shared until they change.
func (m *Mem) Clone() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.emptyCopyLocked()
	nodes := m.reachableLocked()
	for _, node := range nodes {
		node.twin = node.cloneFile()
	}
	c.root = m.root.twin
	for _, node := range nodes {
		if node.dir != nil {
			node.twin.dir = node.dir.clone()
		}
	}
	for _, node := range nodes {
		node.twin = nil
	}
	c.countLinksLocked()
	return c
}

func (m *Mem) emptyCopyLocked() *Mem {
	c := &Mem{
		tracked: m.tracked,
		nextID:  m.nextID,
		locks:   map[*inode]struct{}{},
		graves:  slices.Clone(m.graves),
	}
	c.capacity.Store(m.capacity.Load())
	c.seq.Store(m.seq.Load())
	return c
}

// reachableLocked returns every file and directory that has a name at present,
// or could have one after a crash, in the order they were made.
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

// cloneFile copies all but a directory's entries.
func (n *inode) cloneFile() *inode {
	n.mu.Lock()
	defer n.mu.Unlock()
	return &inode{id: n.id, cache: n.cache.Freeze(), alloc: n.alloc, disk: n.disk.Clone()}
}

// clone copies entries, with each node's twin in its place.
func (d *dir) clone() *dir {
	return &dir{
		names:   twins(d.names),
		durable: twins(d.durable),
		pending: twinOps(d.pending),
	}
}

func twins(names map[string]*inode) map[string]*inode {
	names = maps.Clone(names)
	for name, node := range names {
		names[name] = node.twin
	}
	return names
}

func twinOps(ops []dirOp) []dirOp {
	ops = slices.Clone(ops)
	for i := range ops {
		if ops[i].node != nil {
			ops[i].node = ops[i].node.twin
		}
	}
	return ops
}

// countLinksLocked derives the numbers of names and the space in use from the
// present entries.
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
