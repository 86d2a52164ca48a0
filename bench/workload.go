package bench

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tablerock-db/tablerock/edm"
)

// Workload is one kind of work.
type Workload struct {
	// Name has the form key=value/key=value, with the operation in front.
	Name string
	// Op is the unit of operations: an entity, a batch, a get, a reopen.
	Op string
	// Step is the unit of latencies.
	Step string
	// Durable makes each write wait for stable storage.
	Durable bool
	// ReadOnly workloads share a database that PrepareLoaded made: all entities,
	// compacted.
	ReadOnly bool
	// Parallel is the number of concurrent readers or writers.
	Parallel int

	// CacheBytes is the size of the block cache, if it is not Run.CacheBytes.
	CacheBytes int64

	start start // unless ReadOnly
	warm  bool  // scan the table before the measurement
	cold  bool  // drop the pages of the files from the system's cache before the store opens
	// without lists the shapes that the workload does not support.
	without []string
	run     func(r *Run, w Workload, ops int) error
	// ops returns the number of operations to measure for n entities.
	ops func(n int) int
}

// start is the state of the database before a workload.
type start uint8

const (
	startEmpty  start = iota
	startLoaded       // all entities, compacted
	startLogged       // all entities, in the log
	startClosed       // all entities, as loading them and Close left them
)

// Fits reports whether w supports the named shape.
func (w Workload) Fits(shape string) bool { return !slices.Contains(w.without, shape) }

// Ops returns the number of operations of w to measure for n entities.
func (w Workload) Ops(n int) int { return max(1, w.ops(n)) }

// sampleEvery is the number of short operations for each timed one: reading the clock
// costs a tenth of an operation.
const sampleEvery = 16

// Workloads returns all workloads in the order of reports.
func Workloads() []Workload {
	all := func(n int) int { return n }
	atMost := func(limit int) func(int) int { return func(n int) int { return min(n, limit) } }
	gets := func(n int) int { return max(n, 500_000) }
	rows := func(n int) int { return 5 * n }
	inBatches := func(limit int) func(int) int { return func(n int) int { return min(n/batchLen, limit) } }
	return append([]Workload{
		{Name: "load/order=sorted", Op: "entity", Step: "100 entities", Parallel: 1, run: load(true), ops: all},
		{Name: "load/order=random", Op: "entity", Step: "100 entities", Parallel: 1, run: load(false), ops: all},
		{Name: "insert/writers=1", Op: "entity", Step: "entity", Durable: true, Parallel: 1, run: insert, ops: atMost(20_000)},
		{Name: "insert/writers=64", Op: "entity", Step: "entity", Durable: true, Parallel: 64, run: insert, ops: atMost(400_000)},
		{Name: "batch/writers=1", Op: "batch of 100", Step: "batch", Durable: true, Parallel: 1, run: batches, ops: inBatches(5_000), without: []string{Singles}},
		{Name: "batch/writers=16", Op: "batch of 100", Step: "batch", Durable: true, Parallel: 16, run: batches, ops: inBatches(10_000), without: []string{Singles}},
		{Name: "get/key=present/readers=1", Op: "get", Step: "get", Parallel: 1, ReadOnly: true, warm: true, run: lookups(false), ops: gets},
		{Name: "get/key=present/readers=2", Op: "get", Step: "get", Parallel: 2, ReadOnly: true, warm: true, run: lookups(false), ops: gets},
		{Name: "get/key=present/readers=16", Op: "get", Step: "get", Parallel: 16, ReadOnly: true, warm: true, run: lookups(false), ops: gets},
		{Name: "get/key=missing/readers=1", Op: "get", Step: "get", Parallel: 1, ReadOnly: true, warm: true, run: lookups(true), ops: gets},
		{
			Name: "scan/range=partition", Op: "entity", Step: "partition", Parallel: 1, ReadOnly: true, warm: true,
			run: scanPartitions, ops: rows, without: []string{Whole},
		},
		{Name: "scan/range=table", Op: "entity", Step: "table", Parallel: 1, ReadOnly: true, warm: true, run: scanTable(false), ops: rows},
		{Name: "filter/match=1%", Op: "entity examined", Step: "table", Parallel: 1, ReadOnly: true, warm: true, run: scanTable(true), ops: rows},
		{Name: "overwrite/order=random", Op: "entity", Step: "100 entities", Parallel: 1, start: startLoaded, run: overwrite, ops: all},
		{Name: "reopen/from=log", Op: "reopen", Step: "reopen", Parallel: 1, start: startLogged, run: reopen, ops: func(int) int { return 1 }},
		{Name: "reopen/from=load", Op: "reopen", Step: "reopen", Parallel: 1, start: startClosed, run: reopen, ops: func(int) int { return 5 }},
		{Name: "reopen/from=files", Op: "reopen", Step: "reopen", Parallel: 1, ReadOnly: true, run: reopen, ops: func(int) int { return 20 }},
	}, beyondCache()...)
}

// beyondCache returns the workloads that read with a block cache much smaller than the
// table.
func beyondCache() []Workload {
	var list []Workload
	for _, from := range []string{"cache=32MiB", "from=disk"} {
		cold, gets, rows := false, 500_000, 5
		if from == "from=disk" {
			// More gets would meet pages that the first ones read.
			cold, gets, rows = true, 20_000, 1
		}
		for _, readers := range []int{1, 16} {
			list = append(list, Workload{
				Name: fmt.Sprintf("get/key=present/%s/readers=%d", from, readers), Op: "get", Step: "get", Parallel: readers,
				run: lookups(false), ops: func(int) int { return gets },
			})
		}
		list = append(list, Workload{
			Name: "scan/range=table/" + from, Op: "entity", Step: "table", Parallel: 1,
			run: scanTable(false), ops: func(n int) int { return rows * n },
		})
		for i := range list[len(list)-3:] {
			w := &list[len(list)-3+i]
			w.ReadOnly, w.CacheBytes, w.warm, w.cold = true, 32<<20, !cold, cold
		}
	}
	return list
}

// load writes all entities to an empty database, and repeats that with further ones up
// to ops entities. The cost of generating the entities is subtracted.
func load(sorted bool) func(*Run, Workload, int) error {
	return func(r *Run, w Workload, ops int) error {
		order := r.random
		if sorted {
			order = func(i int) int { return i }
		}
		for done := 0; done < ops; {
			n := min(ops-done, r.Data.Len())
			if done > 0 {
				if err := r.replaceDB(w); err != nil {
					return err
				}
			}
			if err := r.put(n, order, 0); err != nil {
				return err
			}
			done += n
		}
		return nil
	}
}

// replaceDB closes the database and opens an empty one.
func (r *Run) replaceDB(w Workload) error {
	if err := r.db.Close(); err != nil {
		return err
	}
	var err error
	if r.db, err = r.Store.Open(r.newDir(), r.options(w)); err != nil {
		return fmt.Errorf("open: %w", err)
	}
	return nil
}

// overwrite replaces the properties of entities of a compacted database.
func overwrite(r *Run, _ Workload, ops int) error {
	return r.put(ops, r.random, 1+int(r.Seed)%97)
}

// random returns the number of the entity at index i of the random order.
func (r *Run) random(i int) int { return int(r.order[i%len(r.order)]) }

// put writes n entities in batches of 100. It takes the properties in the order of the
// writes: reading them in random order would miss the processor's caches and cost as
// much as storing them.
func (r *Run) put(n int, order func(i int) int, shift int) error {
	fill := func(batch []edm.Entity, at int) []edm.Entity {
		batch = batch[:min(batchLen, n-at)]
		for i := range batch {
			r.Data.Fill(order(at+i), at+i+shift, &batch[i])
		}
		return batch
	}
	batch := Batch(batchLen)
	fill(batch, 0)
	wall, cpu := time.Now(), CPUTime()
	for at := 0; at < n; at += batchLen {
		fill(batch, at)
	}
	wallFill, cpuFill := time.Since(wall), CPUTime()-cpu
	err := r.parallel(1, n, func(w *worker, _, _ int) error {
		for at := 0; at < n; at += batchLen {
			batch := fill(w.batch, at)
			if err := w.timed(func() error { return w.session.Put(batch) }); err != nil {
				return err
			}
		}
		return nil
	})
	r.result.Elapsed -= min(wallFill, r.result.Elapsed)
	r.result.CPU -= min(cpuFill, r.result.CPU)
	return err
}

// insert writes entities one by one in random order.
func insert(r *Run, wl Workload, ops int) error {
	return r.parallel(wl.Parallel, ops, func(w *worker, from, to int) error {
		for i := from; i < to; i++ {
			r.Data.Fill(r.random(i), i, &w.batch[0])
			if err := w.timed(func() error { return w.session.Put(w.batch[:1]) }); err != nil {
				return err
			}
		}
		return nil
	})
}

// batches writes batches of 100 entities of one partition, in random order.
func batches(r *Run, wl Workload, ops int) error {
	total := r.Data.Len() / batchLen
	if total == 0 {
		return errors.New("fewer than 100 entities")
	}
	return r.parallel(wl.Parallel, ops, func(w *worker, from, to int) error {
		for i := from; i < to; i++ {
			first := int(uint64(i)*batchStride%uint64(total)) * batchLen
			for j := range w.batch {
				r.Data.Fill(first+j, first+j, &w.batch[j])
			}
			if err := w.timed(func() error { return w.session.Put(w.batch) }); err != nil {
				return err
			}
		}
		return nil
	})
}

// batchStride is a prime that divides no number of batches.
const batchStride = 1_000_003

// lookups gets single entities in random order.
func lookups(missing bool) func(*Run, Workload, int) error {
	return func(r *Run, wl Workload, ops int) error {
		return r.parallel(wl.Parallel, ops, func(w *worker, from, to int) error {
			for i := from; i < to; i++ {
				key := r.Data.Key(r.random(i))
				if missing {
					key = r.Data.Missing(r.random(i))
				}
				var start time.Time
				if i%sampleEvery == 0 {
					start = time.Now()
				}
				found, err := w.session.Get(key, &w.fold)
				if err != nil {
					return err
				}
				if i%sampleEvery == 0 {
					w.latencies = append(w.latencies, time.Since(start))
				}
				if found == missing {
					return fmt.Errorf("get of %v: found is %v, want %v", key, found, !missing)
				}
			}
			return nil
		})
	}
}

// scanPartitions scans partitions in random order until ops entities are read.
func scanPartitions(r *Run, _ Workload, ops int) error {
	shape := r.Data.Shape()
	return r.parallel(1, ops, func(w *worker, _, _ int) error {
		for i := 0; i*shape.Rows < ops; i++ {
			p := r.random(i) % shape.Partitions
			scan := func() error { return w.session.Scan(r.Data.Partition(p), false, &w.fold) }
			if shape.Rows < sampleEvery && i%sampleEvery != 0 {
				if err := scan(); err != nil {
					return err
				}
				continue
			}
			if err := w.timed(scan); err != nil {
				return err
			}
		}
		return nil
	})
}

// scanTable scans the whole table until ops entities are read.
func scanTable(hot bool) func(*Run, Workload, int) error {
	return func(r *Run, _ Workload, ops int) error {
		return r.parallel(1, ops, func(w *worker, _, _ int) error {
			for seen := 0; seen < ops; seen += r.Data.Len() {
				if err := w.timed(func() error { return w.session.Scan("", hot, &w.fold) }); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// reopen opens the database again and reads an entity. With startLogged and startClosed
// it makes a new database each time, because Open may change it in the background.
func reopen(r *Run, wl Workload, ops int) error {
	for i := range ops {
		if err := r.db.Close(); err != nil {
			return err
		}
		dir := r.Loaded
		if !wl.ReadOnly {
			dir = r.newDir()
			if err := r.prepareStart(wl, dir); err != nil {
				return err
			}
		}
		wall, cpu := time.Now(), CPUTime()
		var err error
		if r.db, err = r.Store.Open(dir, r.options(wl)); err != nil {
			return fmt.Errorf("reopen: %w", err)
		}
		var f Fold
		found, err := r.db.Session().Get(r.Data.Key(i%r.Data.Len()), &f)
		took := time.Since(wall)
		r.result.CPU += CPUTime() - cpu
		r.result.Elapsed += took
		r.result.Latencies = append(r.result.Latencies, took)
		r.result.Sum += f.Sum()
		r.result.Rows += f.Rows()
		if err != nil || !found {
			return fmt.Errorf("get after reopening: found is %v: %w", found, err)
		}
	}
	slices.Sort(r.result.Latencies)
	return nil
}
