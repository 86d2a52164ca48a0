package bench

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/filename"
)

// Run runs workloads on a store.
type Run struct {
	Store Store
	Data  *Dataset
	// Dir is the directory of the databases, which have a subdirectory each.
	Dir string
	// Loaded is the directory of a database that PrepareLoaded made for this store
	// and data, for workloads that only read. Do makes one if it is empty.
	Loaded string
	// CacheBytes is the size of the block cache. The default is 512 MiB, enough for
	// a million entities.
	CacheBytes int64
	// LogBytes is the size at which the log is flushed. The default is 64 MiB.
	LogBytes int64
	// Seed determines the order of random operations.
	Seed uint64

	made   int
	meter  meter
	result Result
	db     DB
	order  []uint32
}

const (
	defaultCacheBytes = 512 << 20
	defaultLogBytes   = 64 << 20
	batchLen          = 100
)

// Do carries out ops operations of w and reports their cost. It calls before, unless
// nil, after its preparations and after when the last operation has ended, for a
// benchmark to start and stop its timer.
func (r *Run) Do(w Workload, ops int, before, after func()) (Result, error) {
	r.result = Result{}
	if r.order == nil {
		r.order = r.Data.Order(r.Seed)
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
	dir, err := r.open(w)
	if err != nil {
		return err
	}
	if w.warm {
		var f Fold
		if err := r.db.Session().Scan("", false, &f); err != nil {
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
	err = r.db.Close()
	r.db = nil
	if err != nil {
		return fmt.Errorf("close: %w", err)
	}
	if r.result.DiskBytes, err = diskBytes(dir); err != nil {
		return err
	}
	if !w.ReadOnly {
		return os.RemoveAll(dir)
	}
	return nil
}

// waitIdle waits for the background work to end and records its cost.
func (r *Run) waitIdle() error {
	wall, cpu := time.Now(), CPUTime()
	if err := r.db.WaitIdle(); err != nil {
		return fmt.Errorf("wait for background work: %w", err)
	}
	r.result.BackgroundElapsed, r.result.BackgroundCPU = time.Since(wall), CPUTime()-cpu
	return nil
}

// open opens the database that w starts with and returns its directory.
func (r *Run) open(w Workload) (string, error) {
	dir := r.newDir()
	var err error
	switch {
	case w.ReadOnly && r.Loaded != "":
		dir = r.Loaded
	case w.ReadOnly:
		r.Loaded = dir
		err = r.PrepareLoaded(dir)
	default:
		err = r.prepareStart(w, dir)
	}
	if err != nil {
		return "", err
	}
	if w.cold {
		// Before Open, because an open store may remove files.
		if err := dropPages(dir); err != nil {
			return "", fmt.Errorf("drop pages: %w", err)
		}
	}
	r.db, err = r.Store.Open(dir, r.options(w))
	if err != nil {
		return "", fmt.Errorf("open: %w", err)
	}
	return dir, nil
}

func (r *Run) options(w Workload) Options {
	o := Options{Durable: w.Durable, CacheBytes: r.CacheBytes, LogBytes: r.LogBytes}
	if o.LogBytes == 0 {
		o.LogBytes = defaultLogBytes
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = defaultCacheBytes
	}
	if w.CacheBytes != 0 {
		o.CacheBytes = w.CacheBytes
	}
	if w.start == startLogged {
		o.KeepLog = true
		// Prevent every flush. Pebble flushes when the sum of its full memtables,
		// which double in size, reaches half of this.
		o.LogBytes = max(o.LogBytes, int64(float64(r.Data.Len())*r.Data.Bytes()*4))
	}
	return o
}

// newDir returns the name of a directory that does not exist.
func (r *Run) newDir() string {
	r.made++
	return filepath.Join(r.Dir, fmt.Sprintf("%s-%d", r.Store.Name(), r.made))
}

// prepareStart makes the database that w starts with in dir.
func (r *Run) prepareStart(w Workload, dir string) error {
	switch w.start {
	case startLoaded:
		return r.PrepareLoaded(dir)
	case startLogged:
		return r.prepareLogged(dir)
	case startClosed:
		return r.prepare(dir, Workload{}, func(db DB) error { return putAll(db.Session(), r.Data, r.order) })
	case startEmpty:
	}
	return nil
}

// PrepareLoaded makes a database in dir with all entities, loaded in random order and
// then compacted.
func (r *Run) PrepareLoaded(dir string) error {
	if r.order == nil {
		r.order = r.Data.Order(r.Seed)
	}
	return r.prepare(dir, Workload{}, func(db DB) error {
		if err := putAll(db.Session(), r.Data, r.order); err != nil {
			return err
		}
		return db.Compact()
	})
}

// prepareLogged makes a database in dir with all entities in its log, and fails if any
// are in sstables, so that all stores replay the same.
func (r *Run) prepareLogged(dir string) error {
	err := r.prepare(dir, Workload{start: startLogged}, func(db DB) error {
		return putAll(db.Session(), r.Data, r.order)
	})
	if err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && slices.Contains(sstableExts, filepath.Ext(name)) {
			err = fmt.Errorf("prepare: %s exists, want all entities in the log", name)
		}
		return err
	})
}

// sstableExts are the extensions of the sstables of all stores.
var sstableExts = []string{string(filename.SSTable), ".ldb"}

func (r *Run) prepare(dir string, w Workload, fill func(db DB) error) error {
	db, err := r.Store.Open(dir, r.options(w))
	if err != nil {
		return fmt.Errorf("prepare: open: %w", err)
	}
	if err := errors.Join(fill(db), db.Close()); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	return nil
}

func putAll(s Session, d *Dataset, order []uint32) error {
	batch := Batch(batchLen)
	for at := 0; at < len(order); at += batchLen {
		entities := batch[:min(batchLen, len(order)-at)]
		for i := range entities {
			d.Fill(int(order[at+i]), at+i, &entities[i])
		}
		if err := s.Put(entities); err != nil {
			return err
		}
	}
	return nil
}

// diskBytes returns the size of the files in dir.
func diskBytes(dir string) (int64, error) {
	var n int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}

// worker is the state of one goroutine of a workload.
type worker struct {
	id        int
	session   Session
	fold      Fold
	latencies []time.Duration
	batch     []edm.Entity
}

// timed runs step and records its latency.
func (w *worker) timed(step func() error) error {
	start := time.Now()
	err := step()
	w.latencies = append(w.latencies, time.Since(start))
	return err
}

// parallel divides ops operations among n workers, which run f concurrently, and
// measures them.
func (r *Run) parallel(n, ops int, f func(w *worker, from, to int) error) error {
	workers := make([]*worker, n)
	for i := range workers {
		workers[i] = &worker{
			id: i, session: r.db.Session(), batch: Batch(batchLen),
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
