package vfs

import (
	"maps"
	"slices"

	"github.com/tablerock-db/tablerock/vfs/internal/crash"
)

// plan lists the pending changes of a Mem.
type plan struct {
	crash.Plan
	m      *Mem
	nodes  []*inode
	groups []*inode // the file or directory of each group of the Plan
}

// lyingFile is a file whose last syncs were acknowledged without a write.
type lyingFile struct {
	node  *inode
	syncs int
}

// +checklocksignore
func newPlanLocked(m *Mem, l lyingFile) *plan {
	p := &plan{m: m, nodes: m.reachableLocked()}
	for _, n := range p.nodes {
		var pending bool
		switch {
		case n.dir != nil:
			seqs := make([]uint64, len(n.dir.pending))
			for i := range seqs {
				seqs[i] = n.dir.pending[i].seq
			}
			pending = p.AddNames(seqs)
		case n == l.node:
			pending = p.addFile(n, l.syncs)
		default:
			pending = p.addFile(n, 0)
		}
		if pending {
			p.groups = append(p.groups, n)
		}
	}
	return p
}

// +checklocksignore
func (p *plan) addFile(n *inode, dropped int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return p.AddFile(&n.disk, dropped)
}

// buildLocked returns the disk of one pick.
// +checklocksignore
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
		n.copied = t
	}
	for i, n := range p.groups {
		if n.dir == nil {
			n.copied.disk.Durable = p.Contents(i, pick, func(im *crash.Image, at int64) { d.fillSector(p, n, im, at) })
			continue
		}
		for _, kept := range p.Names(i, pick) {
			n.dir.pending[kept].apply(n.copied.dir.names)
		}
	}
	for _, n := range p.nodes {
		t := n.copied
		if t.dir == nil {
			t.cache = t.disk.Durable.Freeze()
			t.alloc = t.cache.Size
			continue
		}
		for name, node := range t.dir.names {
			t.dir.names[name] = node.copied
		}
	}
	c.root = p.m.root.copied
	for _, n := range p.nodes {
		n.copied = nil
	}
	c.countLinksLocked()
	return c
}

// draw makes the random choices of one crash.
type draw struct {
	crash.Draw
	fill   crash.Fill
	filled bool // a sector was filled
}

func newDraw(o CrashOptions, fill crash.Fill) *draw {
	mode := slices.Index(CrashModes, o.Mode)
	if o.Mode == crashLying {
		mode = len(CrashModes)
	}
	return &draw{Draw: crash.NewDraw(o.Seed, uint64(mode+1)), fill: fill}
}

// pickLyingLocked draws a file and the number of its syncs that were lost. The result
// is empty if no file was synced.
// +checklocksignore
func (d *draw) pickLyingLocked(m *Mem, name string) lyingFile {
	var files []*inode
	if name != "" {
		if n, err := m.findLocked("crash", name); err == nil {
			files = append(files, n)
		}
	} else {
		files = m.reachableLocked()
	}
	files = slices.DeleteFunc(files, func(n *inode) bool { return n.disk.Syncs() == 0 }) // +checklocksignore: m is locked
	if len(files) == 0 {
		return lyingFile{}
	}
	n := files[d.Rand.IntN(len(files))]
	return lyingFile{node: n, syncs: 1 + d.Rand.IntN(n.disk.Syncs())}
}

// choose returns the pick of a mode.
func (d *draw) choose(p *plan, mode string, keep int) []int {
	switch mode {
	case crashMin:
		return p.Nothing()
	case crashMax:
		return p.Everything()
	case "prefix":
		return d.Prefix(&p.Plan, keep)
	case "subset":
		return d.Subset(&p.Plan)
	case crashSector, crashLying:
		return d.Sectors(&p.Plan)
	case "dirs":
		return d.Names(&p.Plan)
	}
	panic("vfs: unknown mode of a crash: " + mode)
}

// fillSector sets the contents of a sector of file n that was never written.
// +checklocksignore
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

// stale reads the sector at the same offset of a random other file.
// +checklocksignore
func (d *draw) stale(p *plan, n *inode, b []byte, at int64) bool {
	var from []*crash.Image
	for i := range p.m.removed {
		if p.m.removed[i].Size > at {
			from = append(from, &p.m.removed[i])
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
