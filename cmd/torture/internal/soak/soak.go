package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres"
)

// Options of Run.
type Options struct {
	URL      string // of a database that tablerock backend init has prepared
	Duration time.Duration
	Interval time.Duration // between samples
	Entities int           // of the table that is overwritten
	Workers  int
	Seed     uint64
	Report   func(Sample) // receives each sample
}

const (
	account = "soak"
	steady  = "Steady"
	// partitionRows is the number of rows of a partition, batchOps of a batch and dropped of a
	// table that is dropped.
	partitionRows = 1000
	batchOps      = 20
	dropped       = 5000
	// WarmUp is the time in which sizes are not judged: autovacuum looks at a table once a
	// minute.
	WarmUp = time.Minute
	// MaxRatio limits all, live and dead, in relation to what is live.
	MaxRatio = 2
)

// ErrTooLarge means that a sample after WarmUp is at MaxRatio or above.
var ErrTooLarge = errors.New("more than is live remains in the database")

// soak is a run.
type soak struct {
	o   Options
	s   *postgres.Store
	ops atomic.Int64
}

// Run writes until Duration has passed or ctx ends. It returns ErrTooLarge, with the worst
// figures, if the dead rows, the table or the index were too large.
func Run(ctx context.Context, o Options) error {
	d, err := postgres.Connect(ctx, o.URL, &postgres.Options{AllowAsync: true, MaxConns: o.Workers + 2})
	if err != nil {
		return err
	}
	defer d.Close()
	st, err := d.Account(ctx, account)
	if err != nil {
		return err
	}
	defer st.Close()
	r := &soak{o: o, s: st}
	if err := st.CreateTable(ctx, steady); err != nil && !errors.Is(err, store.ErrTableExists) {
		return err
	}
	running, cancel := context.WithTimeout(ctx, o.Duration)
	defer cancel()
	failed := make(chan error, o.Workers+1)
	var all sync.WaitGroup
	start := func(f func(ctx context.Context) error) {
		all.Go(func() {
			if err := f(running); err != nil && running.Err() == nil {
				failed <- err
				cancel()
			}
		})
	}
	for i := range o.Workers {
		start(func(ctx context.Context) error { return r.overwrite(ctx, i) })
	}
	start(r.drop)
	worst, err := r.watch(running, d)
	cancel()
	all.Wait()
	close(failed)
	if err := errors.Join(err, <-failed); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if worst.Worst() >= MaxRatio {
		return fmt.Errorf("%w: rows %.2f times, table %.2f times, index %.2f times", ErrTooLarge, worst.Rows, worst.Table, worst.Index)
	}
	return nil
}

// watch takes samples until ctx ends, and returns the worst ratios after WarmUp.
func (r *soak) watch(ctx context.Context, d *postgres.Database) (worst Ratios, err error) {
	m, err := connect(ctx, r.o.URL)
	if err != nil {
		return Ratios{}, err
	}
	defer m.close()
	begin := time.Now()
	tick := time.NewTicker(r.o.Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return worst, nil
		case <-tick.C:
		}
		s, err := m.sample(ctx)
		if ctx.Err() != nil {
			return worst, nil
		}
		if err != nil {
			return Ratios{}, err
		}
		s.Elapsed, s.Ops, s.Unknown = time.Since(begin), r.ops.Load(), d.Stats().UnknownOutcomes
		r.o.Report(s)
		if s.Elapsed > WarmUp {
			worst = worst.max(s.Ratios())
		}
	}
}

// overwrite replaces, deletes and inserts entities of the partitions of one worker. The first
// half of the rows of a partition always exists, the second half mostly half of the time.
func (r *soak) overwrite(ctx context.Context, worker int) error {
	rnd := rand.New(rand.NewPCG(r.o.Seed, uint64(worker)))
	partitions := max(1, r.o.Entities/partitionRows/r.o.Workers)
	rows := make([]int, batchOps)
	for p := range partitions {
		// In no order, as users come, and with as many rows of the second half as there are
		// later.
		all := slices.DeleteFunc(rnd.Perm(partitionRows), func(row int) bool { return row >= partitionRows/2 && rnd.IntN(2) == 0 })
		for len(all) >= batchOps {
			copy(rows, all)
			all = all[batchOps:]
			if err := r.batch(ctx, rnd, worker, p, rows, false); err != nil {
				return err
			}
		}
	}
	for {
		// Rows all over the half of a partition, one in each of its parts.
		const part = partitionRows / 2 / batchOps
		half := rnd.IntN(2)
		for i := range rows {
			rows[i] = half*partitionRows/2 + i*part + rnd.IntN(part)
		}
		if err := r.batch(ctx, rnd, worker, rnd.IntN(partitions), rows, half == 1 && rnd.IntN(2) == 0); err != nil {
			return err
		}
	}
}

// batch writes rows of a partition, or removes those of them that exist.
func (r *soak) batch(ctx context.Context, rnd *rand.Rand, worker, p int, rows []int, remove bool) error {
	partition := fmt.Sprintf("w%02d-%03d", worker, p)
	ops := make([]store.Op, 0, len(rows))
	for _, row := range rows {
		key := edm.Key{Partition: partition, Row: fmt.Sprintf("%08d", row)}
		if !remove {
			ops = append(ops, store.InsertOrReplace(edm.Entity{Key: key, Properties: properties(rnd)}))
			continue
		}
		// No other worker writes to the partition.
		switch err := r.s.View(ctx, steady, key, func(edm.Row) error { return nil }); {
		case err == nil:
			ops = append(ops, store.Delete(key, store.Any))
		case !errors.Is(err, store.ErrEntityNotFound) && !errors.Is(err, store.ErrUnavailable):
			return err
		}
	}
	if len(ops) == 0 {
		return ctx.Err()
	}
	return r.apply(ctx, steady, ops)
}

// properties returns properties of 100 to 600 bytes.
func properties(rnd *rand.Rand) edm.Properties {
	text := make([]byte, 100+rnd.IntN(500))
	for i := range text {
		text[i] = byte('a' + rnd.IntN(26))
	}
	return edm.Properties{
		{Name: "Text", Value: edm.StringBytes(text)}, {Name: "Count", Value: edm.Int64(rnd.Int64())}, {Name: "Seen", Value: edm.Boolean(true)},
	}
}

// apply applies a batch. It passes over a server that is busy or lost.
func (r *soak) apply(ctx context.Context, table string, ops []store.Op) error {
	_, err := r.s.Apply(ctx, table, ops...)
	if err == nil {
		r.ops.Add(int64(len(ops)))
	}
	if errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrOutcomeUnknown) {
		return ctx.Err()
	}
	return err
}

// drop creates, fills and drops tables.
func (r *soak) drop(ctx context.Context) error {
	rnd := rand.New(rand.NewPCG(r.o.Seed, 1<<32))
	for n := 0; ; n++ {
		table := fmt.Sprintf("Dropped%d", n)
		if err := r.s.CreateTable(ctx, table); err != nil && !errors.Is(err, store.ErrTableExists) {
			return err
		}
		for row := 0; row < dropped; row += batchOps {
			ops := make([]store.Op, batchOps)
			for i := range ops {
				key := edm.Key{Partition: "p", Row: fmt.Sprintf("%08d", row+i)}
				ops[i] = store.InsertOrReplace(edm.Entity{Key: key, Properties: properties(rnd)})
			}
			if err := r.apply(ctx, table, ops); err != nil {
				return err
			}
		}
		if err := r.s.DeleteTable(ctx, table); err != nil && !errors.Is(err, store.ErrTableNotFound) {
			return err
		}
	}
}
