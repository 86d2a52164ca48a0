package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tablerock-db/tablerock/edm"
)

// Run runs workloads on a store.
type Run struct {
	Store Store
	Data  *Dataset
	// Dir is the directory of the databases, which have a subdirectory each.
	Dir string
	// Prepared has directories that Prepare made for this store and data. Do adds
	// those that it needs. Workloads that only read use them in place, others a copy.
	Prepared map[Start]string
	// CacheBytes is the size of the block cache of workloads that set none. The
	// default is 512 MiB, enough for a million entities.
	CacheBytes int64
	// LogBytes is the size at which the log is flushed. The default is 64 MiB.
	LogBytes int64
	// Seed determines the order of random operations.
	Seed uint64
	// Evict removes the files of a directory from the page cache, for Cold workloads.
	// The default does not check whether it succeeds.
	Evict func(dir string) error
	// Written, if not nil, counts the entities that the preparations and the loads of
	// batches have written, for a display.
	Written *atomic.Int64

	made   int
	ctx    context.Context // of Do or Prepare
	dir    string          // of the database
	meter  meter
	result Result
	db     DB
	order  []uint32
	rowSum []uint64
	match  *Match
	want   want
}

// want is what a workload must have read, or what the table must contain after it.
type want struct {
	known bool // the workload knows the sum
	sum   uint64
	rows  int64
}

const (
	defaultCacheBytes = 512 << 20
	defaultLogBytes   = 64 << 20
	batchLen          = 100
)

// Init makes the orders and checksums that the workloads need. Do calls it; call it before
// to exclude their memory from a measurement. The end of ctx is its only error.
func (r *Run) Init(ctx context.Context) error {
	if r.Prepared == nil {
		r.Prepared = map[Start]string{}
	}
	if r.order != nil {
		return nil
	}
	var err error
	if r.rowSum, err = r.Data.sums(ctx); err == nil {
		r.order = r.Data.Order(r.Seed)
	}
	return err
}

// Do carries out ops operations of w and reports their cost. It calls before, unless
// nil, after its preparations and after when the last operation has ended, for a
// benchmark to start and stop its timer. It returns an error if w read other entities
// than were written, or if the table contains others after w. If ctx ends, it returns its
// error, and files remain in Dir.
func (r *Run) Do(ctx context.Context, w Workload, ops int, before, after func()) (Result, error) {
	r.ctx, r.result, r.want = ctx, Result{}, want{}
	if err := r.Init(ctx); err != nil {
		return Result{}, err
	}
	if err := r.do(w, ops, before, after); err != nil {
		if r.db != nil {
			err = errors.Join(err, r.db.Close())
			r.db = nil
		}
		return Result{}, fmt.Errorf("%s on %s, %v: %w", w.Name, r.Store.Name(), r.Data.Shape(), err)
	}
	return r.result, nil
}

func (r *Run) do(w Workload, ops int, before, after func()) error {
	if err := r.open(w); err != nil {
		return err
	}
	if w.match != 0 {
		r.match = r.Data.Match(w.match)
	}
	if w.warm != nil {
		if err := w.warm(r, w); err != nil {
			return fmt.Errorf("warm up: %w", err)
		}
	}
	if before != nil {
		before()
	}
	if err := w.run(r, w, ops); err != nil {
		return err
	}
	if after != nil {
		after()
	}
	r.result.Ops = int64(ops)
	if !w.ReadOnly {
		if err := r.waitIdle(); err != nil {
			return err
		}
	}
	if err := r.check(w); err != nil {
		return err
	}
	err := r.db.Close()
	r.db = nil
	if err != nil {
		return fmt.Errorf("close: %w", err)
	}
	if r.result.DiskBytes, r.result.TableBytes, err = fileBytes(r.dir); err != nil {
		return err
	}
	if !w.ReadOnly {
		return os.RemoveAll(r.dir)
	}
	return nil
}

// waitIdle waits for the background work to end and records its cost.
func (r *Run) waitIdle() error {
	wall, cpu, before := time.Now(), CPUTime(), currentWritten()
	idle, err := r.db.WaitIdle()
	if err != nil {
		return fmt.Errorf("wait for background work: %w", err)
	}
	r.result.BackgroundElapsed, r.result.BackgroundCPU = max(0, time.Since(wall)-idle), CPUTime()-cpu
	r.result.BackgroundWritten = currentWritten().since(before)
	return nil
}

// check compares what w read, or what it left in the table, with what it must.
func (r *Run) check(w Workload) error {
	got := r.result
	if !w.ReadOnly {
		var f Fold
		if err := r.db.Session().Scan(Scan{}, &f); err != nil {
			return fmt.Errorf("check: %w", err)
		}
		got.Sum, got.Rows = f.Sum(), f.Rows()
	}
	if got.Rows != r.want.rows || r.want.known && got.Sum != r.want.sum {
		return fmt.Errorf("check: %d rows with sum %016x, want %d with %016x (known: %v)",
			got.Rows, got.Sum, r.want.rows, r.want.sum, r.want.known)
	}
	return nil
}

// expect adds n rows with the sums of their properties to what w must read or leave.
func (r *Run) expect(n int, content func(i int) int) {
	r.want.known = true
	r.want.rows += int64(n)
	for i := range n {
		r.want.sum += r.rowSum[content(i)%len(r.rowSum)]
	}
}

// count counts n entities as written.
func (r *Run) count(n int) {
	if r.Written != nil {
		r.Written.Add(int64(n))
	}
}

// all is the content of entity i of the whole table.
func all(i int) int { return i }

// open opens the database that w starts with, unless w does that itself.
func (r *Run) open(w Workload) error {
	if err := r.makePrepared(w.Start); err != nil || w.opens {
		return err
	}
	var err error
	if r.dir, err = r.directory(w); err != nil {
		return err
	}
	if w.Cold {
		// Before Open, because mapped pages stay.
		evict := r.Evict
		if evict == nil {
			evict = dropPages
		}
		if err := evict(r.dir); err != nil {
			return fmt.Errorf("drop pages: %w", err)
		}
	}
	if r.db, err = r.Store.Open(r.ctx, r.dir, r.options(w)); err != nil {
		return fmt.Errorf("open: %w", err)
	}
	return nil
}

// makePrepared prepares a database in the state s, unless there is one.
func (r *Run) makePrepared(s Start) error {
	if s == Empty || r.Prepared[s] != "" {
		return nil
	}
	dir := r.newDir()
	if err := r.Prepare(r.ctx, s, dir); err != nil {
		return err
	}
	r.Prepared[s] = dir
	return nil
}

// directory returns the name of the directory of a database in the state that w starts with.
func (r *Run) directory(w Workload) (string, error) {
	switch {
	case w.Start == Empty:
		return r.newDir(), nil
	case w.ReadOnly:
		return r.Prepared[w.Start], nil
	}
	return r.copied(w.Start)
}

// copied copies the prepared database of a start.
func (r *Run) copied(s Start) (string, error) {
	dir := r.newDir()
	if err := copyDir(r.ctx, r.Prepared[s], dir); err != nil {
		return "", fmt.Errorf("copy %v: %w", s, err)
	}
	return dir, nil
}

func (r *Run) options(w Workload) Options {
	o := Options{Durable: w.Durable, CacheBytes: r.CacheBytes, LogBytes: r.LogBytes}
	if w.CacheBytes > 0 {
		o.CacheBytes = w.CacheBytes
	}
	if o.LogBytes == 0 {
		o.LogBytes = defaultLogBytes
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = defaultCacheBytes
	}
	total := int64(float64(r.Data.Len()) * r.Data.Bytes())
	switch w.Start {
	case Logged, Closed:
		// Prevent every flush. Badger replays a log only into a memtable of the size
		// that it was written for. Pebble flushes when the sum of its full memtables,
		// which double in size, reaches half of this.
		o.LogBytes = max(o.LogBytes, 4*total)
	case TwoRuns, EightRuns:
		o.KeepRuns = true
		o.LogBytes = max(o.LogBytes, 2*total)
	}
	return o
}

// newDir returns the name of a directory that does not exist.
func (r *Run) newDir() string {
	r.made++
	return filepath.Join(r.Dir, fmt.Sprintf("%s-%d", r.Store.Name(), r.made))
}

// worker is the state of one goroutine of a workload.
type worker struct {
	ctx       context.Context
	id        int
	session   Session
	fold      Fold
	latencies []time.Duration
	batch     []edm.Entity
}

// timed runs step and records its latency, unless the context has ended.
func (w *worker) timed(step func() error) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	start := time.Now()
	err := step()
	w.latencies = append(w.latencies, time.Since(start))
	return err
}

// sampled runs step and records the latency of one in sampleEvery, by its number.
func (w *worker) sampled(i int, step func() error) error {
	if i%sampleEvery != 0 {
		return step()
	}
	return w.timed(step)
}

// parallel divides ops operations among n workers, which run f concurrently, and
// measures them.
func (r *Run) parallel(n, ops int, f func(w *worker, from, to int) error) error {
	workers := make([]*worker, n)
	for i := range workers {
		workers[i] = &worker{
			ctx: r.ctx, id: i, session: r.db.Session(), batch: Batch(batchLen),
			latencies: make([]time.Duration, 0, ops/n/sampleEvery+1024),
		}
		for j := range workers[i].batch {
			r.Data.Fill(0, 0, &workers[i].batch[j])
		}
	}
	errs := make([]error, n)
	r.meter.start(r.db)
	if n == 1 {
		errs[0] = f(workers[0], 0, ops)
	} else {
		var wg sync.WaitGroup
		for i := range workers {
			wg.Go(func() { errs[i] = f(workers[i], ops*i/n, ops*(i+1)/n) })
		}
		wg.Wait()
	}
	r.meter.stop(r.db, &r.result)
	r.result.Latencies = append(r.result.Latencies, merge(workers)...)
	for _, w := range workers {
		r.result.Sum += w.fold.Sum()
		r.result.Rows += w.fold.Rows()
	}
	return errors.Join(errs...)
}
