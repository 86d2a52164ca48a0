package vfs

import (
	"maps"
	"slices"

	"github.com/tablerock-db/tablerock/vfs/internal/crash"
)

// plan is what is undecided on the disk of a Mem.
type plan struct {
	crash.Plan
	m      *Mem
	nodes  []*inode
	groups []*inode // the file or directory of each group of the Plan
}

// lie is a file whose last syncs did nothing.
type lie struct {
	node  *inode
	syncs int
}

func newPlanLocked(m *Mem, l lie) *plan {
	p := &plan{m: m, nodes: m.reachableLocked()}
	for _, n := range p.nodes {
		var undecided bool
		switch {
		case n.dir != nil:
			seqs := make([]uint64, len(n.dir.pending))
			for i := range seqs {
				seqs[i] = n.dir.pending[i].seq
			}
			undecided = p.AddNames(seqs)
		case n == l.node:
			undecided = p.addFile(n, l.syncs)
		default:
			undecided = p.addFile(n, 0)
		}
		if undecided {
			p.groups = append(p.groups, n)
		}
	}
	return p
}

func (p *plan) addFile(n *inode, lies int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return p.AddFile(&n.disk, lies)
}

// buildLocked makes the disk of one pick.
func (p *plan) buildLocked(pick []int, d *draw) *Mem {
	c := p.m.emptyCopyLocked()
	for _, n := range p.nodes {
		t := &inode{id: n.id}
		if n.dir == nil {
			n.mu.Lock()
			t.disk.Durable = n.disk.Durable.Freeze()
			n.mu.Unlock()
		} else {
			t.dir = &dir{names: maps.Clone(n.dir.durableNames())}
		}
		n.twin = t
	}
	for i, n := range p.groups {
		if n.dir == nil {
			n.twin.disk.Durable = p.Contents(i, pick, func(im *crash.Image, at int64) { d.fillSector(p, n, im, at) })
			continue
		}
		for _, kept := range p.Names(i, pick) {
			n.dir.pending[kept].apply(n.twin.dir.names)
		}
	}
	for _, n := range p.nodes {
		t := n.twin
		if t.dir == nil {
			t.cache = t.disk.Durable.Freeze()
			t.alloc = t.cache.Size
			continue
		}
		for name, node := range t.dir.names {
			t.dir.names[name] = node.twin
		}
	}
	c.root = p.m.root.twin
	for _, n := range p.nodes {
		n.twin = nil
	}
	c.countLinksLocked()
	return c
}

// draw is the source of one crash's random choices.
type draw struct {
	crash.Draw
	fill   crash.Fill
	filled bool // a sector was filled
}

func newDraw(o CrashOptions, fill crash.Fill) *draw {
	return &draw{Draw: crash.NewDraw(o.Seed, uint64(o.Mode)), fill: fill}
}

// liarLocked picks a file and how many of its syncs did nothing; none if there is
// none.
func (d *draw) liarLocked(m *Mem, name string) lie {
	var files []*inode
	if name != "" {
		if n, err := m.findLocked("crash", name); err == nil {
			files = append(files, n)
		}
	} else {
		files = m.reachableLocked()
	}
	files = slices.DeleteFunc(files, func(n *inode) bool { return n.disk.Syncs() == 0 })
	if len(files) == 0 {
		return lie{}
	}
	n := files[d.Rand.IntN(len(files))]
	return lie{node: n, syncs: 1 + d.Rand.IntN(n.disk.Syncs())}
}

// choose picks a version for each unit.
func (d *draw) choose(p *plan, mode CrashMode, keep int) []int {
	switch mode {
	case CrashMin:
		return p.Nothing()
	case CrashMax:
		return p.Everything()
	case CrashPrefix:
		return d.Prefix(&p.Plan, keep)
	case CrashSubset:
		return d.Subset(&p.Plan)
	case CrashSector, CrashLying:
		return d.Sectors(&p.Plan)
	case CrashDirs:
		return d.Names(&p.Plan)
	}
	panic("vfs: unknown CrashMode")
}

// fillSector gives a sector of file n that was never written something to read.
func (d *draw) fillSector(p *plan, n *inode, im *crash.Image, at int64) {
	d.filled = true
	fill := d.fill
	if fill == crash.FillAny {
		fill = crash.FillZeros + crash.Fill(d.Rand.IntN(3))
	}
	b := make([]byte, crash.SectorBytes)
	if fill == crash.FillStale && !d.stale(p, n, b, at) {
		fill = crash.FillGarbage
	}
	if fill == crash.FillGarbage {
		for i := range b {
			b[i] = byte(d.Rand.Uint32())
		}
	}
	im.Put(b, at)
}

// stale reads the sector at the same place of a random other file.
func (d *draw) stale(p *plan, n *inode, b []byte, at int64) bool {
	var from []*crash.Image
	for i := range p.m.graves {
		if p.m.graves[i].Size > at {
			from = append(from, &p.m.graves[i])
		}
	}
	for _, other := range p.nodes {
		if other != n && other.dir == nil && other.disk.Durable.Size > at {
			from = append(from, &other.disk.Durable)
		}
	}
	if len(from) == 0 {
		return false
	}
	from[d.Rand.IntN(len(from))].Read(b, at)
	return true
}
