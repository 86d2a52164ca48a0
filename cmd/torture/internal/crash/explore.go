package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/workload"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// Options configures Explore.
type Options struct {
	// Seed determines the run. The default is seed 0.
	Seed uint64
	// Profile is the profile of the workload. The default is workload.Mixed.
	Profile workload.Profile
	// NoSync opens the database without syncs. The default is to sync.
	NoSync bool
	// Steps is the length of the workload. The default is 40.
	Steps int
	// Modes are the crash modes. The default is Kill and vfs.CrashModes.
	Modes []string
	// Choices is the number of disks for each point and random mode. The default
	// is 1.
	Choices int
	// Depth is the number of power failures in a row: 1 is during the workload
	// only. The default is 3.
	Depth int
	// All is the number of disks up to which all of them are built, at one point in
	// 16. The default, 0, never does.
	All int
	// Point is the only point to check. The default, 0, is all points.
	Point int
	// Wrap returns the file system of the database on a disk, and Store the store
	// of the workload on a database. The defaults are the disk and the database.
	Wrap  func(*vfs.Mem) vfs.FS
	Store func(store.Store) store.Store
}

// Kill is the crash mode in which only the process ends: everything it wrote is on the
// disk, and writes without a sync can still be lost in a later power failure.
const Kill = "kill"

var modes = append([]string{Kill}, vfs.CrashModes...)

// crashed returns a disk after a crash.
func crashed(disk *vfs.Mem, c vfs.CrashOptions) *vfs.Mem {
	if c.Mode == Kill {
		return disk.Clone()
	}
	return disk.Crash(c)
}

// describe returns the mode and the seed of a crash.
func describe(c vfs.CrashOptions) string {
	if c.Mode == Kill {
		return Kill
	}
	return fmt.Sprintf("crash %v/%d", c.Mode, c.Seed)
}

// Counts has the counters of an exploration. They may be read while it runs.
type Counts struct {
	Workloads, Points, States, Nested, Copies atomic.Int64
	// Of lying disks: detected losses, disks without loss, losses without evidence
	// on the disk.
	Detected, Harmless, Undetectable atomic.Int64
}

// Violation is a broken promise.
type Violation struct {
	Seed    uint64
	Profile workload.Profile
	Point   int // in the workload, from 1; 0 is the running database
	Path    string
	Err     error
}

// Error describes the point and the broken promise.
func (v *Violation) Error() string {
	return fmt.Sprintf("seed %d, profile %v, point %d: %s: %v", v.Seed, v.Profile, v.Point, v.Path, v.Err)
}

// Unwrap returns the broken promise.
func (v *Violation) Unwrap() error { return v.Err }

// explorer runs one workload.
type explorer struct {
	o      Options
	counts *Counts
	s      *workload.Session
	cache  *engine.Cache

	mu sync.Mutex
	// +checklocks:mu
	points int
	// disks are the disks of crashes during the current step.
	// +checklocks:mu
	disks []crashDisk
}

// crashDisk is a disk after a crash at a point of the workload.
type crashDisk struct {
	disk    *vfs.Mem
	instant workload.Instant
	point   int
	op      vfs.Op
	choice  vfs.CrashOptions
}

func (o Options) withDefaults() Options {
	if o.Steps == 0 {
		o.Steps = 40
	}
	if o.Modes == nil {
		o.Modes = modes
	}
	if o.Choices == 0 {
		o.Choices = 1
	}
	if o.Depth == 0 {
		o.Depth = 3
	}
	return o
}

// Explore runs one workload and checks disks that a crash at each of its points can leave.
// The error is a *Violation or that of ctx.
func Explore(ctx context.Context, o Options, counts *Counts) error {
	x := &explorer{o: o.withDefaults(), counts: counts, cache: workload.NewCache()}
	counts.Workloads.Add(1)
	x.s = workload.New(workload.Options{
		Seed: o.Seed, Profile: o.Profile, NoSync: o.NoSync, Store: o.Store, Cache: x.cache,
		Wrap: o.Wrap, Attach: func(disk *vfs.Mem) { disk.OnOp(func(op vfs.Op) { x.addDisks(disk, op) }) },
	})
	defer x.s.Abandon()
	if err := x.s.Start(); err != nil {
		return x.violation(0, "new database", err)
	}
	rng := rand.New(rand.NewPCG(o.Seed, 0x6c6f6f6b))
	for range x.o.Steps {
		if err := x.s.Step(ctx); err != nil {
			return x.violation(0, "running", err)
		}
		if err := x.checkDisks(ctx); err != nil {
			return err
		}
		if rng.IntN(20) == 0 && !o.NoSync {
			if err := x.crash(ctx, rng); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *explorer) violation(point int, path string, err error) error {
	return &Violation{Seed: x.o.Seed, Profile: x.o.Profile, Point: point, Path: path, Err: err}
}

// addDisks adds the disks of a crash at this point of the workload.
func (x *explorer) addDisks(disk *vfs.Mem, op vfs.Op) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.points++
	x.counts.Points.Add(1)
	if x.o.Point != 0 && x.o.Point != x.points {
		return
	}
	rng := rand.New(rand.NewPCG(x.o.Seed, uint64(x.points)))
	instant := x.s.Instant()
	add := func(c vfs.CrashOptions) {
		x.disks = append(x.disks, crashDisk{crashed(disk, c), instant, x.points, op, c})
	}
	for _, mode := range x.o.Modes {
		n := x.o.Choices
		if mode == Kill || mode == "min" || mode == "max" {
			n = 1
		}
		for range n {
			c := vfs.CrashOptions{Mode: mode, Seed: rng.Uint64()}
			if mode == "lying" {
				c.File = lyingFile(disk, rng)
			}
			add(c)
		}
	}
	if x.o.All > 0 && rng.IntN(16) == 0 && disk.CrashStateCount() <= uint64(x.o.All) {
		i := uint64(0)
		for state := range disk.CrashStates(x.o.All) {
			c := vfs.CrashOptions{Mode: "sector", Seed: i}
			x.disks = append(x.disks, crashDisk{state, instant, x.points, op, c}) // +checklocksignore: in a range function
			i++
		}
	}
}

// checkDisks checks the disks of the last step.
func (x *explorer) checkDisks(ctx context.Context) error {
	x.mu.Lock()
	list := x.disks
	x.disks = nil
	x.mu.Unlock()
	for i := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		f := &list[i]
		path := fmt.Sprintf("%s: %v, %s", f.instant.What(), f.op, describe(f.choice))
		var err error
		if f.choice.Mode == "lying" {
			err = x.guard(func() error { return x.checkLying(ctx, f) })
		} else {
			err = x.guard(func() error { return x.check(ctx, f) })
		}
		if err != nil {
			return x.violation(f.point, path, err)
		}
		list[i] = crashDisk{} // free its memory
	}
	return nil
}

// guard turns a panic into an error.
func (x *explorer) guard(do func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return do()
}

func (x *explorer) check(ctx context.Context, f *crashDisk) error {
	r := &recovery{x: x, disk: f.disk, rng: rand.New(rand.NewPCG(f.choice.Seed, uint64(f.point))), depth: 1, issued: f.instant.Issued()}
	w := f.instant.Window()
	if err := r.run(ctx, w); err != nil {
		return err
	}
	if dest := f.instant.Checkpoint(); dest != "" {
		x.counts.Copies.Add(1)
		return x.s.CheckCopy(ctx, f.disk, dest, w.High, false)
	}
	return nil
}

// crash crashes the workload itself, which continues on the remaining disk.
func (x *explorer) crash(ctx context.Context, rng *rand.Rand) error {
	c := vfs.CrashOptions{Mode: modes[rng.IntN(len(modes))], Seed: rng.Uint64()}
	path := describe(c) + " between steps"
	if err := x.s.ReplaceDisk(ctx, crashed(x.s.Disk, c), x.s.Head); err != nil {
		return x.violation(0, path, err)
	}
	return x.checkDisks(ctx)
}

// open opens the database of a disk, with and without preallocation at random.
func (x *explorer) open(disk *vfs.Mem, rng *rand.Rand, readOnly bool) (*engine.DB, error) {
	fs := vfs.FS(disk)
	if x.o.Wrap != nil {
		fs = x.o.Wrap(disk)
	} else if rng.IntN(4) == 0 {
		fs = errorfs.Wrap(disk, nil)
	}
	clock := workload.NewClock()
	switch rng.IntN(3) {
	case 0:
		clock.Move(-1 << 62) // back to 1601
	case 1:
		clock.Move(1e7)
	}
	o := workload.EngineOptions(fs, clock, x.cache)
	o.ReadOnly = readOnly
	db, err := engine.Open(workload.Dir, o)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	return db, nil
}
