package engine_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// examine runs q and returns the N of the rows, and how many rows were examined.
func examine(tb testing.TB, s querier, q store.Query) (n []int64, examined int) {
	tb.Helper()
	c := s.Query(tb.Context(), table, q)
	defer c.Close()
	for c.Next() {
		v, _ := c.Row().Lookup("N")
		i, _ := v.Int64()
		n = append(n, i)
	}
	check(tb, "Query", c.Err())
	return n, c.(store.Examiner).Examined()
}

// TestFiltersSkipGroups counts the rows that filters examine in one compacted run. The
// bounds of most row groups, or of all of them, exclude a match.
func TestFiltersSkipGroups(t *testing.T) {
	race.SkipOneGoroutine(t)
	const rows = 30_000
	o := engine.Options{FS: vfs.NewMem(), Testing: engine.TestHooks{Manual: true}, SegmentBytes: 4 << 20, FileBytes: 1 << 20, NoSync: true}
	db := mustCreate(t, o)
	var ops []store.Op
	for i := range int64(rows) {
		e := entity("p", fmt.Sprintf("%06d", i), i, 20)
		e.Properties = append(e.Properties, edm.Property{Name: "S", Value: edm.String(fmt.Sprintf("%03d", i/100))})
		if ops = append(ops, store.Insert(e)); len(ops) == 100 {
			apply(t, db, ops...)
			ops = ops[:0]
		}
	}
	check(t, "Compact", db.Compact(t.Context()))
	const group = 700 // more rows than a row group has
	for _, c := range []struct {
		filter string
		want   int
		most   int // rows to examine
	}{
		{"N eq 40000", 0, 0},
		{"N lt 0L", 0, 0},
		{"Missing eq 1", 0, 0},
		{"S eq 1", 0, 0},
		{"N eq 40000 or S eq 'x'", 0, 0},
		{"N gt 100L and N lt 100L", 0, 2 * group},
		{"N eq 12345L", 1, group},
		{"S eq '150'", 100, 2 * group},
		{"PartitionKey eq 'p' and RowKey gt '000500' and N le 600L", 100, 2 * group},
		{"RowKey ne '000500' and N lt 50L", 50, group},
		{"not (N ge 5L)", 5, group},
		{"N ge 29990L or N lt 10L", 20, 2 * group},
		{"N ne 5L", rows - 1, rows},
	} {
		for _, reverse := range []bool{false, true} {
			got, examined := examine(t, db, store.Query{Filter: filter.MustParse(c.filter), Reverse: reverse})
			if len(got) != c.want || examined > c.most || examined < c.want {
				t.Errorf("%s, reverse %v: %d rows of %d examined, want %d of at most %d", c.filter, reverse, len(got), examined, c.want, c.most)
			}
		}
	}
	// A budget counts what is read, so one page reaches the end.
	c := db.Query(t.Context(), table, store.Query{Filter: filter.MustParse("N eq 29999L"), Budget: group})
	defer c.Close()
	if !c.Next() || c.Next() || c.Resume() != nil || c.Err() != nil {
		t.Errorf("with a budget: resumes at %v, error %v", c.Resume(), c.Err())
	}
}

// TestFiltersSkipGroupsOfSparseEntities filters by a property that all entities have. Each has ten
// of 250 others, whose bounds would take a third of the file, so that no query would read them.
func TestFiltersSkipGroupsOfSparseEntities(t *testing.T) {
	race.SkipOneGoroutine(t)
	const rows = 10_000
	o := engine.Options{FS: vfs.NewMem(), Testing: engine.TestHooks{Manual: true}, NoSync: true}
	db := mustCreate(t, o)
	var ops []store.Op
	for i := range int64(rows) {
		e := entity("p", fmt.Sprintf("%06d", i), i, 20)
		for k := range int64(10) {
			name := fmt.Sprintf("Sparse%03d", (i*7+k*25)%250)
			e.Properties = append(e.Properties, edm.Property{Name: name, Value: edm.Int64(i * 1_000_003)})
		}
		if ops = append(ops, store.Insert(e)); len(ops) == 100 {
			apply(t, db, ops...)
			ops = ops[:0]
		}
	}
	check(t, "Compact", db.Compact(t.Context()))
	for _, c := range []struct {
		filter     string
		want, most int
	}{
		{"N eq 1234L", 1, rows / 20},
		{"N ge 9990L", 10, rows / 20},
		{"Missing eq 1L", 0, 0},
		{"Sparse007 eq 1000003L", 1, rows}, // not pruned: few entities of a group have it
	} {
		got, examined := examine(t, db, store.Query{Filter: filter.MustParse(c.filter)})
		if len(got) != c.want || examined > c.most {
			t.Errorf("%s: %d rows, %d examined, want %d of at most %d", c.filter, len(got), examined, c.want, c.most)
		}
	}
}

// testSeed returns TABLEROCK_SEED, or a fixed seed, and logs it.
func testSeed(t *testing.T) uint64 {
	seed := uint64(1)
	if text := os.Getenv("TABLEROCK_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		check(t, "TABLEROCK_SEED", err)
		seed = n
	}
	t.Logf("TABLEROCK_SEED=%d", seed)
	return seed
}

// pruneModel is a database of eight overlapping runs and, for each instant of which
// there is a snapshot, the entities.
type pruneModel struct {
	rand      *rand.Rand
	db        *engine.DB
	now       map[edm.Key]edm.Entity
	writes    int
	snapshots []*engine.Snapshot
	maps      []map[edm.Key]edm.Entity
	written   []int // writes at each instant
}

const pruneRuns = 8

// write adds to a run: overwrites, inserts and deletes. The values of a run are within
// bounds of their own, so that a filter excludes whole runs. Some partitions are in two
// runs alone; the largest, which have several files, are in one.
func (m *pruneModel) write(t *testing.T, run int) {
	m.writes += 2000 + 1500
	var ops []store.Op
	var entities []edm.Entity
	for row := range 2000 {
		e := m.entity(fmt.Sprint("q", run), row, run)
		ops, entities = append(ops, store.InsertOrReplace(e)), append(entities, e)
		if len(ops) == 100 {
			for i, r := range apply(t, m.db, ops...) {
				entities[i].Timestamp = r.Timestamp
				m.now[entities[i].Key] = entities[i]
			}
			ops, entities = ops[:0], entities[:0]
		}
	}
	for range 1500 {
		p, row := fmt.Sprint("p", m.rand.IntN(3)), m.rand.IntN(600)
		switch m.rand.IntN(6) {
		case 0:
			p = fmt.Sprint("p", 3+run/2)
		case 1:
			p, row = fmt.Sprint("q", run), m.rand.IntN(2000)
		}
		e := m.entity(p, row, run)
		if m.rand.IntN(4) == 0 || run == 5 && p == "p1" && row < 300 {
			_, err := m.db.Apply(t.Context(), table, store.Delete(e.Key, store.Any))
			if err != nil && !errors.Is(err, store.ErrEntityNotFound) {
				t.Fatal(err)
			}
			delete(m.now, e.Key)
			continue
		}
		e.Timestamp = apply(t, m.db, store.InsertOrReplace(e))[0].Timestamp
		m.now[e.Key] = e
	}
}

// entity returns a random entity of a run.
func (m *pruneModel) entity(partition string, row, run int) edm.Entity {
	filler := make([]byte, 100+m.rand.IntN(100))
	for i := range filler {
		filler[i] = byte(m.rand.Uint32()) // files are cut by their size on disk
	}
	e := edm.Entity{Key: edm.Key{Partition: partition, Row: fmt.Sprintf("%04d", row)}, Properties: edm.Properties{
		{Name: "Run", Value: edm.Int32(int32(run))},
		{Name: "N", Value: edm.Int64(int64(10_000*run + row))},
		{Name: "Filler", Value: edm.Binary(filler)},
	}}
	switch m.rand.IntN(3) {
	case 0:
		e.Properties = append(e.Properties, edm.Property{Name: "S", Value: edm.String(fmt.Sprintf("%c%04d", 'a'+run, row))})
	case 1:
		e.Properties = append(e.Properties, edm.Property{Name: "S", Value: edm.Double(float64(row) / 10)})
	}
	return e
}

func (m *pruneModel) snapshot(t *testing.T) {
	s, err := m.db.Snapshot()
	check(t, "Snapshot", err)
	m.snapshots = append(m.snapshots, s)
	m.maps = append(m.maps, maps.Clone(m.now))
	m.written = append(m.written, m.writes)
}

// filter returns a random filter. Many exclude all groups of some runs.
func (m *pruneModel) filter(depth int) string {
	r := m.rand
	if depth > 0 && r.IntN(2) == 0 {
		a, b := m.filter(depth-1), m.filter(depth-1)
		switch r.IntN(4) {
		case 0:
			return fmt.Sprintf("not (%s)", a)
		case 1:
			return fmt.Sprintf("(%s) or (%s)", a, b)
		}
		return fmt.Sprintf("(%s) and (%s)", a, b)
	}
	op := []string{"eq", "ne", "lt", "le", "gt", "ge"}[r.IntN(6)]
	run := r.IntN(pruneRuns + 1)
	switch r.IntN(7) {
	case 0, 1:
		return fmt.Sprintf("Run %s %d", op, run)
	case 2:
		return fmt.Sprintf("N %s %dL", op, 10_000*run+r.IntN(600))
	case 3:
		text := fmt.Sprintf("S %s '%c%04d'", op, 'a'+run, r.IntN(600))
		join := []string{"or S eq", "and S ne"}[r.IntN(2)]
		for range r.IntN(2) * r.IntN(30) {
			text += fmt.Sprintf(" %s '%c%04d'", join, 'a'+run, r.IntN(600))
		}
		return text
	case 4:
		return fmt.Sprintf("S %s %d.5", op, r.IntN(70))
	case 5:
		return fmt.Sprintf("PartitionKey %s '%c%d'", op, 'p'+r.IntN(2), r.IntN(8))
	}
	return fmt.Sprintf("RowKey %s '%04d'", op, r.IntN(600))
}

// pages returns the keys of all pages of q and the number of examined rows.
func pages(t *testing.T, s querier, q store.Query) (keys []edm.Key, stamps []edm.Ticks, examined int) {
	t.Helper()
	for {
		c := s.Query(t.Context(), table, q)
		n := 0
		for ; c.Next(); n++ {
			keys, stamps = append(keys, c.Row().Key()), append(stamps, c.Row().Timestamp())
		}
		check(t, "Query", c.Err())
		read, next := c.(store.Examiner).Examined(), c.Resume()
		check(t, "Close", c.Close())
		examined += read
		if q.Limit > 0 && n > q.Limit || q.Budget > 0 && read > q.Budget || n > read {
			t.Fatalf("%d rows, %d examined, limit %d, budget %d", n, read, q.Limit, q.Budget)
		}
		if next == nil {
			return keys, stamps, examined
		}
		if q.Limit == 0 && q.Budget == 0 {
			t.Fatalf("a query without limits resumes at %v", *next)
		}
		if q.From != nil && *next == *q.From {
			t.Fatalf("a page from %v with budget %d resumes there", *next, q.Budget)
		}
		q.From = next
	}
}

// TestSkippedGroupsHideOldVersions compares random filtered queries over eight
// overlapping runs of overwrites and deletes with maps, at the present and at snapshots:
// a group that is skipped must not reveal an older version that it shadows.
func TestSkippedGroupsHideOldVersions(t *testing.T) {
	race.SkipOneGoroutine(t)
	seed := testSeed(t)
	for _, c := range []struct {
		name   string
		bottom bool // the first run is at the bottom, the others above
		mems   bool // the last run is in memory
	}{{"tier", false, false}, {"bottom", true, false}, {"memory", true, true}} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() && c.name != "memory" {
				t.Skip("memory has runs in a tier and one at the bottom, too")
			}
			o := small(vfs.NewMem())
			o.Testing.Manual, o.NoSync, o.TierRuns, o.SegmentBytes = true, true, 16, 2<<20
			m := &pruneModel{rand: rand.New(rand.NewPCG(seed, 5)), db: mustCreate(t, o), now: map[edm.Key]edm.Entity{}}
			for run := range pruneRuns {
				m.write(t, run)
				if run%3 == 1 {
					m.snapshot(t)
				}
				m.write(t, run)
				if run == pruneRuns-1 && c.mems {
					break
				}
				check(t, "Flush", m.db.Flush(t.Context()))
				if run == 0 && c.bottom {
					check(t, "Compact", m.db.Compact(t.Context()))
				}
			}
			m.snapshot(t)
			var examined, written int
			queries := 60
			if race.Enabled {
				queries = 20
			}
			for range queries {
				text := m.filter(2)
				f := filter.MustParse(text)
				at := m.rand.IntN(len(m.maps))
				q := store.Query{Filter: f, Reverse: m.rand.IntN(2) == 0}
				if m.rand.IntN(2) == 0 {
					q.Limit = 1 + m.rand.IntN(40)
				}
				if m.rand.IntN(2) == 0 {
					q.Budget = 50 + m.rand.IntN(500)
				}
				got, stamps, n := pages(t, m.snapshots[at], q)
				if !strings.Contains(text, "Key") { // without ranges of keys
					examined += n
					written += m.written[at]
				}
				var want []edm.Key
				for key, e := range m.maps[at] {
					if f.Match(e.View()) {
						want = append(want, key)
					}
				}
				slices.SortFunc(want, edm.Key.Compare)
				if q.Reverse {
					slices.Reverse(want)
				}
				if !slices.Equal(got, want) {
					t.Fatalf("seed %d, %s at snapshot %d, reverse %v, limit %d, budget %d: %d rows, want %d",
						seed, text, at, q.Reverse, q.Limit, q.Budget, len(got), len(want))
				}
				for i, key := range got {
					if stamps[i] != m.maps[at][key].Timestamp {
						t.Fatalf("seed %d, %s at snapshot %d: %v is an old version", seed, text, at, key)
					}
				}
			}
			if examined >= written*9/10 {
				t.Errorf("%d rows examined of %d: no group is skipped", examined, written)
			}
			for _, s := range m.snapshots {
				check(t, "Close", s.Close())
			}
		})
	}
}
