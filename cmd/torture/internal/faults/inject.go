package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/oracle"
	"github.com/tablerock-db/tablerock/cmd/torture/internal/workload"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// Options configures Run.
type Options struct {
	// Seed determines the workload. The default is seed 0.
	Seed uint64
	// Profile is the profile of the workload. The default is workload.Mixed.
	Profile workload.Profile
	// Steps is the length of the workload. The default is 25.
	Steps int
	// Stride fails only every Stride-th operation, from 1+Seed%Stride on. The
	// default is 1.
	Stride int
	// Only fails this operation only. The default, 0, fails all.
	Only uint64
	// Store returns the store of the workload on a database. The default is the
	// database itself.
	Store func(store.Store) store.Store
	// Sites collects the call sites of operations. It has no default.
	Sites *Sites
}

// Counts has the counters of Run. They may be read while it runs.
type Counts struct {
	Workloads, Operations, Runs, States atomic.Int64
}

// Violation is a broken promise.
type Violation struct {
	Seed    uint64
	Profile workload.Profile
	N       uint64
	Path    string
	Err     error
}

// Error describes the failed operation and the broken promise.
func (v *Violation) Error() string {
	return fmt.Sprintf("seed %d, profile %v, operation %d: %s: %v", v.Seed, v.Profile, v.N, v.Path, v.Err)
}

// Unwrap returns the broken promise.
func (v *Violation) Unwrap() error { return v.Err }

// Run runs a workload once for each operation and each way in which that can fail. The
// error is a *Violation or that of ctx.
func Run(ctx context.Context, o Options, counts *Counts) error {
	o.Steps = max(o.Steps, 0)
	if o.Steps == 0 {
		o.Steps = 25
	}
	o.Stride = max(o.Stride, 1)
	counts.Workloads.Add(1)
	kinds, err := record(ctx, o)
	if err != nil {
		return &Violation{o.Seed, o.Profile, 0, "without a failure", err}
	}
	first, stride := 1+o.Seed%uint64(o.Stride), uint64(o.Stride)
	if o.Only != 0 {
		first, stride = o.Only, uint64(len(kinds))
	}
	for n := first; n <= uint64(len(kinds)); n += stride {
		counts.Operations.Add(1)
		rng := rand.New(rand.NewPCG(o.Seed, n))
		for _, v := range append(variants(kinds[n-1]), twice(kinds[n-1], n, uint64(len(kinds)), rng)...) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := fail(ctx, o, n, v, counts); err != nil {
				return err
			}
		}
	}
	return nil
}

// record runs the workload without a failure and returns its operations.
func record(ctx context.Context, o Options) ([]string, error) {
	var kinds []string
	r := newRun(o, func(op vfs.Op) *errorfs.Fault {
		kinds = append(kinds, op.Kind)
		return nil
	}, nil)
	defer r.s.Abandon()
	return kinds, r.work(ctx)
}

// run is a workload with a failure.
type run struct {
	o      Options
	s      *workload.Session
	cache  *engine.Cache
	counts *Counts
	rng    *rand.Rand
}

func newRun(o Options, rule errorfs.Rule, counts *Counts) *run {
	r := &run{o: o, counts: counts, cache: workload.NewCache(), rng: rand.New(rand.NewPCG(o.Seed, 0x6661696c))}
	r.s = workload.New(workload.Options{
		Seed: o.Seed, Profile: o.Profile, Rule: rule, Cache: r.cache, Store: o.Store,
	})
	return r
}

// fail runs the workload with one failure.
func fail(ctx context.Context, o Options, n uint64, v variant, counts *Counts) (err error) {
	counts.Runs.Add(1)
	var counter uint64
	var op vfs.Op
	path := "start"
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
		if err != nil && ctx.Err() == nil {
			err = &Violation{o.Seed, o.Profile, n, fmt.Sprintf("%v %v, %s", op, &v, path), err}
		}
	}()
	rule := v.rule(n, &counter, &op)
	if o.Sites != nil {
		rule = o.Sites.rule(rule)
	}
	r := newRun(o, rule, counts)
	defer r.s.Abandon()
	path = "the running database"
	if err := r.work(ctx); err != nil {
		return err
	}
	if err := r.running(ctx); err != nil {
		return err
	}
	path = "after a crash"
	return r.crashes(ctx)
}

// work runs the steps of the workload until one cannot continue.
func (r *run) work(ctx context.Context) error {
	err := r.s.Start()
	for i := 0; i < r.o.Steps && err == nil; i++ {
		err = r.s.Step(ctx)
		if r.s.Refused && i < r.o.Steps-3 {
			i = r.o.Steps - 3 // the database refuses further writes
		}
	}
	if errors.Is(err, workload.ErrStopped) {
		return nil
	}
	return err
}

// running checks the running database after the failure: it contains what was acknowledged,
// and it accepts no write after one of unknown outcome.
func (r *run) running(ctx context.Context) error {
	if r.s.DB == nil {
		return nil
	}
	r.s.FS.SetRule(nil)
	if err := r.s.Check(ctx); err != nil {
		return err
	}
	if !r.s.Refused {
		return r.s.Probe(ctx)
	}
	if _, err := r.s.DB.Apply(ctx, "Alpha", store.Insert(edm.Entity{})); !errors.Is(err, store.ErrReadOnly) {
		return fmt.Errorf("a write after one of unknown outcome: got %w, want %w", err, store.ErrReadOnly)
	}
	return nil
}

// crashes checks the disks after a kill, after power failures and after Close.
func (r *run) crashes(ctx context.Context) error {
	disks := []struct {
		what string
		disk *vfs.Mem
	}{{"kill", r.s.Disk.Clone()}}
	for _, mode := range vfs.CrashModes {
		c := vfs.CrashOptions{Mode: mode, Seed: r.rng.Uint64()}
		disks = append(disks, struct {
			what string
			disk *vfs.Mem
		}{fmt.Sprintf("crash %v/%d", c.Mode, c.Seed), r.s.Disk.Crash(c)})
	}
	for _, d := range disks {
		if err := r.reopen(ctx, d.disk); err != nil {
			return fmt.Errorf("%s: %w", d.what, err)
		}
	}
	if r.s.DB != nil {
		_ = r.s.DB.Close() // it may fail
		r.s.DB = nil
	}
	if err := r.reopen(ctx, r.s.Disk.Clone()); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}

// reopen opens a disk without failures and checks it.
func (r *run) reopen(ctx context.Context, disk *vfs.Mem) error {
	r.counts.States.Add(1)
	clock := workload.NewClock()
	clock.Move(-1 << 62)
	db, err := engine.Open(workload.Dir, workload.EngineOptions(disk, clock, r.cache))
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer db.Close()
	scanned, err := oracle.Scan(ctx, db)
	if err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	at := r.s.Head
	if scanned.Sum != at.Sum {
		got, err := oracle.Load(ctx, db)
		if err != nil {
			return fmt.Errorf("load: %w", err)
		}
		if at = r.s.Outcomes(got); at == nil {
			return fmt.Errorf("with %d commits of unknown outcome: %s", len(r.s.Unknown), r.s.State.Diff(got))
		}
	}
	report, err := db.Verify(ctx)
	if err != nil || len(report.Findings) > 0 {
		return fmt.Errorf("verify: %w, found %v", err, report.Findings)
	}
	if err := db.CreateTable(ctx, "Late"); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	results, err := db.Apply(ctx, "Late", store.Insert(edm.Entity{}))
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if results[0].Timestamp <= at.MaxTick {
		return fmt.Errorf("got Timestamp %d after %d", results[0].Timestamp, at.MaxTick)
	}
	return nil
}
