package bench

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/tablerock-db/tablerock/edm"
)

// load writes all entities to an empty database by put, and repeats that with further ones
// up to ops entities. The cost of generating the entities is subtracted.
func load(sorted bool, put func(r *Run, n int, order, content func(i int) int) error) func(*Run, Workload, int) error {
	return func(r *Run, w Workload, ops int) error {
		order := r.random
		if sorted {
			order = all
		}
		for done := 0; done < ops; {
			n := min(ops-done, r.Data.Len())
			if done > 0 {
				if err := r.replaceDB(w); err != nil {
					return err
				}
				r.want = want{}
			}
			if err := put(r, n, order, all); err != nil {
				return err
			}
			r.expect(n, all)
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
	if r.db, err = r.Store.Open(r.ctx, r.newDir(), r.options(w)); err != nil {
		return fmt.Errorf("open: %w", err)
	}
	return nil
}

// overwrite replaces the properties of entities of a loaded database.
func overwrite(r *Run, _ Workload, ops int) error {
	n := r.Data.Len()
	// Entities get other properties than before, from every second record.
	content := func(i int) int { return 2*i + 1 + i/n }
	last := map[int]int{} // from the index of an entity in the random order to its last write
	if ops < n {
		r.expect(n-ops, func(i int) int { return ops + i })
	}
	for i := max(0, ops-n); i < ops; i++ {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		last[i%n] = i
	}
	for _, i := range last {
		r.expect(1, func(int) int { return content(i) })
	}
	return r.put(ops, r.random, content)
}

// random returns the number of the entity at index i of the random order.
func (r *Run) random(i int) int { return int(r.order[i%len(r.order)]) }

// put writes n entities in batches of 100. It takes the properties in about the order of
// the writes: reading them in random order would miss the processor's caches and cost as
// much as storing them.
func (r *Run) put(n int, order, content func(i int) int) error {
	fill := r.filler(n, order, content)
	batch := Batch(batchLen)
	fill(batch, 0)
	return r.write(n, func() {
		for at := 0; at < n && r.ctx.Err() == nil; at += batchLen {
			fill(batch, at)
		}
	}, func(w *worker) error {
		for at := 0; at < n; at += batchLen {
			batch := fill(w.batch, at)
			if err := w.timed(func() error { return w.session.Put(batch) }); err != nil {
				return err
			}
			r.count(len(batch))
		}
		return nil
	})
}

// write measures a pass that writes n entities in timed steps, without the time of
// generating them, which generate takes alone.
func (r *Run) write(n int, generate func(), pass func(w *worker) error) error {
	wall, cpu := time.Now(), CPUTime()
	generate()
	wallFill, cpuFill := time.Since(wall), CPUTime()-cpu
	earlier, steps := r.result.Elapsed, len(r.result.Latencies)
	err := r.parallel(1, n, func(w *worker, _, _ int) error { return pass(w) })
	r.result.Elapsed = earlier + without(wallFill, r.result.Elapsed-earlier, r.result.Latencies[steps:])
	r.result.CPU -= min(cpuFill, r.result.CPU)
	r.wrote(n)
	return err
}

// without returns the time of a pass without that of generating its entities, and at least
// the time of its steps: on a busy machine generating can take longer than the whole pass.
func without(fill, pass time.Duration, steps []time.Duration) time.Duration {
	sum := time.Duration(0)
	for _, s := range steps {
		sum += s
	}
	return max(pass-fill, sum)
}

// filler returns a function that generates a batch of the entities from at on.
func (r *Run) filler(n int, order, content func(i int) int) func(batch []edm.Entity, at int) []edm.Entity {
	return func(batch []edm.Entity, at int) []edm.Entity {
		batch = batch[:min(batchLen, n-at)]
		for i := range batch {
			r.Data.Fill(order(at+i), content(at+i), &batch[i])
		}
		return batch
	}
}

// putBulk writes n entities by one BulkDB.Load.
func (r *Run) putBulk(n int, order, content func(i int) int) error {
	fill, batch := r.filler(n, order, content), Batch(batchLen)
	entities := func(yield func(edm.Entity, error) bool) {
		for at := 0; at < n; at += batchLen {
			if err := r.ctx.Err(); err != nil {
				yield(edm.Entity{}, err)
				return
			}
			for _, e := range fill(batch, at) {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
	fill(batch, 0)
	return r.write(n, func() {
		entities(func(edm.Entity, error) bool { return true })
	}, func(w *worker) error {
		return w.timed(func() error { return r.db.(BulkDB).Load(entities) })
	})
}

// wrote counts n entities as written.
func (r *Run) wrote(n int) { r.result.Logical += int64(float64(n) * r.Data.Bytes()) }

// insert writes entities one by one in random order.
func insert(r *Run, wl Workload, ops int) error {
	r.wrote(ops)
	r.expect(min(ops, r.Data.Len()), all)
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
	first := func(i int) int { return int(uint64(i)*batchStride%uint64(total)) * batchLen }
	r.wrote(ops * batchLen)
	for i := range min(ops, total) {
		r.expect(batchLen, func(j int) int { return first(i) + j })
	}
	return r.parallel(wl.Parallel, ops, func(w *worker, from, to int) error {
		for i := from; i < to; i++ {
			for j := range w.batch {
				r.Data.Fill(first(i)+j, first(i)+j, &w.batch[j])
			}
			if err := w.timed(func() error { return w.session.Put(w.batch) }); err != nil {
				return err
			}
		}
		return nil
	})
}

// scattered writes batches of 100 entities in random order, most of them of other partitions.
func scattered(r *Run, wl Workload, ops int) error {
	if r.Data.Len() < ops*batchLen {
		return fmt.Errorf("fewer than %d entities", ops*batchLen)
	}
	r.wrote(ops * batchLen)
	r.expect(ops*batchLen, all)
	return r.parallel(wl.Parallel, ops, func(w *worker, from, to int) error {
		for i := from; i < to; i++ {
			for j := range w.batch {
				at := i*batchLen + j
				r.Data.Fill(r.random(at), at, &w.batch[j])
			}
			if err := w.timed(func() error { return w.session.Put(w.batch) }); err != nil {
				return err
			}
		}
		return nil
	})
}

// queue takes ops entities from the start of a loaded table: it reads a page of them and deletes
// these, again and again, and begins with a new copy of the table when it is empty.
func queue(page int) func(*Run, Workload, int) error {
	return func(r *Run, w Workload, ops int) error {
		n := r.Data.Len()
		for done := 0; done < ops; done += n {
			if done > 0 {
				if err := r.copyAgain(w); err != nil {
					return err
				}
			}
			taken := min(n, ops-done)
			r.want = want{known: true}
			for i := range n {
				if r.random(i) >= taken {
					r.expect(1, func(int) int { return i })
				}
			}
			if err := r.take(taken, page); err != nil {
				return err
			}
		}
		return nil
	}
}

// take takes n entities in pages.
func (r *Run) take(n, page int) error {
	return r.parallel(1, n, func(w *worker, _, _ int) error {
		keys := make([]edm.Key, page)
		for at := 0; at < n; at += page {
			keys = keys[:min(page, n-at)]
			for i := range keys {
				keys[i] = r.Data.Key(at + i)
			}
			err := w.timed(func() error {
				if err := w.session.Scan(Scan{Limit: len(keys)}, &w.fold); err != nil {
					return err
				}
				return w.session.Delete(keys)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// copyAgain replaces the database by a new copy of the one that w starts with.
func (r *Run) copyAgain(w Workload) error {
	if err := r.removeDB(); err != nil {
		return err
	}
	var err error
	if r.dir, err = r.copied(w.Start); err != nil {
		return err
	}
	if r.db, err = r.Store.Open(r.ctx, r.dir, r.options(w)); err != nil {
		return fmt.Errorf("open: %w", err)
	}
	return nil
}

// removeDB closes the database and removes its files.
func (r *Run) removeDB() error { return errors.Join(r.db.Close(), os.RemoveAll(r.dir)) }

// batchStride is a prime that divides no number of batches.
const batchStride = 1_000_003

// reopen opens the database again and reads an entity. It takes a new copy each time,
// because Open may change the files.
func reopen(r *Run, wl Workload, ops int) error {
	n := r.Data.Len()
	content := r.random // Logged and Closed have the properties of each key
	if wl.Start == Fresh {
		n = min(n, freshLen)
	}
	for i := range ops {
		if i > 0 {
			if err := r.removeDB(); err != nil {
				return err
			}
		}
		var err error
		if r.dir, err = r.copied(wl.Start); err != nil {
			return err
		}
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		wall, cpu := time.Now(), CPUTime()
		if r.db, err = r.Store.Open(r.ctx, r.dir, r.options(wl)); err != nil {
			return fmt.Errorf("reopen: %w", err)
		}
		var f Fold
		found, err := r.db.Session().Get(r.Data.Key(content(i)), &f)
		took := time.Since(wall)
		r.result.CPU += CPUTime() - cpu
		r.result.addAllocs(&mem)
		r.result.Elapsed += took
		r.result.Latencies = append(r.result.Latencies, took)
		if err != nil || !found {
			return fmt.Errorf("get after reopening: found is %v: %w", found, err)
		}
	}
	r.expect(n, all)
	slices.Sort(r.result.Latencies)
	return nil
}
