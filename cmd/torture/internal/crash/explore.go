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

// Options say what Explore looks at.
type Options struct {
	// Seed decides everything. The default is seed 0.
	Seed uint64
	// Profile is that of the workload. The default is workload.Mixed.
	Profile workload.Profile
	// NoSync opens the database so. The default is to sync.
	NoSync bool
	// Steps is the length of the workload. The default is 40.
	Steps int
	// Modes are the crash modes. The default is Kill and vfs.CrashModes.
	Modes []vfs.CrashMode
	// Choices is how many disks are built for each point and mode that chooses
	// at random. The default is 1.
	Choices int
	// Depth is how often the power fails: 1 is in the workload only. The
	// default is 3.
	Depth int
	// All builds every disk of one point in 16, if there are at most this many.
	// The default, 0, never does.
	All int
	// Point is the only point to look at. The default, 0, is all of them.
	Point int
	// Wrap and Store stand in for what is between the workload, the database
	// and the disk, before and after a crash. The default is nothing.
	Wrap  func(*vfs.Mem) vfs.FS
	Store func(store.Store) store.Store
}

// Kill is the end of the process alone: what it wrote is there, and what no sync
// covered can still be lost when the power fails later.
const Kill vfs.CrashMode = 0

var modes = append([]vfs.CrashMode{Kill}, vfs.CrashModes...)

// crashed returns the disk that a crash leaves.
func crashed(disk *vfs.Mem, c vfs.CrashOptions) *vfs.Mem {
	if c.Mode == Kill {
		return disk.Clone()
	}
	return disk.Crash(c)
}

// describe names a crash, so that it can be found again.
func describe(c vfs.CrashOptions) string {
	if c.Mode == Kill {
		return "kill"
	}
	return fmt.Sprintf("crash %v/%d", c.Mode, c.Seed)
}

// Counts are what an exploration has looked at. They may be read meanwhile.
type Counts struct {
	Workloads, Points, States, Nested, Copies atomic.Int64
	// Of lying disks: losses found, disks in order, losses that nothing shows.
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

// Error says where the promise was broken and how.
func (v *Violation) Error() string {
	return fmt.Sprintf("seed %d, profile %v, point %d: %s: %v", v.Seed, v.Profile, v.Point, v.Path, v.Err)
}

// Unwrap returns what was found.
func (v *Violation) Unwrap() error { return v.Err }

// explorer is one workload under way.
type explorer struct {
	o      Options
	counts *Counts
	s      *workload.Session
	cache  *engine.Cache

	mu sync.Mutex
	// +checklocks:mu
	points int
	// found are the disks of the step under way.
	// +checklocks:mu
	found []found
}

// found is a disk to look at.
type found struct {
	disk   *vfs.Mem
	moment workload.Moment
	point  int
	op     vfs.Op
	choice vfs.CrashOptions
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

// Explore runs one workload and looks at the disks that a crash at each of its
// points can leave. The error is a *Violation or that of ctx.
func Explore(ctx context.Context, o Options, counts *Counts) error {
	x := &explorer{o: o.withDefaults(), counts: counts, cache: workload.NewCache()}
	counts.Workloads.Add(1)
	x.s = workload.New(workload.Options{
		Seed: o.Seed, Profile: o.Profile, NoSync: o.NoSync, Store: o.Store, Cache: x.cache,
		Wrap: o.Wrap, Attach: func(disk *vfs.Mem) { disk.OnOp(func(op vfs.Op) { x.look(disk, op) }) },
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
		if err := x.judge(ctx); err != nil {
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

// look is called at every point of the workload and takes the disks along.
func (x *explorer) look(disk *vfs.Mem, op vfs.Op) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.points++
	x.counts.Points.Add(1)
	if x.o.Point != 0 && x.o.Point != x.points {
		return
	}
	rng := rand.New(rand.NewPCG(x.o.Seed, uint64(x.points)))
	moment := x.s.Moment()
	take := func(c vfs.CrashOptions) {
		x.found = append(x.found, found{crashed(disk, c), moment, x.points, op, c})
	}
	for _, mode := range x.o.Modes {
		n := x.o.Choices
		if mode == Kill || mode == vfs.CrashMin || mode == vfs.CrashMax {
			n = 1
		}
		for range n {
			c := vfs.CrashOptions{Mode: mode, Seed: rng.Uint64()}
			if mode == vfs.CrashLying {
				c.File = liar(disk, rng)
			}
			take(c)
		}
	}
	if x.o.All > 0 && rng.IntN(16) == 0 && disk.CrashStateCount() <= uint64(x.o.All) {
		i := uint64(0)
		for state := range disk.CrashStates(x.o.All) {
			x.found = append(x.found, found{state, moment, x.points, op, vfs.CrashOptions{Mode: vfs.CrashSector, Seed: i}})
			i++
		}
	}
}

// judge looks at the disks that the last step gave.
func (x *explorer) judge(ctx context.Context) error {
	x.mu.Lock()
	list := x.found
	x.found = nil
	x.mu.Unlock()
	for i := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		f := &list[i]
		path := fmt.Sprintf("%s: %v, %s", f.moment.What(), f.op, describe(f.choice))
		var err error
		if f.choice.Mode == vfs.CrashLying {
			err = x.guard(func() error { return x.lied(ctx, f) })
		} else {
			err = x.guard(func() error { return x.check(ctx, f) })
		}
		if err != nil {
			return x.violation(f.point, path, err)
		}
		list[i] = found{}
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

func (x *explorer) check(ctx context.Context, f *found) error {
	life := &life{x: x, disk: f.disk, rng: rand.New(rand.NewPCG(f.choice.Seed, uint64(f.point))), depth: 1, issued: f.moment.Issued()}
	w := f.moment.Window()
	if err := life.run(ctx, w); err != nil {
		return err
	}
	if dest := f.moment.Checkpoint(); dest != "" {
		x.counts.Copies.Add(1)
		return x.s.CheckCopy(ctx, f.disk, dest, w.High, false)
	}
	return nil
}

// crash lets the power fail in the workload itself, which goes on with what is
// left.
func (x *explorer) crash(ctx context.Context, rng *rand.Rand) error {
	c := vfs.CrashOptions{Mode: modes[rng.IntN(len(modes))], Seed: rng.Uint64()}
	path := describe(c) + " between steps"
	if err := x.s.Become(ctx, crashed(x.s.Disk, c), x.s.Head); err != nil {
		return x.violation(0, path, err)
	}
	return x.judge(ctx)
}

// open opens the database of a disk, with or without making space ahead.
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
