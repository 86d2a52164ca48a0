package crash

import (
	"math/rand/v2"
	"slices"
)

// Draw makes the random choices of one crash.
type Draw struct {
	Rand *rand.Rand
	keep float64 // probability of the newest version
}

// NewDraw returns a Draw. Equal seeds give equal choices.
func NewDraw(seed1, seed2 uint64) Draw {
	d := Draw{Rand: rand.New(rand.NewPCG(seed1, seed2))}
	// Real crashes lose almost all or almost nothing more often than half.
	d.keep = [...]float64{0.1, 0.5, 0.9}[d.Rand.IntN(3)]
	return d
}

// Prefix keeps the first n sectors, sizes and names in the order of the changes; 0 draws
// the number.
func (d *Draw) Prefix(p *Plan, n int) []int {
	all := make([]version, 0, p.Pending())
	for i := range p.units {
		all = append(all, p.units[i].versions...)
	}
	slices.SortFunc(all, compareVersions)
	if n <= 0 {
		n = d.Rand.IntN(len(all) + 1)
	}
	if n >= len(all) {
		return p.Everything()
	}
	return p.last(func(v version) bool { return compareVersions(v, all[n]) < 0 })
}

// Subset keeps or loses each change as a whole.
func (d *Draw) Subset(p *Plan) []int {
	key := d.Rand.Uint64()
	return p.last(func(v version) bool {
		return rand.New(rand.NewPCG(key, v.seq)).Float64() < d.keep
	})
}

// Sectors keeps or loses each sector of each write, each size and each name
// independently, and drops acknowledged syncs of a lying device.
func (d *Draw) Sectors(p *Plan) []int {
	pick := p.Nothing()
	d.scatter(p, pick, 0, len(pick))
	for i := range p.groups {
		if p.groups[i].dropped > 0 {
			d.dropSyncs(p, &p.groups[i], pick)
		}
	}
	return pick
}

// Names keeps all contents, and keeps or loses each name independently.
func (d *Draw) Names(p *Plan) []int {
	pick := p.Everything()
	for i := range p.groups {
		if g := &p.groups[i]; g.names {
			d.scatter(p, pick, g.from, g.to)
		}
	}
	return pick
}

func (d *Draw) scatter(p *Plan, pick []int, from, to int) {
	for i := from; i < to; i++ {
		n := len(p.units[i].versions)
		if d.Rand.Float64() < d.keep {
			pick[i] = n
		} else {
			pick[i] = d.Rand.IntN(n)
		}
	}
}

// dropSyncs loses the whole file, one sector of it, or the random pick.
func (d *Draw) dropSyncs(p *Plan, g *group, pick []int) {
	switch d.Rand.IntN(3) {
	case 0:
		clear(pick[g.from:g.to])
	case 1:
		var sectors []int
		for i := g.from; i < g.to; i++ {
			pick[i] = len(p.units[i].versions)
			if p.units[i].kind == unitSector && p.units[i].versions[0].change < g.dropped {
				sectors = append(sectors, i)
			}
		}
		if len(sectors) > 0 {
			pick[sectors[d.Rand.IntN(len(sectors))]] = 0
		}
	}
}
