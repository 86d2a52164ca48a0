package engine_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// sequence returns the entities as the argument of Load. It gives all of them the same
// memory, as a caller may.
func sequence(list []edm.Entity) iter.Seq2[edm.Entity, error] {
	return func(yield func(edm.Entity, error) bool) {
		var props edm.Properties
		for _, e := range list {
			props = append(props[:0], e.Properties...)
			e.Properties = props
			if !yield(e, nil) {
				return
			}
			for i := range props {
				props[i] = edm.Property{Name: "Reused", Value: edm.Boolean(true)}
			}
		}
	}
}

// bulk is the model of a database that is loaded.
type bulk struct {
	*testing.T
	disk *vfs.Mem
	o    engine.Options
	db   *engine.DB
	r    *rand.Rand
	rows map[string]int64 // N by "partition/row"
	n    int64            // the last N
}

// entities returns n entities of the first keys, in order if sorted, with repeated keys.
func (b *bulk) entities(n, keys int, sorted bool) (list []edm.Entity) {
	for range n {
		b.n++
		k := b.r.IntN(keys)
		list = append(list, entity(fmt.Sprint("p", k%7), fmt.Sprintf("%05d", k), b.n, b.r.IntN(200)))
	}
	if sorted {
		slices.SortStableFunc(list, func(x, y edm.Entity) int { return x.Key.Compare(y.Key) })
	}
	return list
}

// loaded adds the entities that a Load has made durable.
func (b *bulk) loaded(list []edm.Entity) {
	for _, e := range list {
		b.rows[e.Key.Partition+"/"+e.Key.Row], _ = e.Properties.Get("N").Int64()
	}
}

func (b *bulk) check(q querier, rows map[string]int64) {
	b.Helper()
	found := map[string]int64{}
	for e, err := range store.Entities(q.Query(b.Context(), table, store.Query{})) {
		check(b.T, "Query", err)
		key := e.Key.Partition + "/" + e.Key.Row
		if _, again := found[key]; again {
			b.Fatalf("%s is found twice", key)
		}
		found[key], _ = e.Properties.Get("N").Int64()
	}
	if !maps.Equal(found, rows) {
		for key := range rows {
			if found[key] != rows[key] {
				b.Fatalf("%s: N is %d, want %d; %d rows, want %d", key, found[key], rows[key], len(found), len(rows))
			}
		}
		b.Fatalf("%d rows, want %d", len(found), len(rows))
	}
}

// write writes one entity by Apply, on condition of the model.
func (b *bulk) write() {
	b.Helper()
	b.n++
	k := b.r.IntN(400)
	e := entity(fmt.Sprint("p", k%7), fmt.Sprintf("%05d", k), b.n, b.r.IntN(200))
	key := e.Key.Partition + "/" + e.Key.Row
	_, exists := b.rows[key]
	op, want := store.Insert(e), error(nil)
	switch b.r.IntN(4) {
	case 0:
		if exists {
			want = store.ErrEntityExists
		}
	case 1:
		got, err := b.db.Get(b.Context(), table, e.Key)
		if exists != (err == nil) {
			b.Fatalf("Get %s: %v, exists %v", key, err, exists)
		}
		op = store.Replace(e, got.Timestamp.ETag())
		if !exists {
			op, want = store.Replace(e, store.Any), store.ErrEntityNotFound
		}
	case 2:
		op = store.InsertOrMerge(e)
	default:
		if op = store.Delete(e.Key, store.Any); !exists {
			want = store.ErrEntityNotFound
		}
	}
	_, err := b.db.Apply(b.Context(), table, op)
	switch {
	case !errors.Is(err, want) || want == nil && err != nil:
		b.Fatalf("%v of %s: %v, want %v", op.Kind, key, err, want)
	case err != nil:
	case op.Kind == store.OpDelete:
		delete(b.rows, key)
	default:
		b.rows[key] = b.n
	}
}

// load loads random entities, and ends early in one of four ways, or not.
func (b *bulk) load() {
	b.Helper()
	most := 300
	if b.o.Testing.LoadBytes == 1 {
		most = 30 // each is an install of its own
	}
	list := b.entities(1+b.r.IntN(most), 400, b.r.IntN(2) == 0)
	end, stop := b.r.IntN(8), b.r.IntN(len(list))
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	broken := errors.New("broken")
	var stamps []edm.Ticks
	installs := 0
	result, err := b.db.Load(ctx, table, func(yield func(edm.Entity, error) bool) {
		i := 0
		for e := range sequence(list) {
			var fail error
			if i++; i == stop {
				switch end {
				case 0:
					fail = broken
				case 1:
					e.Key.Row += "#"
				case 2:
					cancel()
				}
			}
			if !yield(e, fail) {
				return
			}
		}
	}, engine.LoadOptions{Installed: func(r engine.LoadResult) {
		installs++
		e, err := b.db.Get(ctx, table, list[r.Entities-1].Key)
		if err == nil {
			stamps = append(stamps, e.Timestamp)
		}
		if s, err := b.db.Stats(); err != nil || ctx.Err() == nil && s.LastSequence == 0 {
			b.Errorf("Stats: %+v, %v", s, err)
		}
	}})
	var op *store.OpError
	switch {
	case err == nil && (end > 2 || stop == 0 || end == 2) && (result.Entities == int64(len(list)) || end == 2):
	case end == 0 && errors.Is(err, broken):
	case end == 1 && errors.As(err, &op) && op.Index == stop-1 && errors.Is(err, store.ErrInvalid):
	case end == 2 && errors.Is(err, context.Canceled):
	default:
		b.Fatalf("Load of %d entities, end %d at %d: %+v, %v", len(list), end, stop, result, err)
	}
	if installs != result.Installs || !slices.IsSorted(stamps) || len(slices.Compact(slices.Clone(stamps))) != len(stamps) {
		b.Fatalf("%d calls for %d installs, Timestamps %v", installs, result.Installs, stamps)
	}
	b.loaded(list[:result.Entities])
}

// TestLoadModel compares a database with a map, after Loads that end in every way, other
// writes, flushes, compactions and reopenings. Snapshots keep what they saw.
func TestLoadModel(t *testing.T) {
	seeds := 12
	if testing.Short() {
		seeds = 2
	}
	for seed := range uint64(seeds) {
		b := &bulk{T: t, disk: vfs.NewMem(), r: rand.New(rand.NewPCG(seed, 77)), rows: map[string]int64{}}
		b.o = manual(b.disk)
		b.o.NoSync = seed%3 == 1
		b.o.Testing.Manual = seed%2 == 0
		b.o.Testing.LoadBytes = []int64{1, 3000, 20_000, 1 << 20}[seed%4]
		b.db = mustCreate(t, b.o)
		snaps := map[*engine.Snapshot]map[string]int64{}
		for step := range 250 {
			switch n := b.r.IntN(100); {
			case n < 12:
				b.load()
			case n < 80:
				b.write()
			case n < 83:
				check(t, "Flush", b.db.Flush(t.Context()))
			case n < 84:
				check(t, "Compact", b.db.Compact(t.Context()))
			case n < 90 && b.o.Testing.Manual:
				_, err := b.db.Step(t.Context())
				check(t, "Step", err)
			case n < 92:
				s, err := b.db.Snapshot()
				check(t, "Snapshot", err)
				snaps[s] = maps.Clone(b.rows)
			case n < 94:
				for s, rows := range snaps {
					b.check(s, rows)
					check(t, "Close", s.Close())
					delete(snaps, s)
				}
			case n < 95:
				for s := range snaps {
					check(t, "Close", s.Close())
				}
				clear(snaps)
				closeDB := (*engine.DB).Close
				if b.r.IntN(2) == 0 {
					closeDB = closeAtOnce
				}
				check(t, "Close", closeDB(b.db))
				b.db = mustOpen(t, "db", b.o)
			case n < 96:
				dest := fmt.Sprint("copy", seed, "-", step)
				check(t, "Checkpoint", b.db.Checkpoint(t.Context(), dest))
				copied := mustOpen(t, dest, b.o)
				b.check(copied, b.rows)
				check(t, "Close", copied.Close())
			default:
				b.check(b.db, b.rows)
			}
			if t.Failed() {
				t.Fatalf("seed %d, step %d: go test ./engine -run TestLoadModel", seed, step)
			}
		}
		for s, rows := range snaps {
			b.check(s, rows)
			check(t, "Close", s.Close())
		}
		b.check(b.db, b.rows)
		v, err := b.db.Verify(t.Context())
		if err != nil || len(v.Findings) > 0 || len(v.Unknown) > 0 {
			t.Fatalf("seed %d: Verify: %+v, %v", seed, v, err)
		}
		check(t, "Compact", b.db.Compact(t.Context()))
		b.check(b.db, b.rows)
		if s, err := b.db.Stats(); err != nil || s.Entities != int64(len(b.rows)) {
			t.Errorf("seed %d: Stats count %d entities, want %d; error %v", seed, s.Entities, len(b.rows), err)
		}
		check(t, "Close", b.db.Close())
		b.db = mustOpen(t, "db", b.o)
		b.check(b.db, b.rows)
	}
}

// TestLoadIsAtomic inserts and replaces entities on condition while they are loaded, and
// takes snapshots. Each snapshot has all of an install or nothing, and every write that
// succeeded on the old state was before the install, which replaced it.
func TestLoadIsAtomic(t *testing.T) {
	for _, noSync := range []bool{false, true} {
		o := small(vfs.NewMem())
		o.NoSync = noSync
		db := mustCreate(t, o)
		const keys, writers = 300, 4
		rounds := 10
		if testing.Short() {
			rounds = 3
		}
		row := func(i int) string { return fmt.Sprintf("%04d", i) }
		for round := int64(1); round <= int64(rounds); round++ {
			p := fmt.Sprint("p", round)
			var list []edm.Entity
			for i := range keys {
				list = append(list, entity(p, row(i), 1_000_000, 10))
			}
			for i := range 50 {
				apply(t, db, store.Insert(entity(p, row(i*6), 1, 10)))
			}
			var wg sync.WaitGroup
			var stop atomic.Bool
			for w := range uint64(writers) {
				wg.Go(func() {
					r := rand.New(rand.NewPCG(uint64(round), w))
					for !stop.Load() {
						key := edm.Key{Partition: p, Row: row(r.IntN(keys))}
						e := entity(p, key.Row, r.Int64N(1000), 10)
						op := store.Insert(e)
						if old, err := db.Get(t.Context(), table, key); err == nil {
							if n, _ := old.Properties.Get("N").Int64(); n == 1_000_000 {
								continue
							}
							op = store.Replace(e, old.Timestamp.ETag())
						}
						_, err := db.Apply(t.Context(), table, op)
						if err != nil && !errors.Is(err, store.ErrEntityExists) && !errors.Is(err, store.ErrPrecondition) {
							t.Errorf("Apply: %v", err)
							return
						}
					}
				})
			}
			wg.Go(func() {
				for !stop.Load() {
					n := 0
					for e, err := range store.Entities(db.Query(t.Context(), table, store.Query{From: &edm.Key{Partition: p}})) {
						if err != nil {
							t.Error(err)
							return
						}
						if v, _ := e.Properties.Get("N").Int64(); v == 1_000_000 && e.Key.Partition == p {
							n++
						}
					}
					if n != 0 && n != keys {
						t.Errorf("a query sees %d of %d loaded entities", n, keys)
						return
					}
				}
			})
			result, err := db.Load(t.Context(), table, sequence(list), engine.LoadOptions{})
			if err != nil || result.Installs != 1 || result.Entities != keys {
				t.Errorf("Load: %+v, %v", result, err)
			}
			stop.Store(true)
			wg.Wait()
			var stamp edm.Ticks
			for i := range keys {
				e, err := db.Get(t.Context(), table, edm.Key{Partition: p, Row: row(i)})
				if n, _ := e.Properties.Get("N").Int64(); err != nil || n != 1_000_000 || stamp != 0 && e.Timestamp != stamp {
					t.Fatalf("round %d, row %d: N is %d, Timestamp %v and %v, error %v", round, i, n, e.Timestamp, stamp, err)
				}
				stamp = e.Timestamp
			}
			if later := apply(t, db, store.InsertOrReplace(entity("z", "z", 1, 1))); later[0].Timestamp <= stamp {
				t.Errorf("a later write has the Timestamp %v, the load %v", later[0].Timestamp, stamp)
			}
		}
		check(t, "Close", db.Close())
	}
}

// TestLoadEndsWithItsTable drops the table during a Load, and makes it again.
func TestLoadEndsWithItsTable(t *testing.T) {
	disk := vfs.NewMem()
	o := small(disk)
	o.Testing.LoadBytes = 10_000
	db := mustCreate(t, o)
	ctx := t.Context()
	n := 0
	result, err := db.Load(ctx, table, func(yield func(edm.Entity, error) bool) {
		for ; n < 100_000; n++ {
			if n == 500 {
				check(t, "DeleteTable", db.DeleteTable(ctx, table))
				check(t, "CreateTable", db.CreateTable(ctx, table))
			}
			if !yield(entity("p", fmt.Sprintf("%06d", n), int64(n), 100), nil) {
				return
			}
		}
	}, engine.LoadOptions{})
	if !errors.Is(err, store.ErrTableNotFound) || result.Entities > 500 || n == 100_000 {
		t.Errorf("Load: %+v, %v after %d entities, want %v", result, err, n, store.ErrTableNotFound)
	}
	if rows := dump(t, db, store.Query{}); len(rows) > 0 {
		t.Errorf("the new table has %d rows", len(rows))
	}
	if _, err := db.Load(ctx, "Missing", sequence(nil), engine.LoadOptions{}); !errors.Is(err, store.ErrTableNotFound) {
		t.Errorf("Load of a missing table: %v", err)
	}
	check(t, "Compact", db.Compact(ctx))
	if left := files(t, disk, "db", ".sst"); len(left) > 1 {
		t.Errorf("files %v are left", left)
	}
}

// TestLoadEndsWithItsTableLate drops the table when the files of the only install are
// written.
func TestLoadEndsWithItsTableLate(t *testing.T) {
	disk := vfs.NewMem()
	injected := errorfs.Wrap(disk, nil)
	db := mustCreate(t, manual(injected))
	var once sync.Once
	injected.SetRule(func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "sync" && strings.HasSuffix(op.Name, ".sst") {
			once.Do(func() { check(t, "DeleteTable", db.DeleteTable(t.Context(), table)) })
		}
		return nil
	})
	result, err := db.Load(t.Context(), table, sequence([]edm.Entity{entity("p", "r", 1, 10)}), engine.LoadOptions{})
	if !errors.Is(err, store.ErrTableNotFound) || result.Installs != 0 {
		t.Errorf("Load: %+v, %v, want %v", result, err, store.ErrTableNotFound)
	}
	injected.SetRule(nil)
	for _, f := range files(t, disk, "db", ".sst") {
		if s, err := db.Stats(); err != nil || s.SSTables == 0 {
			t.Errorf("%s is left", f)
		}
	}
}

// TestLoadRefusesAsApply gives both the same bad entities.
func TestLoadRefusesAsApply(t *testing.T) {
	o := small(vfs.NewMem())
	db := mustCreate(t, o)
	prop := func(name string, v edm.Value) edm.Entity {
		return edm.Entity{Key: edm.Key{Partition: "p", Row: "r"}, Properties: edm.Properties{{Name: name, Value: v}}}
	}
	many := edm.Entity{Key: edm.Key{Partition: "p", Row: "r"}}
	for i := range edm.MaxProperties + 1 {
		many.Properties = append(many.Properties, edm.Property{Name: fmt.Sprint("P", i), Value: edm.Int32(1)})
	}
	most := edm.Entity{Key: edm.Key{Partition: "p", Row: "r"}} // more than the offsets of a shape hold
	for i := range 1<<13 + 1 {
		most.Properties = append(most.Properties, edm.Property{Name: fmt.Sprint("P", i), Value: edm.Int64(1)})
	}
	large := edm.Entity{Key: edm.Key{Partition: "p", Row: "r"}}
	for i := range 17 {
		large.Properties = append(large.Properties, edm.Property{Name: fmt.Sprint("P", i), Value: edm.Binary(make([]byte, 64<<10))})
	}
	// Strings count twice their encoding, and so do names.
	text := edm.Entity{Key: edm.Key{Partition: "p", Row: "r"}}
	names := edm.Entity{Key: edm.Key{Partition: "p", Row: "r"}}
	for i := range edm.MaxProperties {
		text.Properties = append(text.Properties, edm.Property{Name: fmt.Sprint("P", i), Value: edm.String(strings.Repeat("x", 2200))})
		name := fmt.Sprintf("P%0*d", edm.MaxNameUnits-1, i)
		names.Properties = append(names.Properties, edm.Property{Name: name, Value: edm.String(strings.Repeat("x", 1850))})
	}
	for name, e := range map[string]edm.Entity{
		"key":             {Key: edm.Key{Partition: "a/b", Row: "r"}},
		"row":             {Key: edm.Key{Partition: "a", Row: "\xff"}},
		"name":            prop("a b", edm.Int32(1)),
		"system property": prop("Timestamp", edm.Int32(1)),
		"PartitionKey":    prop("PartitionKey", edm.String("x")),
		"value":           prop("A", edm.String("\xff")),
		"long value":      prop("A", edm.Binary(make([]byte, 1<<17))),
		"date":            prop("A", edm.DateTime(-1)),
		"twice":           {Key: edm.Key{Partition: "p", Row: "r"}, Properties: edm.Properties{{Name: "A", Value: edm.Int32(1)}, {Name: "A", Value: edm.Value{}}}},
		"many":            many,
		"most":            most,
		"large":           large,
		"text":            text,
		"names":           names,
	} {
		_, want := db.Apply(t.Context(), table, store.InsertOrReplace(e))
		good := edm.Entity{Key: edm.Key{Partition: "p", Row: "good"}, Properties: many.Properties[:edm.MaxProperties]}
		result, err := db.Load(t.Context(), table, sequence([]edm.Entity{good, good, e, good}), engine.LoadOptions{})
		var got, applied *store.OpError
		if !errors.As(err, &got) || !errors.As(want, &applied) || got.Err.Error() != applied.Err.Error() ||
			got.Executed != applied.Executed || got.Index != 2 || result.Entities != 0 {
			t.Errorf("%s: Load: %+v, %v; Apply: %v", name, result, err, want)
		}
	}
	if rows := dump(t, db, store.Query{}); len(rows) > 0 {
		t.Errorf("%d rows were written", len(rows))
	}
	if _, err := db.Load(t.Context(), "no name", sequence(nil), engine.LoadOptions{}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("Load of a table with a bad name: %v", err)
	}
	check(t, "Close", db.Close())
	if _, err := db.Load(t.Context(), table, sequence(nil), engine.LoadOptions{}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Load after Close: %v", err)
	}
	o.ReadOnly = true
	reader := mustOpen(t, "db", o)
	if _, err := reader.Load(t.Context(), table, sequence(nil), engine.LoadOptions{}); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("Load of a reader: %v", err)
	}
}

// TestCloseEndsLoad closes the database during a Load.
func TestCloseEndsLoad(t *testing.T) {
	o := small(vfs.NewMem())
	o.Testing.LoadBytes = 5000
	db := mustCreate(t, o)
	closed := make(chan error, 1)
	result, err := db.Load(t.Context(), table, func(yield func(edm.Entity, error) bool) {
		for n := 0; ; n++ {
			if n == 1000 {
				go func() { closed <- db.Close() }()
			}
			if !yield(entity("p", fmt.Sprintf("%09d", n), int64(n), 100), nil) {
				return
			}
		}
	}, engine.LoadOptions{})
	if !errors.Is(err, store.ErrClosed) || result.Entities == 0 {
		t.Errorf("Load: %+v, %v", result, err)
	}
	check(t, "Close", <-closed)
	db = mustOpen(t, "db", o)
	if rows := dump(t, db, store.Query{}); int64(len(rows)) != result.Entities {
		t.Errorf("%d rows, the result says %d", len(rows), result.Entities)
	}
}

// TestLoadPanics passes on a panic of the sequence.
func TestLoadPanics(t *testing.T) {
	db := mustCreate(t, small(vfs.NewMem()))
	func() {
		defer func() {
			if r := recover(); r != "sequence" {
				t.Errorf("recovered %v", r)
			}
		}()
		_, _ = db.Load(t.Context(), table, func(yield func(edm.Entity, error) bool) {
			yield(entity("p", "r", 1, 1), nil)
			panic("sequence")
		}, engine.LoadOptions{})
	}()
	check(t, "Close", db.Close())
}

// TestCrashOfLoad kills the process and cuts the power at operations of a Load of several
// installs, with writes before it. The table has whole installs of a prefix, at least
// those that were reported, and no file is left that is not listed.
func TestCrashOfLoad(t *testing.T) {
	for _, serial := range []bool{false, true}[:2/stride(2)] {
		t.Run(fmt.Sprintf("serial=%t", serial), func(t *testing.T) { testCrashOfLoad(t, serial) })
	}
}

func testCrashOfLoad(t *testing.T, serial bool) {
	disk := vfs.NewCrashMem()
	o := manual(disk)
	o.Testing.Manual = serial
	o.Testing.LoadBytes = 4000
	o.Cache = engine.NewCache(1 << 20)
	db := mustCreate(t, o)
	fill(t, db, "a", 30, 50)
	b := &bulk{T: t, r: rand.New(rand.NewPCG(4, 4)), rows: map[string]int64{}}
	list := b.entities(120, 300, false)
	var ends []int64 // of the installs
	type state struct {
		disk     *vfs.Mem
		reported int
		killed   bool
		at       vfs.Op
	}
	var states []state
	most, n, ended := 3, 0, false
	var mu sync.Mutex
	disk.OnOp(func(op vfs.Op) {
		mu.Lock()
		defer mu.Unlock()
		if n++; ended || n%stride(5) != 0 {
			return
		}
		states = append(states, state{disk.Clone(), len(ends), true, op})
		for after := range disk.CrashStates(most) {
			states = append(states, state{after, len(ends), false, op})
		}
	})
	result, err := db.Load(t.Context(), table, sequence(list), engine.LoadOptions{Installed: func(r engine.LoadResult) {
		mu.Lock()
		defer mu.Unlock()
		ends = append(ends, r.Entities)
	}})
	mu.Lock()
	ended = true // the background goroutine may go on
	mu.Unlock()
	states = append(states, state{disk: disk.Crash(vfs.CrashOptions{Mode: "min"}), reported: len(ends)})
	if err != nil || len(ends) < 3 || result.Entities != int64(len(list)) {
		t.Fatalf("Load: %+v, %v", result, err)
	}
	seen := map[int]int{}
	o.Testing.Manual = true
	for i, s := range states {
		o.FS = s.disk
		db, err := engine.Open("db", o)
		if err != nil {
			t.Fatalf("state %d, killed %v at %v: %v", i, s.killed, s.at, err)
		}
		installs := -1
		for k := s.reported; k <= min(s.reported+1, len(ends)) && installs < 0; k++ {
			rows := map[string]int64{}
			for j := range 30 {
				rows[fmt.Sprintf("a/%06d", j)] = int64(j)
			}
			m := &bulk{T: t, rows: rows}
			if k > 0 {
				m.loaded(list[:ends[k-1]])
			}
			if len(dump(t, db, store.Query{})) == len(rows) {
				m.check(db, rows)
				installs = k
			}
		}
		if installs < 0 {
			t.Fatalf("state %d, killed %v at %v: %d rows are not a prefix of whole installs, %d were reported", i, s.killed, s.at,
				len(dump(t, db, store.Query{})), s.reported)
		}
		seen[installs]++
		v, err := db.Verify(t.Context())
		unknown := slices.DeleteFunc(v.Unknown, func(name string) bool { return headless(t, s.disk, "db/"+name) })
		if err != nil || len(v.Findings) > 0 || len(unknown) > 0 {
			t.Fatalf("state %d, killed %v at %v: Verify: %+v, %v", i, s.killed, s.at, v, err)
		}
		apply(t, db, store.InsertOrReplace(entity("z", "z", 1, 1)))
		check(t, "Close", closeAtOnce(db))
	}
	t.Logf("%d states by installs: %v", len(states), seen)
	for k := range len(ends) + 1 {
		if seen[k] == 0 {
			t.Errorf("no state with %d installs", k)
		}
	}
}

// headless reports whether a file has not the complete header of its sstable, but nothing or
// what was in the sectors before, so that Open does not know whose it is.
func headless(t *testing.T, disk *vfs.Mem, name string) bool {
	t.Helper()
	b := readFile(t, disk, name)
	_, number := filename.Parse(path.Base(name))
	return len(b) < 48 || !bytes.HasPrefix(b, []byte("TROCKsst")) || binary.LittleEndian.Uint64(b[32:]) != number
}

// TestLoadOnFullDisk fills the disk by Loads, and fails writes of files: the unfinished files
// are removed, what is reported is there, and deletes succeed.
func TestLoadOnFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("fills 24 MiB in one goroutine; the crash tests fail Loads, too")
	}
	f := newFullDisk(t, 24<<20, 256<<10, 2000, false)
	f.o.Testing.LoadBytes = 512 << 10
	f.reopen()
	loads := 0
	var err error
	for ; err == nil; loads++ {
		var list []edm.Entity
		for i := range 700 {
			list = append(list, big(f.r, fmt.Sprintf("%06d-%06d", loads, i), "A", f.size))
		}
		var result engine.LoadResult
		result, err = f.db.Load(t.Context(), table, sequence(list), engine.LoadOptions{})
		for _, e := range list[:result.Entities] {
			got, err := f.db.Get(t.Context(), table, e.Key)
			check(t, "Get", err)
			e.Timestamp = got.Timestamp
			f.rows[e.Key.Row] = e
		}
	}
	if !errors.Is(err, store.ErrNoSpace) {
		t.Fatalf("Load on a full disk: %v", err)
	}
	if s, _ := f.disk.Space("db"); s.Free > 24<<20/5 {
		t.Errorf("%d bytes are free of %d", s.Free, 24<<20)
	}
	f.check()
	if v, err := f.db.Verify(t.Context()); err != nil || len(v.Unknown) > 0 || len(v.Findings) > 0 {
		t.Errorf("Verify: %+v, %v", v, err)
	}
	if s, err := f.db.Stats(); err != nil || s.SSTables != len(files(t, f.disk, "db", ".sst")) {
		t.Errorf("%d sstables are listed, the directory has %v; error %v", s.SSTables, files(t, f.disk, "db", ".sst"), err)
	}
	f.deleteHalf()
	f.check()
	f.kill()
}

// TestLoadFaults fails one operation of a Load after the other.
func TestLoadFaults(t *testing.T) {
	for _, serial := range []bool{false, true}[:2/stride(2)] {
		t.Run(fmt.Sprintf("serial=%t", serial), func(t *testing.T) { testLoadFaults(t, serial) })
	}
}

func testLoadFaults(t *testing.T, serial bool) {
	disk := vfs.NewMem()
	o := manual(disk)
	o.Testing.Manual = serial
	o.TierRuns = 15 // no compaction, whose faults are not those of the Load
	o.Testing.LoadBytes = 4000
	db := mustCreate(t, o)
	fill(t, db, "a", 30, 50)
	check(t, "Close", closeAtOnce(db))
	b := &bulk{T: t, r: rand.New(rand.NewPCG(5, 5)), rows: map[string]int64{}}
	list := b.entities(100, 300, false)
	for _, cause := range []syscall.Errno{syscall.ENOSPC, syscall.EIO} {
		failed := 0
		for at, ended := 1, false; !ended; at += stride(4) {
			under := disk.Clone()
			injected := errorfs.Wrap(under, nil)
			o.FS = injected
			db := mustOpen(t, "db", o)
			var mu sync.Mutex
			n := 0
			injected.SetRule(func(op vfs.Op) *errorfs.Fault {
				mu.Lock()
				defer mu.Unlock()
				if n++; n == at && op.Kind != "remove" {
					return &errorfs.Fault{Err: cause}
				}
				return nil
			})
			result, err := db.Load(t.Context(), table, sequence(list), engine.LoadOptions{})
			injected.SetRule(nil)
			mu.Lock()
			ended = n < at
			mu.Unlock()
			if err != nil {
				failed++
			}
			if err == nil && result.Entities != int64(len(list)) || err != nil && !errors.Is(err, cause) ||
				err != nil && cause == syscall.ENOSPC && !errors.Is(err, store.ErrNoSpace) && !errors.Is(err, store.ErrReadOnly) &&
					!errors.Is(err, store.ErrOutcomeUnknown) {
				t.Fatalf("operation %d: Load: %+v, %v", at, result, err)
			}
			unknown := errors.Is(err, store.ErrOutcomeUnknown)
			if unknown {
				// Records would contradict one of the two manifests.
				if _, err := db.Apply(t.Context(), table, store.Insert(entity("later", "r", 1, 1))); !errors.Is(err, store.ErrReadOnly) {
					t.Fatalf("operation %d: Apply after an unknown outcome: %v", at, err)
				}
			}
			// Otherwise background work can be under way.
			if s, err := db.Stats(); serial && err == nil && db.Failure() == nil && s.SSTables != len(files(t, under, "db", ".sst")) {
				t.Fatalf("operation %d: %d sstables are listed, the directory has %v", at, s.SSTables, files(t, under, "db", ".sst"))
			}
			if v, err := db.Verify(t.Context()); serial && !unknown && (err != nil || len(v.Unknown) > 0) {
				t.Fatalf("operation %d: Verify: %+v, %v", at, v, err)
			}
			if err := closeAtOnce(db); err != nil && db.Failure() == nil {
				t.Fatalf("operation %d: Close: %v", at, err)
			}
			o.FS = under
			db = mustOpen(t, "db", o)
			rows := len(dump(t, db, store.Query{}))
			m := &bulk{T: t, rows: map[string]int64{}}
			m.loaded(list[:result.Entities])
			if rows != 30+len(m.rows) && (!unknown || rows < 30+len(m.rows)) {
				t.Fatalf("operation %d: %d rows, want %d; %v", at, rows, 30+len(m.rows), err)
			}
			check(t, "Close", closeAtOnce(db))
		}
		if failed < 10/stride(4) {
			t.Errorf("%v: %d Loads failed", cause, failed)
		}
	}
}

// TestLoadAtEndOfTime loads while the clock is at the last Timestamp, or beyond it. The Load must be
// refused as a write is, and the next Open must find the database as it was.
func TestLoadAtEndOfTime(t *testing.T) {
	for _, noSync := range []bool{false, true} {
		for _, ahead := range []time.Duration{0, time.Hour} {
			t.Run(fmt.Sprintf("noSync=%v, ahead=%v", noSync, ahead), func(t *testing.T) {
				disk := vfs.NewMem()
				o := manual(disk)
				o.NoSync = noSync
				db := mustCreate(t, o)
				fill(t, db, "p", 3, 10)
				want := dump(t, db, store.Query{})
				check(t, "Close", db.Close())
				late := o
				late.Testing.Clock = stopped{edm.MaxTicks.Time().Add(ahead)}
				db = mustOpen(t, "db", late)
				rows := sequence([]edm.Entity{entity("q", "r", 1, 10)})
				_, err := db.Load(t.Context(), table, rows, engine.LoadOptions{})
				if !errors.Is(err, store.ErrReadOnly) {
					t.Errorf("Load: %v, want %v", err, store.ErrReadOnly)
				}
				check(t, "Close", db.Close())
				db = mustOpen(t, "db", o)
				if got := dump(t, db, store.Query{}); !slices.Equal(got, want) {
					t.Errorf("after Open %q, want %q", got, want)
				}
				check(t, "Close", db.Close())
			})
		}
	}
}
