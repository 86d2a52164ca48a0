package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// big returns an entity with n random bytes in properties whose names begin with
// prefix.
func big(r *rand.Rand, row, prefix string, n int) edm.Entity {
	e := edm.Entity{Key: edm.Key{Partition: "big", Row: row}}
	for i := 0; n > 0; i++ {
		b := make([]byte, min(n, edm.MaxBinaryBytes))
		_, _ = source{r}.Read(b)
		e.Properties = append(e.Properties, edm.Property{Name: fmt.Sprint(prefix, i), Value: edm.Binary(b)})
		n -= len(b)
	}
	return e
}

// TestOversizedRecords writes records far above SegmentBytes, which must survive a
// kill, a flush and a reopen.
func TestOversizedRecords(t *testing.T) {
	race.SkipOneGoroutine(t)
	r := rand.New(rand.NewPCG(1, 2))
	disk := vfs.NewMem()
	db := mustCreate(t, manual(disk))
	want := map[string]edm.Entity{}
	put := func(make func(edm.Entity) store.Op, entities ...edm.Entity) {
		t.Helper()
		var ops []store.Op
		for _, e := range entities {
			old := want[e.Key.Row]
			have := edm.Entity{Key: e.Key, Properties: append(old.Properties[:len(old.Properties):len(old.Properties)], e.Properties...)}
			want[e.Key.Row] = have
			ops = append(ops, make(e))
		}
		for i, res := range apply(t, db, ops...) {
			have := want[entities[i].Key.Row]
			have.Timestamp = res.Timestamp
			want[entities[i].Key.Row] = have
		}
	}
	verify := func(what string, db *engine.DB) {
		t.Helper()
		n := 0
		for e, err := range store.Entities(db.Query(t.Context(), table, store.Query{})) {
			check(t, what, err)
			n++
			w := want[e.Key.Row]
			if e.Timestamp != w.Timestamp || edm.EntitySize(e.Key, e.Properties) != edm.EntitySize(w.Key, w.Properties) {
				t.Fatalf("%s: %v has %d bytes of %v, want %d of %v", what, e.Key, edm.EntitySize(e.Key, e.Properties),
					e.Timestamp, edm.EntitySize(w.Key, w.Properties), w.Timestamp)
			}
			for _, p := range w.Properties {
				if got := e.Properties.Get(p.Name); string(got.Bytes()) != string(p.Value.Bytes()) {
					t.Fatalf("%s: %v of %v differs", what, p.Name, e.Key)
				}
			}
		}
		if n != len(want) {
			t.Errorf("%s: %d entities, want %d", what, n, len(want))
		}
	}
	insert := func(e edm.Entity) store.Op { return store.Insert(e) }
	var hundred []edm.Entity
	for i := range 100 {
		hundred = append(hundred, big(r, fmt.Sprint("h", i), "A", 40<<10))
	}
	put(insert, hundred...)
	put(insert, big(r, "mega", "A", 1<<20-2000))
	verify("after the batch", db)
	verify("after a kill", mustOpen(t, "db", manual(disk.Clone())))
	// One batch of at most 4 MiB results in 94 MiB, 17 MiB under -short: a segment has
	// 64 KiB.
	large := 100
	if testing.Short() {
		large = 10
	}
	merge := func(e edm.Entity) store.Op { return store.Merge(e, store.Any) }
	for i := range large {
		put(merge, big(r, fmt.Sprint("h", i), "L", 900<<10))
	}
	var merges []edm.Entity
	for i := range 100 {
		merges = append(merges, big(r, fmt.Sprint("h", i), "M", 40<<10))
	}
	put(merge, merges...)
	verify("after merges", db)
	check(t, "Flush", db.Flush(t.Context()))
	verify("after a flush", db)
	apply(t, db, store.InsertOrReplace(want["mega"]))
	e, err := db.Get(t.Context(), table, want["mega"].Key)
	check(t, "Get", err)
	want["mega"] = e
	check(t, "Close", db.Close())
	db = mustOpen(t, "db", manual(disk))
	verify("after a reopen", db)
	if r, err := db.Verify(t.Context()); err != nil || len(r.Findings) > 0 {
		t.Errorf("Verify: %+v, %v", r, err)
	}
}

// TestFarTooManyProperties refuses entities whose values would have offsets beyond 16 bits.
func TestFarTooManyProperties(t *testing.T) {
	race.SkipOneGoroutine(t)
	db := mustCreate(t, manual(vfs.NewMem()))
	old := apply(t, db, store.Insert(entity("p", "old", 1, 10)))[0]
	for _, row := range []string{"old", "new"} {
		for _, n := range []int{1<<13 + 1, 1 << 16} {
			e := edm.Entity{Key: edm.Key{Partition: "p", Row: row}}
			for i := range n {
				e.Properties = append(e.Properties, edm.Property{Name: fmt.Sprint("P", i), Value: edm.Int64(1)})
			}
			ops := []store.Op{store.InsertOrReplace(e), store.InsertOrMerge(e), store.Merge(e, store.Any), store.Replace(e, store.Any)}
			if row == "new" {
				ops = []store.Op{store.InsertOrReplace(e), store.InsertOrMerge(e), store.Insert(e)}
			}
			for _, op := range ops {
				_, err := db.Apply(t.Context(), table, op)
				if refusal := (*edm.Error)(nil); !errors.As(err, &refusal) || refusal.Rule != edm.RulePropertyCount {
					t.Errorf("%v of %s with %d properties: %v, want the rule of their number", op.Kind, row, n, err)
				}
			}
		}
	}
	rows := 0
	for e, err := range db.Entities(t.Context(), table, store.Query{}) {
		check(t, "Entities", err)
		if rows++; e.Timestamp != old.Timestamp {
			t.Errorf("%v was written", e.Key)
		}
	}
	if rows != 1 {
		t.Errorf("%d rows, want 1", rows)
	}
	check(t, "Close", db.Close())
}

// TestLongKeys uses keys of the greatest length, in characters of one to four
// bytes.
func TestLongKeys(t *testing.T) {
	disk := vfs.NewMem()
	db := mustCreate(t, manual(disk))
	var keys []edm.Key
	for _, c := range []string{"a", "\u00e9", "\u8868", "\U0001F600"} {
		long := strings.Repeat(c, edm.MaxKeyUnits/edm.UTF16Len(c))
		for _, row := range []string{"", "x", long} {
			keys = append(keys, edm.Key{Partition: long, Row: row})
		}
	}
	for i, k := range keys {
		e := entity(k.Partition, k.Row, int64(i), 10)
		apply(t, db, store.Insert(e))
	}
	for _, when := range []string{"memory", "file", "reopened"} {
		for i, k := range keys {
			e, err := db.Get(t.Context(), table, k)
			if err != nil || e.Key != k || !e.Properties.Get("N").Equal(edm.Int64(int64(i))) {
				t.Errorf("%s: key %d: %v", when, i, err)
			}
		}
		if n := len(dump(t, db, store.Query{})); n != len(keys) {
			t.Errorf("%s: %d rows, want %d", when, n, len(keys))
		}
		if when == "memory" {
			check(t, "Compact", db.Compact(t.Context()))
			continue
		}
		check(t, "Close", db.Close())
		db = mustOpen(t, "db", manual(disk))
	}
}

// TestManyShapes writes more shapes than a segment can number. Segments must rotate,
// memory stay bounded, and each entity keep its properties.
func TestManyShapes(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 70,000 entities")
	}
	o := engine.Options{FS: vfs.NewMem(), SegmentBytes: 256 << 20, CacheBytes: 1 << 20, NoSync: true, Testing: engine.TestHooks{Manual: true}}
	db := mustCreate(t, o)
	const n = 70_000
	var ops []store.Op
	for i := range n {
		ops = append(ops, store.Insert(edm.Entity{
			Key:        edm.Key{Partition: fmt.Sprint(i / 100), Row: fmt.Sprint(i)},
			Properties: edm.Properties{{Name: fmt.Sprint("P", i), Value: edm.Int32(int32(i))}},
		}))
		if len(ops) == 100 {
			apply(t, db, ops...)
			ops = ops[:0]
		}
	}
	s, err := db.Stats()
	check(t, "Stats", err)
	if s.MemtableBytes > 4*o.SegmentBytes {
		t.Errorf("memtables take %d bytes", s.MemtableBytes)
	}
	for i := 0; i < n; i += 997 {
		e, err := db.Get(t.Context(), table, edm.Key{Partition: fmt.Sprint(i / 100), Row: fmt.Sprint(i)})
		if err != nil || len(e.Properties) != 1 || !e.Properties.Get(fmt.Sprint("P", i)).Equal(edm.Int32(int32(i))) {
			t.Fatalf("entity %d: %v, %v", i, e, err)
		}
	}
	runtime.KeepAlive(db)
}

// TestBackpressure blocks the creation of sstables. Writers must stall once three
// memtables wait, stop waiting when their ctx ends, and continue afterwards.
func TestBackpressure(t *testing.T) {
	release := make(chan struct{})
	fsys := errorfs.Wrap(vfs.NewMem(), func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "create" && strings.HasSuffix(op.Name, ".sst") {
			<-release
		}
		return nil
	})
	db := mustCreate(t, small(fsys))
	put := func(ctx context.Context, i int) error {
		_, err := db.Apply(ctx, table, store.Insert(entity("p", fmt.Sprintf("%06d", i), int64(i), 8000)))
		return err
	}
	// A segment of 64 KiB has space for seven. Three are frozen, and one is active.
	const written, rows = 3*7 + 1, 100
	for i := range written {
		check(t, "Apply", put(t.Context(), i))
	}
	s, err := db.Stats()
	check(t, "Stats", err)
	if s.MemtableBytes > 8*64<<10 {
		t.Errorf("memtables take %d bytes", s.MemtableBytes)
	}
	ctx, cancel := context.WithCancel(t.Context())
	waiting := make(chan error, 1)
	go func() { waiting <- put(ctx, written) }()
	for range 20_000 {
		runtime.Gosched()
	}
	select {
	case err := <-waiting:
		t.Errorf("write %d did not stall: %v", written, err)
	default:
		cancel()
		if err := <-waiting; !errors.Is(err, context.Canceled) {
			t.Errorf("Apply whose ctx ends: %v, want %v", err, context.Canceled)
		}
	}
	cancel()
	if n := len(dump(t, db, store.Query{})); n != written {
		t.Errorf("%d rows are read while writers stall, want %d", n, written)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := written; i < rows; i++ {
			if err := put(t.Context(), i); err != nil {
				t.Errorf("Apply: %v", err)
			}
		}
	})
	close(release)
	wg.Wait()
	if n := len(dump(t, db, store.Query{})); n != rows {
		t.Errorf("%d rows, want %d", n, rows)
	}
}

// TestCompactWakesWriters stalls a writer because of too many runs, which Compact and
// not the background work reduces. The writer must continue.
func TestCompactWakesWriters(t *testing.T) {
	disk := vfs.NewMem()
	o := manual(disk)
	o.TierRuns = 16
	db := mustCreate(t, o)
	for range 20 {
		fill(t, db, "p", 200, 10) // a compaction takes several steps
		check(t, "Flush", db.Flush(t.Context()))
	}
	s, err := db.Stats()
	check(t, "Stats", err)
	check(t, "Close", db.Close())
	if s.RunsMax != 20 {
		t.Fatalf("%d runs, want 20", s.RunsMax)
	}
	opened := make(chan *engine.DB, 1)
	var wg sync.WaitGroup
	var once sync.Once
	wg.Add(1)
	o.Testing.Manual = false
	o.FS = errorfs.Wrap(disk, func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "create" && strings.HasSuffix(op.Name, ".sst") {
			once.Do(func() { // in the first step of a compaction
				db := <-opened
				wg.Go(func() { fill(t, db, "q", 2, 10) })
				wg.Go(func() { check(t, "Compact", db.Compact(t.Context())) })
				wg.Done()
				for range 100_000 {
					runtime.Gosched() // until both of them wait
				}
			})
		}
		return nil
	})
	db = mustOpen(t, "db", o)
	opened <- db
	wg.Wait()
	if n := len(dump(t, db, store.Query{})); n != 202 {
		t.Errorf("%d rows, want 202", n)
	}
}

// TestFullDisk fills the disk. Acknowledged writes must stay, reads continue, and
// after a reopen with space writes continue, too.
func TestFullDisk(t *testing.T) {
	race.SkipOneGoroutine(t)
	for capacity := int64(100 << 10); capacity < 1<<20; capacity += 61 << 10 {
		disk := vfs.NewMem()
		db := mustCreate(t, manual(disk))
		disk.SetCapacity(capacity)
		r := rand.New(rand.NewPCG(uint64(capacity), 1))
		var acked []edm.Entity
		var failed error
		for i := 0; failed == nil; i++ {
			e := big(r, fmt.Sprintf("%06d", i), "A", 9000)
			var results []store.Result
			if results, failed = db.Apply(t.Context(), table, store.Insert(e)); failed == nil {
				e.Timestamp = results[0].Timestamp
				acked = append(acked, e)
			}
		}
		if !errors.Is(failed, store.ErrNoSpace) && !errors.Is(failed, store.ErrReadOnly) && !errors.Is(failed, store.ErrOutcomeUnknown) {
			t.Errorf("capacity %d: Apply on a full disk: %v", capacity, failed)
		}
		if !errors.Is(failed, syscall.ENOSPC) {
			t.Errorf("capacity %d: %v does not give the cause", capacity, failed)
		}
		verify := func(what string, db *engine.DB, spare int) {
			t.Helper()
			n := 0
			for e, err := range store.Entities(db.Query(t.Context(), table, store.Query{})) {
				check(t, what, err)
				if n < len(acked) && (e.Key != acked[n].Key || e.Timestamp != acked[n].Timestamp) {
					t.Fatalf("capacity %d, %s: row %d is %v", capacity, what, n, e.Key)
				}
				n++
			}
			if n < len(acked) || n > len(acked)+spare {
				t.Errorf("capacity %d, %s: %d rows, %d were acknowledged", capacity, what, n, len(acked))
			}
		}
		verify("full", db, 0)
		_ = db.Close() // may fail because there is no space
		if view, err := engine.Open("db", readOnly(disk)); err != nil {
			t.Errorf("capacity %d: Open for reading on a full disk: %v", capacity, err)
		} else {
			verify("read-only", view, 1)
			check(t, "Close", view.Close())
		}
		disk.SetCapacity(0)
		db = mustOpen(t, "db", manual(disk))
		verify("reopened", db, 1)
		apply(t, db, store.InsertOrReplace(big(r, "last", "A", 9000)))
		check(t, "Compact", db.Compact(t.Context()))
		if r, err := db.Verify(t.Context()); err != nil || len(r.Findings) > 0 {
			t.Errorf("capacity %d: Verify: %+v, %v", capacity, r, err)
		}
	}
}
