package bench_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/bench"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/race"
)

// TestWorkloads runs each workload on few entities in every shape and compares the
// entities read with those written.
func TestWorkloads(t *testing.T) {
	const seed = 1
	n, names := 2_000, bench.ShapeNames()
	if testing.Short() {
		n, names = 1_000, names[:1]
	}
	for _, name := range names {
		shape, err := bench.ShapeOf(name, n)
		if err != nil {
			t.Fatal(err)
		}
		data := bench.NewDataset(shape, seed)
		var all, hot bench.Fold
		hottest := data.Match(edm.TypeDouble)
		for _, e := range entitiesOf(data) {
			all.Row(e.View())
			if hottest.Value(e.Properties[hottest.Prop].Value) {
				hot.Row(e.View())
			}
		}
		run := &bench.Run{Store: bench.Tablerock{}, Data: data, Dir: t.TempDir(), CacheBytes: 8 << 20, LogBytes: 1 << 20, Seed: seed}
		evicted := 0
		run.Evict = func(string) error { evicted++; return nil }
		for _, w := range bench.Workloads() {
			if !w.Fits(name, n) {
				continue
			}
			t.Run(w.Name+"/shape="+name, func(t *testing.T) {
				const passes = 2
				ops := passes * n
				if strings.HasPrefix(w.Name, "batch") || strings.HasPrefix(w.Name, "reopen") || strings.HasPrefix(w.Name, "insert") {
					ops = 10
				}
				before, after := 0, 0
				res, err := run.Do(t.Context(), w, ops, func() { before++ }, func() { after++ })
				if err != nil {
					t.Fatal(err)
				}
				if before != 1 || after != 1 || res.Ops != int64(ops) || res.Elapsed <= 0 || res.DiskBytes <= 0 {
					t.Errorf("%d and %d calls, result %+v; want one call each, %d ops, time and bytes", before, after, res, ops)
				}
				if got, want := run.Prepared[w.Start] != "", w.Start != bench.Empty; got != want {
					t.Errorf("a database in the state %v exists: %v, want %v", w.Start, got, want)
				}
				if w.Durable && res.Syncs < 1 {
					t.Errorf("%d syncs of a durable workload", res.Syncs)
				}
				if got, want := evicted > 0, w.Cold; got != want {
					t.Errorf("evicted: %v, want %v", got, want)
				}
				evicted = 0
				switch {
				case w.Name == "get/key=missing/readers=1":
					wantFold(t, res, 0, 0)
				case strings.HasPrefix(w.Name, "get"), strings.HasPrefix(w.Name, "scan/range=table"):
					wantFold(t, res, passes*all.Sum(), passes*all.Rows())
				case strings.HasPrefix(w.Name, "filter/type=Double"):
					wantFold(t, res, passes*hot.Sum(), passes*hot.Rows())
				}
			})
		}
	}
}

func wantFold(t *testing.T, res bench.Result, sum uint64, rows int64) {
	t.Helper()
	if res.Sum != sum || res.Rows != rows {
		t.Errorf("read %d rows with sum %016x, want %d with %016x", res.Rows, res.Sum, rows, sum)
	}
}

// TestReadsDoNotAllocate reads present and missing keys and scans the table, with the
// entities in the memtable and in sstables.
func TestReadsDoNotAllocate(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	const rows = 2000
	data := bench.NewDataset(bench.Shape{Partitions: 1, Rows: rows}, 1)
	db, err := bench.Tablerock{}.Open(t.Context(), t.TempDir(), bench.Options{CacheBytes: 32 << 20, LogBytes: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := db.Session()
	if err := s.Put(entitiesOf(data)); err != nil {
		t.Fatal(err)
	}
	var f bench.Fold
	get := func(key edm.Key, want bool) func() {
		return func() {
			if found, err := s.Get(key, &f); err != nil || found != want {
				t.Fatalf("get of %v: %v, %v, want %v", key, found, err, want)
			}
		}
	}
	scan := func() {
		if err := s.Scan(bench.Scan{}, &f); err != nil {
			t.Fatal(err)
		}
	}
	for _, where := range []string{"memtable", "sstables"} {
		if where == "sstables" {
			if err := db.Compact(); err != nil {
				t.Fatal(err)
			}
		}
		scan() // fills the cache
		if n := testing.AllocsPerRun(100, get(data.Key(rows/2), true)); n > 0 {
			t.Errorf("%s: a get allocates %v times, want 0", where, n)
		}
		if n := testing.AllocsPerRun(100, get(data.Missing(rows/2), false)); n > 0 {
			t.Errorf("%s: a get of a missing key allocates %v times, want 0", where, n)
		}
		// Only the start of a query allocates.
		if n := testing.AllocsPerRun(10, scan); n > rows/20 {
			t.Errorf("%s: a scan of %d entities allocates %v times, want none for a step", where, rows, n)
		}
	}
}

// broken is a store with one fault.
type broken struct {
	bench.Tablerock
	fault string
}

func (s broken) Open(ctx context.Context, dir string, o bench.Options) (bench.DB, error) {
	db, err := s.Tablerock.Open(ctx, dir, o)
	return brokenDB{db, s.fault}, err
}

type brokenDB struct {
	bench.DB
	fault string
}

func (d brokenDB) Session() bench.Session { return &brokenSession{Session: d.DB.Session(), db: d} }

type brokenSession struct {
	bench.Session
	db   brokenDB
	puts int
}

func (s *brokenSession) Put(entities []edm.Entity) error {
	s.puts++
	switch {
	case s.db.fault == "flush":
		return errors.Join(s.Session.Put(entities), s.db.Flush())
	case s.db.fault == "lose" && s.puts%3 == 0:
		return nil
	case s.db.fault == "shorten":
		e := entities[len(entities)-1]
		note := e.Properties[bench.PropNote].Value
		entities[len(entities)-1].Properties[bench.PropNote].Value = edm.String("")
		defer func() { e.Properties[bench.PropNote].Value = note }()
	}
	return s.Session.Put(entities)
}

func (s *brokenSession) Scan(scan bench.Scan, f *bench.Fold) error {
	if s.db.fault == "limit" {
		scan.Limit = 5
	}
	return s.Session.Scan(scan, f)
}

func (s *brokenSession) Get(key edm.Key, f *bench.Fold) (bool, error) {
	if s.db.fault == "skip" {
		return true, nil
	}
	return s.Session.Get(key, f)
}

// TestRunRefuses checks that a workload fails on a store that does less work than the
// workload asks for.
func TestRunRefuses(t *testing.T) {
	race.SkipOneGoroutine(t)
	data := bench.NewDataset(bench.Shape{Partitions: 2, Rows: 500}, 1)
	for _, c := range []struct{ fault, workload, want string }{
		{"flush", "reopen/from=log", ".sst exists"},
		{"lose", "load/order=sorted", "check: 700 rows"},
		{"lose", "insert/writers=1", "check: "},
		{"lose", "batch/writers=1", "check: "},
		{"shorten", "load/order=random", "check: 1000 rows"},
		{"shorten", "overwrite/passes=3", "check: 1000 rows"},
		{"limit", "scan/range=partition", "check: "},
		{"limit", "scan/range=table", "check: 25 rows"},
		{"limit", "filter/type=Int32", "check: "},
		{"skip", "get/key=present/readers=2", "check: 0 rows"},
		{"skip", "get/key=missing/readers=1", "found is true"},
		{"skip", "ycsb/mix=C", "check: 0 rows"},
	} {
		t.Run(c.fault+"/"+c.workload, func(t *testing.T) {
			i := slices.IndexFunc(bench.Workloads(), func(w bench.Workload) bool { return w.Name == c.workload })
			if i < 0 {
				t.Fatal("no workload has this name")
			}
			w := bench.Workloads()[i]
			run := &bench.Run{Store: broken{fault: c.fault}, Data: data, Dir: t.TempDir(), CacheBytes: 8 << 20, Seed: 1}
			_, err := run.Do(t.Context(), w, w.Ops(data.Len()), nil, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// slowToTell is a store that has been idle for an hour before it knows.
type slowToTell struct{ bench.Tablerock }

func (s slowToTell) Open(ctx context.Context, dir string, o bench.Options) (bench.DB, error) {
	db, err := s.Tablerock.Open(ctx, dir, o)
	return slowToTellDB{db}, err
}

type slowToTellDB struct{ bench.DB }

func (d slowToTellDB) WaitIdle() (time.Duration, error) {
	_, err := d.DB.WaitIdle()
	return time.Hour, err
}

// TestIdleIsNoWork checks that the time in which a store only finds out that it has no work
// left is not that of its background work.
func TestIdleIsNoWork(t *testing.T) {
	data := bench.NewDataset(bench.Shape{Partitions: 1, Rows: 500}, 1)
	run := &bench.Run{Store: slowToTell{}, Data: data, Dir: t.TempDir(), CacheBytes: 8 << 20, Seed: 1}
	res, err := run.Do(t.Context(), bench.Workloads()[0], data.Len(), nil, nil)
	if err != nil || res.BackgroundElapsed != 0 {
		t.Errorf("background work of %v, %v, want none", res.BackgroundElapsed, err)
	}
}

// TestReopenIsMeasured reopens a database three times: the result has the allocations of Open and
// the size of the reopened database, and no copy of it is left.
func TestReopenIsMeasured(t *testing.T) {
	data := bench.NewDataset(bench.Shape{Partitions: 2, Rows: 1000}, 1)
	workloads := bench.Workloads()
	w := workloads[slices.IndexFunc(workloads, func(w bench.Workload) bool { return w.Name == "reopen/from=log" })]
	dir := t.TempDir()
	run := &bench.Run{Store: bench.Tablerock{}, Data: data, Dir: dir, CacheBytes: 8 << 20, LogBytes: 1 << 20, Seed: 1}
	res, err := run.Do(t.Context(), w, 3, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.Allocs == 0 || res.AllocBytes == 0 {
		t.Errorf("%d allocations of %d bytes, want those of Open", res.Allocs, res.AllocBytes)
	}
	if res.TableBytes >= res.DiskBytes {
		t.Errorf("%d bytes of tables among %d: the flush at the end is of another database", res.TableBytes, res.DiskBytes)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || filepath.Join(dir, left[0].Name()) != run.Prepared[bench.Logged] {
		t.Errorf("left: %v, %v, want the prepared database alone", left, err)
	}
}

// interrupted is a store that ends a context at a call of one kind: before a long call, which
// must notice, and after a short one, whose caller must.
type interrupted struct {
	bench.Tablerock
	cancel func()
	kind   string
	at     int  // the number of the call
	calls  *int // one more if a long call does not notice
}

func (s interrupted) Open(ctx context.Context, dir string, o bench.Options) (bench.DB, error) {
	db, err := s.Tablerock.Open(ctx, dir, o)
	return interruptedDB{db, s}, err
}

func (s interrupted) call(kind string) {
	if kind == s.kind {
		if *s.calls++; *s.calls == s.at {
			s.cancel()
		}
	}
}

func (s interrupted) long(kind string, work func() error) error {
	s.call(kind)
	err := work()
	if err == nil && kind == s.kind && *s.calls >= s.at {
		*s.calls++
	}
	return err
}

type interruptedDB struct {
	bench.DB
	store interrupted
}

func (d interruptedDB) Session() bench.Session { return interruptedSession{d.DB.Session(), d.store} }

func (d interruptedDB) Load(entities iter.Seq2[edm.Entity, error]) error {
	return d.DB.(bench.BulkDB).Load(func(yield func(edm.Entity, error) bool) {
		for e, err := range entities {
			d.store.call("entity")
			if !yield(e, err) {
				return
			}
		}
	})
}

func (d interruptedDB) Compact() error { return d.store.long("compact", d.DB.Compact) }

func (d interruptedDB) WaitIdle() (idle time.Duration, err error) {
	err = d.store.long("wait", func() error {
		idle, err = d.DB.WaitIdle()
		return err
	})
	return idle, err
}

type interruptedSession struct {
	bench.Session
	store interrupted
}

func (s interruptedSession) Put(entities []edm.Entity) error {
	defer s.store.call("put")
	return s.Session.Put(entities)
}

func (s interruptedSession) Get(key edm.Key, f *bench.Fold) (bool, error) {
	defer s.store.call("get")
	return s.Session.Get(key, f)
}

func (s interruptedSession) Scan(scan bench.Scan, f *bench.Fold) error {
	return s.store.long("scan", func() error { return s.Session.Scan(scan, f) })
}

// TestRunEnds ends the context of workloads in their preparations, their operations, and after
// these. They return its error and do not do the rest.
func TestRunEnds(t *testing.T) {
	data := bench.NewDataset(bench.Shape{Partitions: 2, Rows: 500}, 1)
	for _, c := range []struct {
		workload, kind string
		at, calls      int
	}{
		{"load/order=sorted", "put", 3, 3},
		{"load/order=sorted", "wait", 1, 1},
		{"load/order=sorted", "scan", 1, 1}, // of the check
		{"load/by=bulk/order=random", "entity", 250, 250},
		{"insert/writers=1", "put", 3, 3},
		{"overwrite/passes=3", "put", 3, 3},
		{"overwrite/passes=3", "compact", 1, 1},
		{"overwrite/passes=3", "put", 13, 13},
		{"queue/page=1", "scan", 3, 3},
		{"get/key=present/readers=1", "get", 3, 3}, // of 1,000 before the measured ones
		{"get/key=present/readers=1", "get", 1003, 1016},
		{"scan/range=partition", "scan", 3, 3},
	} {
		t.Run(fmt.Sprintf("%s/%s=%d", c.workload, c.kind, c.at), func(t *testing.T) {
			workloads, calls := bench.Workloads(), 0
			w := workloads[slices.IndexFunc(workloads, func(w bench.Workload) bool { return w.Name == c.workload })]
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			store := interrupted{cancel: cancel, kind: c.kind, at: c.at, calls: &calls}
			run := &bench.Run{Store: store, Data: data, Dir: t.TempDir(), CacheBytes: 8 << 20, Seed: 1}
			if _, err := run.Do(ctx, w, w.Ops(data.Len()), nil, nil); !errors.Is(err, context.Canceled) || calls != c.calls {
				t.Errorf("error %v after %d calls, want %v after %d", err, calls, context.Canceled, c.calls)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if d, err := bench.Generate(ctx, data.Shape(), 1, nil); d != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("Generate returns %v, want %v", err, context.Canceled)
	}
}
