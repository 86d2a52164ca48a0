package engine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"weak"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest"
	"github.com/tablerock-db/tablerock/vfs"
)

// throughBatches is a database whose Apply is an ApplyBatches of one batch.
type throughBatches struct{ *engine.DB }

func (db throughBatches) Apply(ctx context.Context, table string, ops ...store.Op) ([]store.Result, error) {
	results, err := db.ApplyBatches(ctx, table, [][]store.Op{ops})
	if err != nil {
		return nil, err.(engine.BatchErrors)[0]
	}
	return results[0], nil
}

func TestContractOfApplyBatches(t *testing.T) {
	for _, noSync := range []bool{false, true} {
		if noSync && testing.Short() {
			continue
		}
		t.Run(fmt.Sprintf("noSync=%t", noSync), func(t *testing.T) {
			r := &rigs{byDB: make(map[store.Store]*rig), opts: engine.Options{
				SegmentBytes: 64 << 10, FileBytes: 64 << 10, TierRuns: 2, CacheBytes: 1 << 20, NoSync: noSync,
			}}
			r.wrap = func(db *engine.DB) store.Store { return throughBatches{db} }
			b := r.backend()
			if noSync {
				b.HoldSync, b.PowerCut, b.Kill = nil, nil, nil
			}
			storetest.Run(t, b)
		})
	}
}

// pair is two databases. One executes batches by ApplyBatches, the other one by one.
type pair struct {
	*testing.T
	r        *rand.Rand
	together *engine.DB
	alone    *engine.DB
	snapshot *engine.Snapshot      // of together
	held     []string              // what snapshot has
	stamps   map[edm.Key]edm.Ticks // of the entities of together, as acknowledged
	last     edm.Ticks
	n        int64
}

func (p *pair) key() edm.Key {
	return edm.Key{Partition: fmt.Sprint("p", p.r.IntN(12)), Row: fmt.Sprint("r", p.r.IntN(20))}
}

// batch returns the operations of a batch for together.
func (p *pair) batch() (ops []store.Op) {
	kinds := []store.OpKind{store.OpInsertOrReplace}
	if p.r.IntN(2) == 0 {
		kinds = []store.OpKind{store.OpInsert, store.OpInsertOrMerge, store.OpInsertOrReplace, store.OpMerge, store.OpReplace, store.OpDelete}
	}
	key := p.key()
	for i := range p.r.IntN(5) + p.r.IntN(2)*p.r.IntN(2)*p.r.IntN(120) {
		key.Row = fmt.Sprint("r", p.r.IntN(6)+6*i) // mostly distinct
		switch p.r.IntN(200) {
		case 0:
			key.Partition = p.key().Partition
		case 1:
			key.Row = "r0"
		case 2:
			key.Row = "bad/row"
		}
		p.n++
		props := edm.Properties{{Name: "N", Value: edm.Int64(p.n)}, {Name: fmt.Sprint("B", p.r.IntN(3)), Value: edm.Binary(make([]byte, p.r.IntN(300)))}}
		if p.r.IntN(2) == 0 {
			slices.Reverse(props)
		}
		op := store.Op{Kind: kinds[p.r.IntN(len(kinds))], Entity: edm.Entity{Key: key, Properties: props}, IfMatch: store.Any}
		if p.r.IntN(3) == 0 {
			op.IfMatch = p.etag(p.together, key)
		}
		ops = append(ops, op)
	}
	return ops
}

// forAlone returns ops with the ETags of the other database.
func (p *pair) forAlone(ops []store.Op) []store.Op {
	ops = slices.Clone(ops)
	for i := range ops {
		if ops[i].IfMatch != store.Any {
			ops[i].IfMatch = p.etag(p.alone, ops[i].Entity.Key)
		}
	}
	return ops
}

func (p *pair) etag(db *engine.DB, key edm.Key) edm.ETag {
	e, err := db.Get(p.Context(), table, key)
	if err != nil {
		return "missing"
	}
	return e.Timestamp.ETag()
}

// call applies some batches to both databases and compares the outcomes.
func (p *pair) call() {
	p.Helper()
	name := table
	if p.r.IntN(30) == 0 {
		name = []string{"Nowhere", "bad name"}[p.r.IntN(2)]
	}
	var together, alone [][]store.Op
	for range p.r.IntN(40) + p.r.IntN(2)*p.r.IntN(200) {
		ops := p.batch()
		together, alone = append(together, ops), append(alone, p.forAlone(ops))
	}
	var want []string
	for _, ops := range alone {
		_, err := p.alone.Apply(p.Context(), name, ops...)
		want = append(want, fmt.Sprint(err))
	}
	results, err := p.together.ApplyBatches(p.Context(), name, together)
	var failed engine.BatchErrors
	if err != nil && !errors.As(err, &failed) {
		p.Fatalf("ApplyBatches: %v is no BatchErrors", err)
	}
	for i, ops := range together {
		var got error
		if failed != nil {
			got = failed[i]
		}
		if fmt.Sprint(got) != want[i] {
			p.Fatalf("batch %d of %d: %v, want %s: %v", i, len(together), got, want[i], ops)
		}
		if got == nil {
			p.acknowledged(i, ops, results[i])
		} else if results[i] != nil {
			p.Fatalf("batch %d failed and has results", i)
		}
	}
}

func (p *pair) acknowledged(i int, ops []store.Op, results []store.Result) {
	p.Helper()
	if len(results) != len(ops) {
		p.Fatalf("batch %d: %d results of %d operations", i, len(results), len(ops))
	}
	for j, op := range ops {
		r := results[j]
		if op.Kind == store.OpDelete {
			delete(p.stamps, op.Entity.Key)
			continue
		}
		if r.Timestamp <= p.last || r.ETag != r.Timestamp.ETag() {
			p.Fatalf("batch %d, operation %d: %v after the Timestamp %d", i, j, r, p.last)
		}
		p.last = r.Timestamp
		p.stamps[op.Entity.Key] = r.Timestamp
	}
}

// contents returns the entities and their Timestamps.
func (p *pair) contents(db querier) (text []string, stamps map[edm.Key]edm.Ticks) {
	p.Helper()
	stamps = map[edm.Key]edm.Ticks{}
	for e, err := range store.Entities(db.Query(p.Context(), table, store.Query{})) {
		check(p.T, "Query", err)
		stamps[e.Key] = e.Timestamp
		text = append(text, fmt.Sprint(e.Key, e.Properties))
	}
	return text, stamps
}

// compare compares the contents.
func (p *pair) compare() {
	p.Helper()
	got, stamps := p.contents(p.together)
	want, _ := p.contents(p.alone)
	if !slices.Equal(got, want) {
		p.Fatalf("%d entities, want %d, or their properties differ", len(got), len(want))
	}
	if !maps.Equal(stamps, p.stamps) {
		p.Fatalf("the Timestamps of %d entities differ from the %d results", len(stamps), len(p.stamps))
	}
}

// hold compares the contents of the snapshot with those at its time, and takes another one.
func (p *pair) hold() {
	p.Helper()
	if p.snapshot != nil {
		if got, _ := p.contents(p.snapshot); !slices.Equal(got, p.held) {
			p.Fatalf("a snapshot has %d entities, had %d, or their properties differ", len(got), len(p.held))
		}
		check(p.T, "Snapshot.Close", p.snapshot.Close())
	}
	var err error
	p.snapshot, err = p.together.Snapshot()
	check(p.T, "Snapshot", err)
	p.held, _ = p.contents(p.snapshot)
}

// TestApplyBatches compares calls of ApplyBatches with an Apply of each batch.
func TestApplyBatches(t *testing.T) {
	calls, seeds := 30, []uint64{1, 2, 3}
	if testing.Short() {
		calls, seeds = 12, seeds[:1]
	}
	for _, noSync := range []bool{false, true} {
		for _, seed := range seeds {
			t.Run(fmt.Sprintf("noSync=%t/seed=%d", noSync, seed), func(t *testing.T) {
				defer func() {
					if t.Failed() {
						t.Logf("repeat with go test ./engine -run '%s$'", t.Name())
					}
				}()
				o := engine.Options{FS: vfs.NewCrashMem(), SegmentBytes: 64 << 10, FileBytes: 64 << 10, TierRuns: 2, CacheBytes: 1 << 20, NoSync: noSync}
				other := o
				other.FS = vfs.NewMem()
				p := &pair{
					T: t, r: rand.New(rand.NewPCG(seed, 9)), stamps: map[edm.Key]edm.Ticks{},
					together: mustCreate(t, o), alone: mustCreate(t, other),
				}
				for i := range calls {
					p.call()
					switch i % 6 {
					case 2:
						p.hold()
					case 4:
						check(t, "Flush", p.together.Flush(t.Context()))
						p.compare()
					}
				}
				p.hold()
				check(t, "Snapshot.Close", p.snapshot.Close())
				p.compare()
				// Once more after a replay of the log.
				p.call()
				if !noSync {
					cut := o
					cut.FS = o.FS.(*vfs.Mem).Crash(vfs.CrashOptions{Mode: "min"})
					check(t, "Close", p.together.Close())
					p.together, o = mustOpen(t, "db", cut), cut
					p.compare()
				}
				check(t, "CloseContext", closeAtOnce(p.together))
				p.together = mustOpen(t, "db", o)
				p.compare()
				check(t, "Close", p.together.Close())
				check(t, "Close", p.alone.Close())
			})
		}
	}
}

// TestApplyBatchesSyncsOnce counts syncs of the log. A power cut after the call loses nothing.
func TestApplyBatchesSyncsOnce(t *testing.T) {
	const n = 100
	for _, kind := range []store.OpKind{store.OpInsert, store.OpInsertOrReplace} {
		disk := vfs.NewCrashMem()
		o := engine.Options{FS: disk, CacheBytes: 1 << 20, Testing: engine.TestHooks{Manual: true}} // which does not sync an idle log
		db := mustCreate(t, o)
		var batches [][]store.Op
		for i := range n {
			batches = append(batches, []store.Op{{Kind: kind, Entity: entity(fmt.Sprint("p", i), "r", int64(i), 10)}})
		}
		before, err := db.Stats()
		check(t, "Stats", err)
		_, err = db.ApplyBatches(t.Context(), table, batches)
		check(t, "ApplyBatches", err)
		after, err := db.Stats()
		check(t, "Stats", err)
		if syncs := after.LogSyncs - before.LogSyncs; syncs != 1 {
			t.Errorf("%v: %d syncs of %d batches, want 1", kind, syncs, n)
		}
		cut := disk.Crash(vfs.CrashOptions{Mode: "min"})
		check(t, "Close", db.Close())
		o.FS = cut
		db = mustOpen(t, "db", o)
		for i := range n {
			if _, err := db.Get(t.Context(), table, edm.Key{Partition: fmt.Sprint("p", i), Row: "r"}); err != nil {
				t.Fatalf("%v: batch %d after a power cut: %v", kind, i, err)
			}
		}
		check(t, "Close", db.Close())
	}
}

// TestApplyBatchesSyncsOften counts syncs of a call with many bytes, which need memory until
// they are durable.
func TestApplyBatchesSyncsOften(t *testing.T) {
	for _, kind := range []store.OpKind{store.OpInsert, store.OpInsertOrReplace, store.OpInsertOrMerge} {
		o := engine.Options{FS: vfs.NewMem(), CacheBytes: 1 << 20, Testing: engine.TestHooks{Manual: true}} // which does not sync an idle log
		db := mustCreate(t, o)
		var batches [][]store.Op
		for i := range 100 {
			batches = append(batches, []store.Op{{Kind: kind, Entity: entity(fmt.Sprint("p", i), "r", 1, 60<<10)}})
		}
		before, err := db.Stats()
		check(t, "Stats", err)
		_, err = db.ApplyBatches(t.Context(), table, batches)
		check(t, "ApplyBatches", err)
		after, err := db.Stats()
		check(t, "Stats", err)
		if syncs := after.LogSyncs - before.LogSyncs; syncs < 5 || syncs > 10 {
			t.Errorf("%v: %d syncs for 6 MB, want one for each MiB", kind, syncs)
		}
		check(t, "Close", db.Close())
	}
}

// TestApplyBatchesCancelled ends the ctx before each of the batches.
func TestApplyBatchesCancelled(t *testing.T) {
	db := mustCreate(t, engine.Options{FS: vfs.NewMem(), CacheBytes: 1 << 20})
	defer func() { check(t, "Close", db.Close()) }()
	const n = 6
	for ends := range n + 1 {
		var batches [][]store.Op
		for i := range n {
			op := store.Insert(entity(fmt.Sprint("p", ends, "-", i), "r", 1, 0))
			if i%2 == 0 {
				op = store.InsertOrReplace(op.Entity)
			}
			batches = append(batches, []store.Op{op})
		}
		_, err := db.ApplyBatches(&endingContext{t.Context(), ends}, table, batches)
		var failed engine.BatchErrors
		if errors.As(err, &failed) != (ends < n) || errors.Is(err, context.Canceled) != (ends < n) {
			t.Fatalf("ctx ends before batch %d: %v", ends, err)
		}
		for i := range n {
			if failed != nil && (failed[i] == nil) != (i < ends) {
				t.Errorf("ctx ends before batch %d: batch %d: %v", ends, i, failed[i])
			}
			_, err := db.Get(t.Context(), table, batches[i][0].Entity.Key)
			if i < ends && err != nil || i >= ends && !errors.Is(err, store.ErrEntityNotFound) {
				t.Errorf("ctx ends before batch %d: Get of batch %d: %v", ends, i, err)
			}
		}
	}
}

func TestBatchErrors(t *testing.T) {
	err := error(engine.BatchErrors{nil, store.ErrEntityExists, nil, store.ErrPrecondition})
	if want := "2 of 4 batches failed, the first is batch 1: " + store.ErrEntityExists.Error(); err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if !errors.Is(err, store.ErrEntityExists) || !errors.Is(err, store.ErrPrecondition) || errors.Is(err, store.ErrNoSpace) {
		t.Errorf("errors.Is finds other errors than those of the batches in %v", err)
	}
	if got := (engine.BatchErrors{nil}).Error(); got != "no batch failed" {
		t.Errorf("got %q", got)
	}
}

// TestApplyBatchesOnFullDisk deletes on a full disk, where inserts are refused.
func TestApplyBatchesOnFullDisk(t *testing.T) {
	race.SkipOneGoroutine(t)
	f := newFullDisk(t, 8<<20, 256<<10, 30_000, true)
	f.fill()
	var batches [][]store.Op
	for _, e := range f.rows {
		batches = append(batches, []store.Op{store.Delete(e.Key, store.Any)})
	}
	insert := store.Insert(big(f.r, "late", "A", 30_000))
	batches = append(batches, []store.Op{insert})
	results, err := f.db.ApplyBatches(t.Context(), table, batches)
	var failed engine.BatchErrors
	if errors.As(err, &failed); failed == nil {
		// The deletes made enough space for it.
		insert.Entity.Timestamp = results[len(batches)-1][0].Timestamp
		f.rows = map[string]edm.Entity{insert.Entity.Key.Row: insert.Entity}
	} else {
		for i, err := range failed[:len(batches)-1] {
			check(t, fmt.Sprintf("delete %d of %d on a full disk", i, len(batches)-1), err)
		}
		if err := failed[len(batches)-1]; !errors.Is(err, store.ErrNoSpace) {
			t.Errorf("insert on a full disk: %v, want %v", err, store.ErrNoSpace)
		}
		clear(f.rows)
	}
	f.check()
	check(t, "Close", f.db.Close())
}

// TestApplyBatchesNeedingSpace writes small batches and one that is larger than the disk. The
// small ones succeed.
func TestApplyBatchesNeedingSpace(t *testing.T) {
	const n, large = 9, 4
	disk := vfs.NewMem()
	disk.SetCapacity(8 << 20)
	db := mustCreate(t, manual(disk))
	var batches [][]store.Op
	for i := range n {
		batches = append(batches, []store.Op{store.InsertOrReplace(entity(fmt.Sprint("p", i), "r", 1, 10))})
	}
	for i := range 20 {
		e := entity(fmt.Sprint("p", large), fmt.Sprint("large", i), 1, 60<<10)
		for j := range 9 {
			e.Properties = append(e.Properties, edm.Property{Name: fmt.Sprint("More", j), Value: e.Properties[1].Value})
		}
		batches[large] = append(batches[large], store.InsertOrReplace(e))
	}
	_, err := db.ApplyBatches(t.Context(), table, batches)
	var failed engine.BatchErrors
	if !errors.As(err, &failed) {
		t.Fatalf("ApplyBatches: %v", err)
	}
	for i := range n {
		if got := errors.Is(failed[i], store.ErrNoSpace); got != (i == large) {
			t.Errorf("batch %d: %v", i, failed[i])
		}
		_, err := db.Get(t.Context(), table, batches[i][0].Entity.Key)
		if got := errors.Is(err, store.ErrEntityNotFound); got != (i == large) {
			t.Errorf("Get of batch %d: %v", i, err)
		}
	}
	check(t, "Close", db.Close())
}

// TestApplyBatchesBeside runs ApplyBatches beside everything that waits for the log or takes
// all partition locks. The database has tiny segments, so that all of them wait for flushes
// and compactions. What was acknowledged is there after Close.
func TestApplyBatchesBeside(t *testing.T) {
	o := engine.Options{FS: vfs.NewMem(), SegmentBytes: 64 << 10, FileBytes: 64 << 10, TierRuns: 2, CacheBytes: 1 << 20}
	db := mustCreate(t, o)
	ctx := t.Context()
	rounds := 200
	if testing.Short() {
		rounds = 10
	}
	var mu sync.Mutex
	acknowledged := map[edm.Key]bool{}
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			for round := range rounds {
				var batches [][]store.Op
				for i := range 150 {
					op := store.Insert(entity(fmt.Sprint("p", i), fmt.Sprintf("%d-%03d", w, round), 1, 50))
					if i%3 == round%3 {
						op = store.InsertOrReplace(op.Entity)
					}
					batches = append(batches, []store.Op{op})
				}
				if _, err := db.ApplyBatches(ctx, table, batches); err != nil {
					t.Errorf("ApplyBatches: %v", err)
					return
				}
				mu.Lock()
				for _, ops := range batches {
					acknowledged[ops[0].Entity.Key] = true
				}
				mu.Unlock()
			}
		})
	}
	stop := make(chan struct{})
	var beside sync.WaitGroup
	again := func(what string, call func(i int) error) {
		beside.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := call(i); err != nil {
					t.Errorf("%s: %v", what, err)
					return
				}
			}
		})
	}
	again("Load", func(i int) error {
		_, err := db.Load(ctx, table, sequence([]edm.Entity{entity("loaded", fmt.Sprint(i%100), 1, 10)}), engine.LoadOptions{})
		return err
	})
	again("CreateTable and DeleteTable", func(int) error {
		return errors.Join(db.CreateTable(ctx, "Other"), db.DeleteTable(ctx, "Other"))
	})
	again("Flush", func(int) error { return db.Flush(ctx) })
	again("Apply", func(i int) error {
		_, err := db.Apply(ctx, table, store.InsertOrMerge(entity(fmt.Sprint("p", i%150), "shared", int64(i), 10)))
		return err
	})
	wg.Wait()
	close(stop)
	beside.Wait()
	check(t, "Close", db.Close())
	db = mustOpen(t, "db", o)
	defer func() { check(t, "Close", db.Close()) }()
	for key := range acknowledged {
		if _, err := db.Get(ctx, table, key); err != nil {
			t.Fatalf("Get %v: %v", key, err)
		}
	}
}

// TestApplyBatchesClosed closes the database during calls. Each batch succeeds or fails with
// ErrClosed, and those that succeeded are durable.
func TestApplyBatchesClosed(t *testing.T) {
	for range 5 {
		o := engine.Options{FS: vfs.NewMem(), SegmentBytes: 64 << 10, CacheBytes: 1 << 20}
		db := mustCreate(t, o)
		var batches [][]store.Op
		for i := range 5_000 {
			batches = append(batches, []store.Op{store.Insert(entity(fmt.Sprint("p", i), "r", 1, 20))})
		}
		done := make(chan error)
		go func() {
			_, err := db.ApplyBatches(t.Context(), table, batches)
			done <- err
		}()
		if _, err := db.Apply(t.Context(), table, store.Insert(entity("q", "r", 1, 0))); err != nil {
			t.Fatalf("Apply: %v", err)
		}
		check(t, "Close", db.Close())
		err := <-done
		failed, _ := err.(engine.BatchErrors)
		if failed == nil {
			failed = make(engine.BatchErrors, len(batches))
		}
		db = mustOpen(t, "db", o)
		for i, err := range failed {
			_, got := db.Get(t.Context(), table, batches[i][0].Entity.Key)
			if err == nil && got != nil || err != nil && (!errors.Is(err, store.ErrClosed) || !errors.Is(got, store.ErrEntityNotFound)) {
				t.Fatalf("batch %d: %v, Get: %v", i, err, got)
			}
		}
		check(t, "Close", db.Close())
	}
}

// TestApplyBatchesRefuses changes nothing for batches that break a rule.
func TestApplyBatchesRefuses(t *testing.T) {
	db := mustCreate(t, engine.Options{FS: vfs.NewMem(), CacheBytes: 1 << 20})
	defer func() { check(t, "Close", db.Close()) }()
	large := entity("p", "large", 1, 0)
	for i := range edm.MaxProperties {
		large.Properties = append(large.Properties, edm.Property{Name: fmt.Sprint("B", i), Value: edm.Boolean(true)})
	}
	good := store.InsertOrReplace(entity("p", "good", 1, 0))
	_, err := db.ApplyBatches(t.Context(), table, [][]store.Op{
		nil,
		{store.InsertOrReplace(entity("p", "first", 1, 0))},
		{good, store.InsertOrReplace(large)},
		{store.InsertOrReplace(entity("p", "second", 1, 0))},
		{good, store.InsertOrReplace(entity("q", "other", 1, 0))},
		{good, store.Insert(large)},
	})
	var failed engine.BatchErrors
	if !errors.As(err, &failed) {
		t.Fatalf("ApplyBatches: %v", err)
	}
	for i, want := range []error{store.ErrInvalid, nil, store.ErrTooLarge, nil, store.ErrInvalid, store.ErrTooLarge} {
		if !errors.Is(failed[i], want) {
			t.Errorf("batch %d: %v, want %v", i, failed[i], want)
		}
	}
	var rows []string
	for e, err := range db.Entities(t.Context(), table, store.Query{}) {
		check(t, "Entities", err)
		rows = append(rows, e.Key.Row)
	}
	if got := strings.Join(rows, " "); got != "first second" {
		t.Errorf("rows %q, want first and second", got)
	}
}

// TestApplyBatchesKeepsNoOps frees the value of an op after the call.
func TestApplyBatchesKeepsNoOps(t *testing.T) {
	for _, kind := range []store.OpKind{store.OpInsertOrReplace, store.OpInsertOrMerge, store.OpMerge} {
		db := mustCreate(t, engine.Options{FS: vfs.NewMem(), CacheBytes: 1 << 20})
		first, second := entity("p", "1", 1, 10), entity("p", "2", 1, 10)
		apply(t, db, store.Insert(first), store.Insert(second))
		value := make([]byte, 1000)
		freed := weak.Make(&value[0])
		first.Properties = edm.Properties{{Name: "Z", Value: edm.Binary(value)}, {Name: "B", Value: edm.Binary(value)}, {Name: "A", Value: edm.Binary(value)}}
		_, err := db.ApplyBatches(t.Context(), table, [][]store.Op{{
			{Kind: kind, Entity: first, IfMatch: store.Any}, {Kind: kind, Entity: second, IfMatch: store.Any},
		}})
		check(t, "ApplyBatches", err)
		first.Properties, value = nil, nil
		runtime.GC()
		if freed.Value() != nil {
			t.Errorf("%v: the database refers to a value of the call", kind)
		}
		check(t, "Close", db.Close())
	}
}

// TestApplyBatchesOverManySegments has groups of more segments than may wait for a flush.
func TestApplyBatchesOverManySegments(t *testing.T) {
	for _, manual := range []bool{false, true} {
		db := mustCreate(t, engine.Options{
			FS: vfs.NewMem(), SegmentBytes: 64 << 10, FileBytes: 64 << 10, CacheBytes: 1 << 20, Testing: engine.TestHooks{Manual: manual},
		})
		const n = 50
		var batches [][]store.Op
		for i := range n {
			batches = append(batches, []store.Op{store.Insert(entity("p", fmt.Sprint(i), 1, 50<<10))})
		}
		_, err := db.ApplyBatches(t.Context(), table, batches)
		check(t, "ApplyBatches", err)
		if stats, err := db.Stats(); err != nil || stats.Entities != n || stats.Stalls == 0 {
			t.Errorf("manual %t: %d entities and %d stalls (%v), want %d and some", manual, stats.Entities, stats.Stalls, err, n)
		}
		check(t, "Close", db.Close())
	}
}

// TestApplyBatchesExcludesConditions writes an entity by upserts of ApplyBatches, beside
// an Apply that replaces it if it has the ETag that was read. No write may come between the
// version with the ETag and the version that replaced it. The batch behind that of the entity is
// one of another partition, or one that is refused.
func TestApplyBatchesExcludesConditions(t *testing.T) {
	large := entity("q", "r", 1, 10)
	for i := range edm.MaxProperties {
		large.Properties = append(large.Properties, edm.Property{Name: fmt.Sprint("B", i), Value: edm.Boolean(true)})
	}
	t.Run("accepted", func(t *testing.T) { applyBesideConditions(t, entity("q", "r", 1, 10), nil) })
	t.Run("refused", func(t *testing.T) { applyBesideConditions(t, large, store.ErrTooLarge) })
}

func applyBesideConditions(t *testing.T, other edm.Entity, want error) {
	t.Helper()
	db := mustCreate(t, engine.Options{FS: vfs.NewMem(), NoSync: true, CacheBytes: 1 << 20})
	defer func() { check(t, "Close", db.Close()) }()
	ctx := t.Context()
	e := entity("p", "r", 1, 10)
	apply(t, db, store.Insert(e))
	rounds := 30_000
	if testing.Short() {
		rounds = 3_000
	}
	var written []edm.Ticks
	var done atomic.Bool
	defer done.Store(true)
	var wg sync.WaitGroup
	wg.Go(func() {
		for !done.Load() {
			results, err := db.ApplyBatches(ctx, table, [][]store.Op{{store.InsertOrReplace(e)}, {store.InsertOrReplace(other)}})
			if !errors.Is(err, want) {
				t.Errorf("ApplyBatches: %v, want %v", err, want)
				return
			}
			written = append(written, results[0][0].Timestamp)
		}
	})
	type replaced struct{ from, to edm.Ticks }
	var list []replaced
	n := 0
	for mixed := false; n < rounds || !mixed && n < 100*rounds; n++ {
		mixed = len(list) > 0 && len(list) < n
		var from edm.Ticks
		check(t, "View", db.View(ctx, table, e.Key, func(row edm.Row) error { from = row.Timestamp(); return nil }))
		results, err := db.Apply(ctx, table, store.Replace(e, from.ETag()))
		switch {
		case err == nil:
			list = append(list, replaced{from, results[0].Timestamp})
		case !errors.Is(err, store.ErrPrecondition):
			t.Fatalf("Apply: %v", err)
		}
	}
	done.Store(true)
	wg.Wait()
	if len(list) == 0 || len(list) == n {
		t.Errorf("%d of %d conditions held, so this test proves nothing", len(list), n)
	}
	for _, r := range list {
		i, _ := slices.BinarySearch(written, r.from+1)
		if i < len(written) && written[i] < r.to {
			t.Fatalf("a write at %d is between the version of %d and its replacement of %d", written[i], r.from, r.to)
		}
	}
}

// TestApplyBatchesMemory inserts entities in batches of one, each of which has its own record. A
// record takes no memory for the batches of a group.
func TestApplyBatchesMemory(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	const n, most = 1000, 600
	db := mustCreate(t, manual(vfs.NewMem()))
	least := uint64(math.MaxUint64)
	for round := range 5 {
		batches := make([][]store.Op, n)
		for i := range batches {
			batches[i] = []store.Op{store.Insert(edm.Entity{Key: edm.Key{Partition: fmt.Sprint("p", i), Row: fmt.Sprint(round)}})}
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := db.ApplyBatches(t.Context(), table, batches)
		runtime.ReadMemStats(&after)
		check(t, "ApplyBatches", err)
		least = min(least, (after.TotalAlloc-before.TotalAlloc)/n)
	}
	if least > most {
		t.Errorf("%d bytes are allocated for a batch, want at most %d", least, most)
	}
}
