package cache

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tablerock-db/tablerock/internal/race"
)

// groups is a table of row groups, each with a head and five units, that is about ten
// times as large as the cache of the tests.
const (
	groups     = 9000
	unitsEach  = 5
	groupCache = 24 << 20
)

// touchBlock reads a block of a group, loads it if it must, and reports a hit. Unit 0 is
// the head.
func touchBlock(c *Cache, group, unit int) bool {
	k := Key{DB: 1, File: 1, Offset: uint64(group*8 + unit), Kind: uint8(min(unit, 1))}
	h, ok := c.Get(k)
	if !ok {
		size, extra := 3000+(group*7+unit*13)%1500, 0
		if unit == 0 {
			size, extra = 6500+group%700, 1500
		}
		var keep bool
		when := Second
		if unit == 0 {
			when = Seldom
		}
		if h, ok, keep = c.AcquireKept(k, size, when); keep && !ok {
			h.Fill(nil, extra)
		}
	}
	h.Release()
	return ok
}

// zipfHits returns the share of hits of gets of a Zipf distribution. After each get, a
// scan reads scanned blocks.
func zipfHits(gets, scanned int) float64 {
	c := New(groupCache)
	rng := rand.New(rand.NewPCG(5, 5))
	zipf := rand.NewZipf(rng, 1.1, 200, groups*unitsEach-1)
	order := rng.Perm(groups * unitsEach)
	hits, at := 0, 0
	for i := range gets {
		row := order[zipf.Uint64()]
		for _, unit := range []int{0, 1 + row%unitsEach} {
			if touchBlock(c, row/unitsEach, unit) && i >= gets/2 {
				hits++
			}
		}
		for range scanned {
			touchBlock(c, at/(unitsEach+1)%groups, at%(unitsEach+1))
			at++
		}
	}
	return float64(hits) / float64(gets-gets/2) / 2
}

// TestScansLeaveHotBlocks checks that a scan does not wash out what gets use.
func TestScansLeaveHotBlocks(t *testing.T) {
	race.SkipOneGoroutine(t)
	alone, beside := zipfHits(100_000, 0), zipfHits(100_000, 6)
	t.Logf("hits of gets alone %.3f, beside a scan %.3f", alone, beside)
	if beside < 0.8*alone {
		t.Errorf("hits of gets fall from %.3f to %.3f beside a scan", alone, beside)
	}
}

func BenchmarkZipf(b *testing.B) {
	for _, scanned := range []int{0, 6, 60} {
		b.Run(fmt.Sprintf("scanned=%d", scanned), func(b *testing.B) {
			for range b.N {
				b.ReportMetric(zipfHits(100_000, scanned), "hits")
			}
		})
	}
}
