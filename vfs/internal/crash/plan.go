package crash

import (
	"cmp"
	"iter"
	"math"
	"slices"
)

// Fill says how a sector reads that is within the size of its file but was
// never written to the disk.
type Fill uint8

const (
	// FillAny draws one of the others for each such sector.
	FillAny Fill = iota
	// FillZeros reads as zeros.
	FillZeros
	// FillGarbage reads as random bytes.
	FillGarbage
	// FillStale reads as the sector at the same offset of another file or of a
	// file removed lately, or as garbage if there is none.
	FillStale
)

// Plan lists what is undecided on a disk. A crash state is a pick of one version for
// each unit: 0 is the durable one, i is versions[i-1].
type Plan struct {
	groups []group
	units  []unit
}

// group is a directory or file with undecided units.
type group struct {
	names    bool     // of a directory
	base     Image    // files: what is durable
	changes  []change // files: the changes on top of it
	lied     int      // files: the first changes that a sync acknowledged
	from, to int      // its units are Plan.units[from:to]
}

// unit is one thing that the disk holds in exactly one version: a sector, the
// size of a file, or one change of a name.
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

// version is one state of a unit: the change that brings it, and which part of
// the change, counted from 1 for sectors; a size or name is part 0, so that a
// prefix can hold a size without its data.
type version struct {
	seq    uint64
	change int
	part   int
}

func compareVersions(a, b version) int {
	return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.part, b.part))
}

// AddNames adds a directory whose changes of names have these positions in the order
// of all changes. It reports whether there are any: then the directory is the next of
// the groups, which are counted from 0.
func (p *Plan) AddNames(seqs []uint64) bool {
	from := len(p.units)
	for i, seq := range seqs {
		p.units = append(p.units, unit{kind: unitName, versions: []version{{seq: seq, change: i}}})
	}
	return p.addGroup(group{names: true, from: from})
}

// AddFile adds a file whose last syncs, as many as lies says, did nothing. It reports
// whether anything of it is undecided, as AddNames does. f is not to change until the
// plan is done with.
func (p *Plan) AddFile(f *File, lies int) bool {
	g := group{base: f.Durable.Freeze(), changes: f.pending, from: len(p.units)}
	if lies > 0 {
		records := f.history[len(f.history)-lies:]
		g.base = records[0].before
		g.changes = nil
		for _, r := range records {
			g.changes = append(g.changes, r.changes...)
		}
		g.lied = len(g.changes)
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

// addSizes makes one unit of all growth: of several sizes that survive, only the
// largest shows.
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

// Pending returns how many sectors, sizes and names are not durable.
func (p *Plan) Pending() int {
	n := 0
	for i := range p.units {
		n += len(p.units[i].versions)
	}
	return n
}

// Count returns how many picks there are, or math.MaxUint64 if that does not fit.
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

// Picks yields every pick once. Each is valid until the next.
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

// Nothing is the pick that loses all that is undecided.
func (p *Plan) Nothing() []int { return make([]int, len(p.units)) }

// Everything is the pick that loses nothing.
func (p *Plan) Everything() []int { return p.last(func(version) bool { return true }) }

// last picks in each unit the last version that is kept: sizes stand in order of
// size and all else in order of change.
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

// Names returns which changes of a directory, counted from 0, a pick keeps.
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

// Contents builds a file: the kept changes in order over what is durable, with
// data and size apart until the end, since a size may come without its data
// and data that lies past a lost size may come to light with a later one. fill gives
// a sector at an offset, new to the file and lost, something to read.
func (p *Plan) Contents(group int, pick []int, fill func(im *Image, at int64)) Image {
	g := &p.groups[group]
	units, pick := p.units[g.from:g.to], pick[g.from:g.to]
	im := g.base // frozen: the first change copies its list of chunks
	kept := make([][]int, len(g.changes))
	sized := make([]bool, len(g.changes))
	for i := range units {
		if pick[i] == 0 {
			continue
		}
		v := units[i].versions[pick[i]-1]
		if units[i].kind == unitSector {
			kept[v.change] = append(kept[v.change], v.part-1)
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
