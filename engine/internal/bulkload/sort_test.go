package bulkload

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
)

// collect returns the only part of a piece with an entity for each key. Its property N is
// the index of the key.
func collect(t *testing.T, keys []edm.Key) *part {
	t.Helper()
	m := newMemory(8 << 20)
	t.Cleanup(m.free)
	parts := make(chan *part, 1)
	c := &collector{
		ctx: context.Background(), o: &Options{ID: 16, Shapes: new(codec.ShapeCache), InstallBytes: 8 << 20},
		memory: m, parts: parts, shapes: make(map[*codec.Shape]uint32),
	}
	err := c.collect(func(yield func(edm.Entity, error) bool) {
		for i, k := range keys {
			if !yield(edm.Entity{Key: k, Properties: edm.Properties{{Name: "N", Value: edm.Int32(int32(i))}}}, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	p := <-parts
	t.Cleanup(func() { m.put(p.chunks) }) // before m.free
	return p
}

// indexes returns the property N of each row.
func (p *part) indexes() []int {
	var list []int
	for i := range p.rows {
		var row codec.Row
		row.ResetEntry(p.entry(&p.rows[i]), p.shapes[p.rows[i].shape])
		_, v := row.At(0)
		n, _ := v.Int32()
		list = append(list, int(n))
	}
	return list
}

func compare(x, y edm.Key) int {
	return bytes.Compare(codec.AppendKey(nil, 16, x.Partition, x.Row), codec.AppendKey(nil, 16, y.Partition, y.Row))
}

// TestSort sorts keys that agree in more or fewer bytes, of which some agree in all that the
// prefixes hold, some are equal, and some shorten what all have in common at the end.
func TestSort(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		var keys []edm.Key
		common := strings.Repeat("c", rnd.IntN(30))
		for range 1 + rnd.IntN(50) {
			k := edm.Key{Partition: common, Row: strings.Repeat("r", rnd.IntN(20)) + fmt.Sprint(rnd.IntN(20))}
			if rnd.IntN(20) == 0 {
				k.Partition = common[:rnd.IntN(len(common)+1)] + fmt.Sprint(rnd.IntN(3))
			}
			keys = append(keys, k)
		}
		if rnd.IntN(4) == 0 {
			slices.SortFunc(keys, compare)
			keys = append(keys, edm.Key{Partition: common, Row: "r"})
		}
		want := make([]int, len(keys))
		for i := range want {
			want[i] = i
		}
		slices.SortStableFunc(want, func(x, y int) int { return compare(keys[x], keys[y]) })
		p := collect(t, keys)
		if p.sorted != slices.IsSorted(want) {
			t.Fatalf("seed %d: sorted is %v, want the order %v", seed, p.sorted, want)
		}
		if !p.sorted {
			p.sort()
		}
		if got := p.indexes(); !slices.Equal(got, want) {
			t.Fatalf("seed %d: keys %v\ngot the order  %v\nwant the order %v", seed, keys, got, want)
		}
	}
}
