package storetest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
)

// TestFirstDifference checks that difference names the first entity and property that
// differ, and nothing after them.
func TestFirstDifference(t *testing.T) {
	race.SkipOneGoroutine(t)
	list := func(change func(list []edm.Entity) []edm.Entity) []edm.Entity {
		var out []edm.Entity
		for i := range 300 {
			e := edm.Entity{Key: edm.Key{Partition: "p", Row: fmt.Sprintf("%03d", i)}, Timestamp: 1}
			for j := range 200 {
				e.Properties = append(e.Properties, edm.Property{Name: fmt.Sprint("n", j), Value: edm.Int32(int32(j))})
			}
			out = append(out, e)
		}
		return change(out)
	}
	same := func(list []edm.Entity) []edm.Entity { return list }
	for _, c := range []struct {
		name   string
		change func(list []edm.Entity) []edm.Entity
		want   string
	}{
		{"none", same, ""},
		{"value", func(list []edm.Entity) []edm.Entity {
			list[7].Properties[150].Value, list[9].Properties = edm.Int64(150), nil
			return list
		}, `300 entities, want 300; entity 7, {"p" "007"}, has 200 properties, want 200; property 150 is "n150" = Edm.Int64(150), want "n150" = Edm.Int32(150)`},
		{"name", func(list []edm.Entity) []edm.Entity {
			list[299].Properties[0].Name = "N0"
			return list
		}, `300 entities, want 300; entity 299, {"p" "299"}, has 200 properties, want 200; property 0 is "N0" = Edm.Int32(0), want "n0" = Edm.Int32(0)`},
		{"property missing", func(list []edm.Entity) []edm.Entity {
			list[0].Properties = list[0].Properties[:199]
			return list
		}, `300 entities, want 300; entity 0, {"p" "000"}, has 199 properties, want 200; property 199 is none, want "n199" = Edm.Int32(199)`},
		{"Timestamp", func(list []edm.Entity) []edm.Entity {
			list[1].Timestamp = 2
			return list
		}, `300 entities, want 300; entity 1, {"p" "001"}, has Timestamp 2, want 1`},
		{"entity missing", func(list []edm.Entity) []edm.Entity {
			list[298].Properties = list[298].Properties[:1]
			return list[:298]
		}, `298 entities, want 300; entity 298 is none, want {{"p" "298"} 1 edm.Properties{`},
		{"entity added", func(list []edm.Entity) []edm.Entity {
			return append(list, edm.Entity{Key: edm.Key{Partition: "q"}})
		}, `301 entities, want 300; entity 300 is {{"q" ""} 0 edm.Properties(nil)}, want none`},
		{"order", func(list []edm.Entity) []edm.Entity {
			list[3], list[4] = list[4], list[3]
			return list
		}, `300 entities, want 300; entity 3 is {{"p" "004"} 1 edm.Properties{`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := difference(list(c.change), list(same))
			if whole := strings.HasSuffix(c.want, "{"); got != c.want && !(whole && strings.HasPrefix(got, c.want)) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if len(got) > 4000 {
				t.Errorf("%d bytes", len(got))
			}
		})
	}
}

// TestEntitiesDoNotEndTest checks that a test goes on after wantEntities has failed it: it
// may have to release a sync that Close waits for.
func TestEntitiesDoNotEndTest(t *testing.T) {
	ended := true
	r := record(t, func(tb testing.TB) {
		newTester(tb, Backend{}).wantEntities("list", nil, make([]edm.Entity, 1))
		ended = false
	})
	if !r.failed || ended {
		t.Errorf("failed %v, ended %v", r.failed, ended)
	}
}

// TestFewFailuresArePrinted runs the suite on a store that ignores Reverse.
func TestFewFailuresArePrinted(t *testing.T) {
	b := Backend{Open: func(testing.TB) store.Store {
		h := &hooks{mapStore: newMap(fixedClock)}
		h.query = func(ctx context.Context, table string, q store.Query) store.Cursor {
			q.Reverse = false
			return h.mapStore.Query(ctx, table, q)
		}
		return h
	}}
	calls := 0
	for _, s := range subtests() {
		tester := newTester(nil, b)
		r := record(t, func(tb testing.TB) {
			tester.TB = tb
			s.run(tester)
		})
		calls += int(tester.failures.Load())
		if len(r.text) > maxFailures+2 { // and a last one that ends the test
			t.Errorf("%s prints %d failures", s.name, len(r.text))
		}
	}
	if calls < 10*maxFailures {
		t.Errorf("the suite found %d failures in all", calls)
	}
}
