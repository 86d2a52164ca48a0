package vfs

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/tablerock-db/tablerock/vfs/internal/cow"
)

// plan lists what is undecided on the disk of a Mem. A crash state is a pick
// of one version for each unit: 0 is the durable one, i is versions[i-1].
type plan struct {
	m     *Mem
	nodes []*inode
	dirs  []nodePlan
	files []nodePlan
	units []unit
	parts int // sectors, sizes and names in all
}

// nodePlan is a directory or file with undecided units.
type nodePlan struct {
	node  *inode
	base  cow.Image // files: what is durable
	items []item    // files: the changes on top of it
	units [2]int    // its units are plan.units[units[0]:units[1]]
	lied  int       // files: the first items that a sync acknowledged
}

// unit is one thing that the disk holds in exactly one version: a sector, the
// size of a file between two cuts, one cut, or one change of a name.
type unit struct {
	kind     unitKind
	sector   int64
	versions []version
}

type unitKind uint8

const (
	unitName unitKind = iota
	unitSize
	unitCut
	unitSector
)

// version is one state of a unit: the item that brings it, and which part of
// the item, counted from 1 for sectors; a size or name is part 0, so that a
// prefix can hold a size without its data.
type version struct {
	seq  uint64
	item int
	part int
}

// lie is a file whose last syncs did nothing.
type lie struct {
	node  *inode
	syncs int
}

func newPlanLocked(m *Mem, l *lie) *plan {
	p := &plan{m: m, nodes: m.reachableLocked()}
	for _, n := range p.nodes {
		np := nodePlan{node: n}
		np.units[0] = len(p.units)
		switch {
		case n.dir != nil:
			for i, op := range n.dir.pending {
				p.units = append(p.units, unit{kind: unitName, versions: []version{{seq: op.seq, item: i}}})
			}
		default:
			np.addFile(p, l)
		}
		np.units[1] = len(p.units)
		if np.units[1] == np.units[0] {
			continue
		}
		if n.dir != nil {
			p.dirs = append(p.dirs, np)
		} else {
			p.files = append(p.files, np)
		}
	}
	for i := range p.units {
		p.parts += len(p.units[i].versions)
	}
	return p
}

func (np *nodePlan) addFile(p *plan, l *lie) {
	n := np.node
	n.mu.Lock()
	defer n.mu.Unlock()
	np.items = n.pending
	np.base = n.durable.Freeze()
	if l != nil && l.node == n {
		records := n.history[len(n.history)-l.syncs:]
		np.base = records[0].before
		np.items = nil
		for _, r := range records {
			np.items = append(np.items, r.items...)
		}
		np.lied = len(np.items)
		np.items = append(np.items, n.pending...)
	}
	if len(np.items) > 0 {
		np.addSizes(p)
		np.addSectors(p)
	}
}

// addSizes makes one unit of all growth between two cuts, since of several
// growths that survive only the largest shows.
func (np *nodePlan) addSizes(p *plan) {
	var growth []version
	floor := np.base.Size
	flush := func() {
		if len(growth) == 0 {
			return
		}
		slices.SortStableFunc(growth, func(a, b version) int {
			return cmp.Compare(np.items[a.item].size, np.items[b.item].size)
		})
		p.units = append(p.units, unit{kind: unitSize, versions: growth})
		growth = nil
	}
	for i := range np.items {
		it := &np.items[i]
		v := version{seq: it.seq, item: i}
		switch {
		case it.cut:
			flush()
			p.units = append(p.units, unit{kind: unitCut, versions: []version{v}})
			floor = it.size
		case it.size > floor:
			growth = append(growth, v)
		}
	}
	flush()
}

func (np *nodePlan) addSectors(p *plan) {
	type touch struct {
		sector int64
		v      version
	}
	total := 0
	for i := range np.items {
		total += np.items[i].sectors()
	}
	touches := make([]touch, 0, total)
	for i := range np.items {
		it := &np.items[i]
		for j := range it.sectors() {
			touches = append(touches, touch{it.off/sectorBytes + int64(j), version{it.seq, i, j + 1}})
		}
	}
	slices.SortStableFunc(touches, func(a, b touch) int { return cmp.Compare(a.sector, b.sector) })
	all := make([]version, total)
	for i := 0; i < total; {
		start := i
		for i < total && touches[i].sector == touches[start].sector {
			all[i] = touches[i].v
			i++
		}
		p.units = append(p.units, unit{unitSector, touches[start].sector, all[start:i:i]})
	}
}

// buildLocked makes the disk of one pick.
func (p *plan) buildLocked(pick []int, d *draw) *Mem {
	c := p.m.emptyCopyLocked()
	for _, n := range p.nodes {
		t := &inode{id: n.id}
		if n.dir == nil {
			n.mu.Lock()
			t.durable = n.durable.Freeze()
			n.mu.Unlock()
		}
		n.twin = t
	}
	for i := range p.files {
		np := &p.files[i]
		np.node.twin.durable = p.contents(np, pick[np.units[0]:np.units[1]], d)
	}
	for _, n := range p.nodes {
		if t := n.twin; n.dir == nil {
			t.cache = t.durable.Freeze()
			t.alloc = t.cache.Size
		}
	}
	dirs := p.dirs
	for _, n := range p.nodes {
		if n.dir == nil {
			continue
		}
		names := maps.Clone(n.dir.durableNames())
		if len(dirs) > 0 && dirs[0].node == n {
			for i, choice := range pick[dirs[0].units[0]:dirs[0].units[1]] {
				if choice > 0 {
					n.dir.pending[i].apply(names)
				}
			}
			dirs = dirs[1:]
		}
		for name, node := range names {
			names[name] = node.twin
		}
		n.twin.dir = &dir{names: names}
	}
	c.root = p.m.root.twin
	for _, n := range p.nodes {
		n.twin = nil
	}
	c.countLinksLocked()
	return c
}

// contents builds a file: the kept changes in order over what is durable, with
// data and size apart until the end, since a size may come without its data
// and data that lies past a lost size may come to light with a later one.
func (p *plan) contents(np *nodePlan, pick []int, d *draw) cow.Image {
	im := np.base // frozen: the first change copies its list of chunks
	kept := make([][]int, len(np.items))
	sized := make([]bool, len(np.items))
	units := p.units[np.units[0]:np.units[1]]
	for i := range units {
		if pick[i] == 0 {
			continue
		}
		v := units[i].versions[pick[i]-1]
		if units[i].kind == unitSector {
			kept[v.item] = append(kept[v.item], v.part-1)
		} else {
			sized[v.item] = true
		}
	}
	size, floor := im.Size, im.Size
	for i := range np.items {
		it := &np.items[i]
		if sized[i] && it.cut {
			im.Clip(it.size)
			size, floor = it.size, min(floor, it.size)
		} else if sized[i] {
			size = max(size, it.size)
		}
		for _, j := range kept[i] {
			im.Put(it.data[j*sectorBytes:(j+1)*sectorBytes], it.off+int64(j)*sectorBytes)
		}
	}
	for i := range units {
		at := units[i].sector * sectorBytes
		if units[i].kind == unitSector && pick[i] == 0 && at >= floor && at < size {
			d.fillSector(p, np.node, &im, at)
		}
	}
	im.Size = size
	im.Clip(size)
	return im
}

// draw is the source of one crash's random choices.
type draw struct {
	rng    *rand.Rand
	keep   float64 // how likely the newest version is kept
	fill   Fill
	filled bool // a sector was filled
}

func newDraw(c Choice) *draw {
	d := &draw{rng: rand.New(rand.NewPCG(c.Seed, uint64(c.Mode))), fill: c.Fill}
	// Real crashes lose next to all or next to nothing more often than half.
	d.keep = [...]float64{0.1, 0.5, 0.9}[d.rng.IntN(3)]
	return d
}

// liarLocked picks a file and how many of its syncs did nothing, or nil.
func (d *draw) liarLocked(m *Mem, name string) *lie {
	var files []*inode
	if name != "" {
		if n, err := m.findLocked("crash", name); err == nil {
			files = append(files, n)
		}
	} else {
		files = m.reachableLocked()
	}
	files = slices.DeleteFunc(files, func(n *inode) bool { return len(n.history) == 0 })
	if len(files) == 0 {
		return nil
	}
	n := files[d.rng.IntN(len(files))]
	return &lie{node: n, syncs: 1 + d.rng.IntN(len(n.history))}
}

// choose picks a version for each unit.
func (d *draw) choose(p *plan, c Choice) []int {
	pick := make([]int, len(p.units))
	switch c.Mode {
	case CrashMin:
	case CrashMax:
		p.pickLast(pick, func(version) bool { return true })
	case CrashPrefix:
		if end, ok := d.cut(p, c.Cut); ok {
			p.pickLast(pick, func(v version) bool { return compareVersions(v, end) < 0 })
		} else {
			p.pickLast(pick, func(version) bool { return true })
		}
	case CrashSubset:
		key := d.rng.Uint64()
		p.pickLast(pick, func(v version) bool {
			return rand.New(rand.NewPCG(key, v.seq)).Float64() < d.keep
		})
	case CrashSector, CrashLying:
		d.scatter(p, pick, 0, len(pick))
		for i := range p.files {
			if p.files[i].lied > 0 {
				d.deceive(p, &p.files[i], pick)
			}
		}
	case CrashDirs:
		p.pickLast(pick, func(version) bool { return true })
		for _, np := range p.dirs {
			d.scatter(p, pick, np.units[0], np.units[1])
		}
	default:
		panic("vfs: unknown CrashMode")
	}
	return pick
}

// pickLast picks in each unit the last version that is kept: sizes stand in
// order of size and all else in order of change.
func (p *plan) pickLast(pick []int, keep func(version) bool) {
	for i := range p.units {
		for j, v := range p.units[i].versions {
			if keep(v) {
				pick[i] = j + 1
			}
		}
	}
}

func (d *draw) scatter(p *plan, pick []int, from, to int) {
	for i := from; i < to; i++ {
		n := len(p.units[i].versions)
		if d.rng.Float64() < d.keep {
			pick[i] = n
		} else {
			pick[i] = d.rng.IntN(n)
		}
	}
}

// deceive takes a whole file back, or one sector of it, or any of it.
func (d *draw) deceive(p *plan, np *nodePlan, pick []int) {
	from, to := np.units[0], np.units[1]
	switch d.rng.IntN(3) {
	case 0:
		clear(pick[from:to])
	case 1:
		var sectors []int
		for i := from; i < to; i++ {
			pick[i] = len(p.units[i].versions)
			if p.units[i].kind == unitSector && p.units[i].versions[0].item < np.lied {
				sectors = append(sectors, i)
			}
		}
		if len(sectors) > 0 {
			pick[sectors[d.rng.IntN(len(sectors))]] = 0
		}
	}
}

func compareVersions(a, b version) int {
	return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.part, b.part))
}

// cut returns the first change that a prefix loses, if it loses any.
func (d *draw) cut(p *plan, n int) (version, bool) {
	all := make([]version, 0, p.parts)
	for i := range p.units {
		all = append(all, p.units[i].versions...)
	}
	slices.SortFunc(all, compareVersions)
	if n <= 0 {
		n = d.rng.IntN(len(all) + 1)
	}
	if n >= len(all) {
		return version{}, false
	}
	return all[n], true
}

// fillSector gives a sector of file n that was never written something to read.
func (d *draw) fillSector(p *plan, n *inode, im *cow.Image, at int64) {
	d.filled = true
	fill := d.fill
	if fill == FillAny {
		fill = FillZeros + Fill(d.rng.IntN(3))
	}
	b := make([]byte, sectorBytes)
	if fill == FillStale && !d.stale(p, n, b, at) {
		fill = FillGarbage
	}
	if fill == FillGarbage {
		for i := range b {
			b[i] = byte(d.rng.Uint32())
		}
	}
	im.Put(b, at)
}

// stale reads the sector at the same place of a random other file.
func (d *draw) stale(p *plan, n *inode, b []byte, at int64) bool {
	var from []*cow.Image
	for i := range p.m.graves {
		if p.m.graves[i].Size > at {
			from = append(from, &p.m.graves[i])
		}
	}
	for _, other := range p.nodes {
		if other != n && other.dir == nil && other.durable.Size > at {
			from = append(from, &other.durable)
		}
	}
	if len(from) == 0 {
		return false
	}
	from[d.rng.IntN(len(from))].Read(b, at)
	return true
}
