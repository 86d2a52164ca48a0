package lsm

import (
	"context"
	"testing"

	"github.com/tablerock-db/tablerock/vfs"
)

// growth samples a tree of entries that nothing overwrites after each step of a job.
type growth struct {
	*harness
	mem     *vfs.Mem
	peak    int64   // bytes of the directory
	amp     float64 // greatest space amplification
	entries uint64  // in files
}

func (g *growth) sample() {
	g.peak = max(g.peak, g.mem.Used())
	s := g.tree.Stats()
	g.amp = max(g.amp, s.SpaceAmp)
	if off := int64(s.Entries) - int64(g.entries); off*100 > int64(g.entries) || -off*100 > int64(g.entries) {
		g.t.Errorf("Stats counts %d entries of %d: %+v", s.Entries, g.entries, s.Tiers)
	}
}

func (g *growth) run(j *Job) {
	for {
		done, err := j.Step(context.Background())
		must(g.t, err)
		g.sample()
		if done {
			return
		}
	}
}

// load flushes n runs of random new keys, and compacts after each flush.
func (g *growth) load(runs, perRun int) {
	for i, n := range g.rng.Perm(runs * perRun) {
		g.write(orderedKey(n), g.text(n, 60))
		if (i+1)%perRun != 0 {
			continue
		}
		g.flush()
		g.entries = g.flushed
		for j := g.tree.PickCompaction(); j != nil; j = g.tree.PickCompaction() {
			g.run(j)
		}
	}
}

// TestGrowthOfCompaction loads keys in random order. While a tier is compacted, and then
// all files, the directory must stay under 1.4 times its later size, and Stats must
// count each entry once.
func TestGrowthOfCompaction(t *testing.T) {
	const runs = 9
	perRun, o := 4000, Options{FileBytes: 400 << 10, GroupBytes: 2 << 10}
	if testing.Short() {
		t.Skip("a bound of bytes, which the race detector does not change")
	}
	mem := vfs.NewMem()
	g := &growth{harness: newHarness(t, mem, o, 41), mem: mem}
	check := func(what string) {
		t.Helper()
		after := mem.Used()
		s := g.tree.Stats()
		t.Logf("%s: peak %.2f of %d bytes, space amplification at most %.2f, %d files: %+v", what, float64(g.peak)/float64(after), after, g.amp, s.Files, s.Tiers)
		if g.peak*10 > after*14 || g.amp > 1.4 {
			t.Errorf("%s: peak %d of %d bytes, space amplification %.2f, want at most 1.4", what, g.peak, after, g.amp)
		}
		g.peak, g.amp = 0, 0
	}
	g.load(runs, perRun)
	s := g.tree.Stats()
	if n := s.TierRuns(1); n != 1 {
		t.Fatalf("tier 1 has %d runs, want 1", n)
	}
	check("tier")
	g.run(g.tree.NewFullCompaction())
	check("full")
	g.check()
	g.finish()
}
