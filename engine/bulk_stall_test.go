package engine_test

import (
	"math/rand/v2"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestLoadWaitsForCompactions installs many runs that overlap. The Load waits for compactions as
// writers do, so at no time overlap more than 20 runs.
func TestLoadWaitsForCompactions(t *testing.T) {
	o := manual(vfs.NewMem())
	o.TierRuns = 16
	o.Testing.LoadBytes = 1500
	db := mustCreate(t, o)
	b := &bulk{T: t, r: rand.New(rand.NewPCG(6, 6)), rows: map[string]int64{}}
	most := 0
	list := b.entities(1200, 50, false)
	result, err := db.Load(t.Context(), table, sequence(list), engine.LoadOptions{Installed: func(engine.LoadResult) {
		s, err := db.Stats()
		if err != nil {
			t.Error(err)
		}
		most = max(most, s.RunsMax)
	}})
	check(t, "Load", err)
	s, err := db.Stats()
	check(t, "Stats", err)
	if result.Installs < 100 || most < 10 || most > 20 || s.Stalls == 0 {
		t.Errorf("%d installs, up to %d runs, %d stalls; want 100 or more, 10 to 20, and some", result.Installs, most, s.Stalls)
	}
	b.loaded(list)
	b.check(db, b.rows)
}

// TestLoadInParts loads entities in order, whose pieces go to the files in several parts: only
// whole pieces are installed.
func TestLoadInParts(t *testing.T) {
	o := manual(vfs.NewMem())
	o.Testing.LoadBytes = 20_000
	db := mustCreate(t, o)
	b := &bulk{T: t, r: rand.New(rand.NewPCG(9, 9)), rows: map[string]int64{}}
	list := b.entities(600, 10_000, true)
	var installed []int64
	result, err := db.Load(t.Context(), table, sequence(list), engine.LoadOptions{Installed: func(r engine.LoadResult) {
		installed = append(installed, r.Entities)
	}})
	if err != nil || result.Entities != int64(len(list)) || result.Installs != len(installed) {
		t.Fatalf("Load: %+v, %v, %d calls", result, err, len(installed))
	}
	for i, n := range installed[1 : len(installed)-1] { // an entity has 40 to 280 bytes
		if n -= installed[i]; n < 20_000/280 || n > 20_000/40 {
			t.Errorf("%d entities in a piece of 20,000 bytes", n)
		}
	}
	b.loaded(list)
	b.check(db, b.rows)
}

// TestLoadAndOpenCursor reads the rest of a cursor that began before a Load of the same
// keys.
func TestLoadAndOpenCursor(t *testing.T) {
	db := mustCreate(t, small(vfs.NewMem()))
	fill(t, db, "p", 100, 500)
	cursors := []store.Cursor{db.Query(t.Context(), table, store.Query{}), db.Query(t.Context(), table, store.Query{Reverse: true})}
	for _, c := range cursors {
		if !c.Next() {
			t.Fatal(c.Err())
		}
	}
	var list []edm.Entity
	for i := range 200 {
		list = append(list, entity("p", string(rune('0'+i%10))+"x", 7777, 10), entity("p", "00000"+string(rune('0'+i%10)), 7777, 10))
	}
	result, err := db.Load(t.Context(), table, sequence(list), engine.LoadOptions{})
	check(t, "Load", err)
	check(t, "Compact", db.Compact(t.Context()))
	for _, c := range cursors {
		n := 1
		for c.Next() {
			n++
			if v, _ := c.Row().Lookup("N"); v.Word() == 7777 {
				t.Errorf("a cursor that began before sees %v", c.Row().Key())
			}
		}
		if err := c.Close(); err != nil || n != 100 {
			t.Errorf("%d rows, want 100; error %v", n, err)
		}
	}
	e, err := db.Get(t.Context(), table, edm.Key{Partition: "p", Row: "000003"})
	if n, _ := e.Properties.Get("N").Int64(); err != nil || n != 7777 || e.Timestamp != result.Timestamp {
		t.Errorf("after the Load N is %d, Timestamp %v, want %v; error %v", n, e.Timestamp, result.Timestamp, err)
	}
}

// TestReadBesideLoad opens the database for reading after each install of a Load, and between
// them while its files are written.
func TestReadBesideLoad(t *testing.T) {
	o := manual(vfs.NewMem())
	o.Testing.LoadBytes = 3000
	db := mustCreate(t, o)
	fill(t, db, "a", 20, 100)
	check(t, "Flush", db.Flush(t.Context()))
	b := &bulk{T: t, r: rand.New(rand.NewPCG(8, 8)), rows: map[string]int64{}}
	list := b.entities(300, 200, false)
	ro := o
	ro.ReadOnly = true
	read := func() int {
		reader := mustOpen(t, "db", ro)
		defer reader.Close()
		return len(dump(t, reader, store.Query{}))
	}
	installed := make(chan int64, len(list))
	result, err := db.Load(t.Context(), table, func(yield func(edm.Entity, error) bool) {
		for i, e := range list {
			if i%50 == 0 {
				if n := read(); n < 20 {
					t.Errorf("a reader sees %d rows before entity %d", n, i)
				}
			}
			if !yield(e, nil) {
				return
			}
		}
	}, engine.LoadOptions{Installed: func(r engine.LoadResult) {
		b.rows = map[string]int64{}
		b.loaded(list[:r.Entities])
		if n := read(); n != 20+len(b.rows) {
			t.Errorf("a reader sees %d rows after %d entities, want %d", n, r.Entities, 20+len(b.rows))
		}
		installed <- r.Entities
	}})
	if err != nil || result.Installs != len(installed) || result.Installs < 5 {
		t.Errorf("Load: %+v, %v, %d calls", result, err, len(installed))
	}
}
