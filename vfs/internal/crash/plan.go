package crash

import (
	"cmp"
	"iter"
	"math"
	"slices"
)

// Fill selects the contents of a sector that is within the size of its file but was
// never written to the disk.
type Fill uint8

const (
	// FillAny draws one of the others for each such sector.
	FillAny Fill = iota
	// FillZeros fills with zeros.
	FillZeros
	// FillGarbage fills with random bytes.
	FillGarbage
	// FillStale fills with the sector at the same offset of another or a removed
	// file, or with garbage if there is none.
	FillStale
)

// Plan lists the pending units of a disk. A crash state is a pick: one version for each
// unit, where 0 is the durable version and i is versions[i-1].
type Plan struct {
	groups []group
	units  []unit
}

// group holds the units of one directory or file.
type group struct {
	names    bool     // the group is a directory
	base     Image    // of a file: the durable contents
	changes  []change // of a file: the changes since
	dropped  int      // of a file: the first changes, which a dropped sync acknowledged
	from, to int      // its units are Plan.units[from:to]
}

// unit is the smallest part of a disk that is kept or lost: a sector, the size of a file,
// or one change of a name.
type unit struct {
	kind     unitKind
	sector   int64
	versions []version
}

type unitKind uint8

const (
	unitName unitKind = iota
	unitSize
	unitSector
)

// version is a state of a unit after a change. index numbers the sectors of a change from
// 1. A size or name has index 0, so that a prefix can have a size without its data.
type version struct {
	seq    uint64
	change int
	index  int
}

func compareVersions(a, b version) int {
	return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.index, b.index))
}

// AddNames adds a directory with the positions of its changes in the order of all
// changes. It returns false if there are none. Otherwise the directory becomes the next
// group; groups are numbered from 0.
func (p *Plan) AddNames(seqs []uint64) bool {
	from := len(p.units)
	for i, seq := range seqs {
		p.units = append(p.units, unit{kind: unitName, versions: []version{{seq: seq, change: i}}})
	}
	return p.addGroup(group{names: true, from: from})
}

// AddFile adds a file whose last syncs were dropped. It returns false if the file has no
// pending units, like AddNames. f must not change while the plan is used.
func (p *Plan) AddFile(f *File, droppedSyncs int) bool {
	g := group{base: f.Durable.Freeze(), changes: f.pending, from: len(p.units)}
	if droppedSyncs > 0 {
		records := f.history[len(f.history)-droppedSyncs:]
		g.base = records[0].before
		g.changes = nil
		for _, r := range records {
			g.changes = append(g.changes, r.changes...)
		}
		g.dropped = len(g.changes)
		g.changes = append(g.changes, f.pending...)
	}
	if len(g.changes) > 0 {
		p.addSizes(&g)
		p.addSectors(&g)
	}
	return p.addGroup(g)
}

func (p *Plan) addGroup(g group) bool {
	g.to = len(p.units)
	if g.to == g.from {
		return false
	}
	p.groups = append(p.groups, g)
	return true
}

// addSizes adds one unit for all growth of a file: of several sizes that survive, only
// the largest is visible.
func (p *Plan) addSizes(g *group) {
	var sizes []version
	for i := range g.changes {
		if c := &g.changes[i]; c.size > g.base.Size {
			sizes = append(sizes, version{seq: c.seq, change: i})
		}
	}
	if len(sizes) == 0 {
		return
	}
	slices.SortStableFunc(sizes, func(a, b version) int {
		return cmp.Compare(g.changes[a.change].size, g.changes[b.change].size)
	})
	p.units = append(p.units, unit{kind: unitSize, versions: sizes})
}

func (p *Plan) addSectors(g *group) {
	type touch struct {
		sector int64
		v      version
	}
	total := 0
	for i := range g.changes {
		total += g.changes[i].sectors()
	}
	touches := make([]touch, 0, total)
	for i := range g.changes {
		c := &g.changes[i]
		for j := range c.sectors() {
			touches = append(touches, touch{c.off/SectorBytes + int64(j), version{c.seq, i, j + 1}})
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

// Pending returns the number of sectors, sizes and names that are not durable.
func (p *Plan) Pending() int {
	n := 0
	for i := range p.units {
		n += len(p.units[i].versions)
	}
	return n
}

// Count returns the number of picks, or math.MaxUint64 on overflow.
func (p *Plan) Count() uint64 {
	n := uint64(1)
	for i := range p.units {
		radix := uint64(len(p.units[i].versions) + 1)
		if n > math.MaxUint64/radix {
			return math.MaxUint64
		}
		n *= radix
	}
	return n
}

// Picks yields each pick once. A pick is valid until the next.
func (p *Plan) Picks() iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		pick := p.Nothing()
		for {
			if !yield(pick) {
				return
			}
			i := 0
			for i < len(pick) && pick[i] == len(p.units[i].versions) {
				pick[i] = 0
				i++
			}
			if i == len(pick) {
				return
			}
			pick[i]++
		}
	}
}

// Nothing returns the pick that loses all pending units.
func (p *Plan) Nothing() []int { return make([]int, len(p.units)) }

// Everything returns the pick that keeps all pending units.
func (p *Plan) Everything() []int { return p.last(func(version) bool { return true }) }

// last picks the last kept version of each unit. Versions of a size are in order of size,
// others in order of change.
func (p *Plan) last(keep func(version) bool) []int {
	pick := p.Nothing()
	for i := range p.units {
		for j, v := range p.units[i].versions {
			if keep(v) {
				pick[i] = j + 1
			}
		}
	}
	return pick
}

// Names returns the indices of the changes of a directory that a pick keeps.
func (p *Plan) Names(group int, pick []int) []int {
	var kept []int
	g := &p.groups[group]
	for i, choice := range pick[g.from:g.to] {
		if choice > 0 {
			kept = append(kept, i)
		}
	}
	return kept
}

// Contents returns the contents of a file for a pick: the durable image with the kept
// changes in order. It applies the size last, because a size can survive without its
// data, and data beyond a lost size becomes visible with a later size. fill sets the
// contents of a lost sector beyond the durable size.
func (p *Plan) Contents(group int, pick []int, fill func(im *Image, at int64)) Image {
	g := &p.groups[group]
	units, pick := p.units[g.from:g.to], pick[g.from:g.to]
	im := g.base // shared: the first Put copies the list of chunks
	kept := make([][]int, len(g.changes))
	sized := make([]bool, len(g.changes))
	for i := range units {
		if pick[i] == 0 {
			continue
		}
		v := units[i].versions[pick[i]-1]
		if units[i].kind == unitSector {
			kept[v.change] = append(kept[v.change], v.index-1)
		} else {
			sized[v.change] = true
		}
	}
	size := im.Size
	for i := range g.changes {
		c := &g.changes[i]
		if sized[i] {
			size = max(size, c.size)
		}
		for _, j := range kept[i] {
			im.Put(c.data[j*SectorBytes:(j+1)*SectorBytes], c.off+int64(j)*SectorBytes)
		}
	}
	for i := range units {
		at := units[i].sector * SectorBytes
		if units[i].kind == unitSector && pick[i] == 0 && at >= g.base.Size && at < size {
			fill(&im, at)
		}
	}
	im.Size = size
	im.Clip(size)
	return im
}
