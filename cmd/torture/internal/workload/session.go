package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/oracle"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// Dir is the directory of the database.
const Dir = "db"

// Options configures a Session.
type Options struct {
	// Seed determines every step. The databases of odd seeds use engine.CompressSmall. The
	// default is seed 0.
	Seed uint64
	// Profile is the distribution of the kinds of steps. The default is Mixed.
	Profile Profile
	// NoSync opens the database without syncs. The default is to sync.
	NoSync bool
	// Wrap returns the file system of the database on a disk. The default is the
	// disk itself.
	Wrap func(*vfs.Mem) vfs.FS
	// Rule fails operations on the file system of Wrap. Steps may fail if it is
	// set. The default fails nothing.
	Rule errorfs.Rule
	// Attach is called with each disk before it is used. The default does
	// nothing.
	Attach func(*vfs.Mem)
	// Store returns the store of the steps on a database. The default is the
	// database itself.
	Store func(store.Store) store.Store
	// Cache is the cache of the session's databases. The default is a new one.
	Cache *engine.Cache
}

// Session is a database with its oracle.
type Session struct {
	o     Options
	rng   *rand.Rand
	clock *Clock
	gate  gate

	Disk *vfs.Mem
	FS   *errorfs.FS
	DB   *engine.DB
	via  store.Store // for writes

	State *oracle.State
	Head  *oracle.Commit // the last acknowledged commit
	// Unknown has the commits of unknown outcome, in their order. After the first of
	// them, the database must refuse all writes.
	Unknown []Pending
	// Refused is set once the database refuses all writes.
	Refused bool

	floor  *oracle.Commit // with NoSync: the last durable commit
	epoch  *Epoch
	steps  int
	What   string // the current step
	copies int
}

// Epoch is the time between two steps.
type Epoch struct {
	low  *oracle.Commit
	head *oracle.Commit // acknowledged before its start, durable or not
	high *oracle.Commit // set at its end
	acks atomic.Int64   // commits after low that have been acknowledged
	What string
	// Checkpoint is the directory of a running checkpoint.
	Checkpoint string
}

// Instant is a point of an Epoch.
type Instant struct {
	epoch *Epoch
	acks  int64
}

// What returns the description of the step.
func (m Instant) What() string { return m.epoch.What }

// Checkpoint returns the directory of a running checkpoint, or "".
func (m Instant) Checkpoint() string { return m.epoch.Checkpoint }

// Issued returns the largest Timestamp that was returned before m, even if a crash can lose
// its commit.
func (m Instant) Issued() edm.Ticks { return m.epoch.head.MaxTick }

// Window returns the states that a crash at m may lead to. Call it after the end of the step
// of m.
func (m Instant) Window() oracle.Window {
	w := oracle.Window{Low: m.epoch.high, High: m.epoch.high}
	for w.Low.Number > m.epoch.low.Number+int(m.acks) {
		w.Low = w.Low.Before
	}
	return w
}

// New returns a session with an empty disk that tracks crashes.
func New(o Options) *Session {
	if o.Cache == nil {
		o.Cache = NewCache()
	}
	root := &oracle.Commit{What: "new database"}
	return &Session{
		o: o, rng: rand.New(rand.NewPCG(o.Seed, 0x746f7274)), clock: NewClock(),
		Disk: vfs.NewCrashMem(), State: oracle.NewState(), Head: root, floor: root,
	}
}

// Start creates the database. Its creation is the first Epoch.
func (s *Session) Start() error {
	s.begin("open")
	if err := s.open(); err != nil {
		return s.stopped(err)
	}
	s.end()
	return nil
}

// stopped returns the error for a database that could not be opened.
func (s *Session) stopped(err error) error {
	s.DB = nil
	if s.strict() || errors.Is(err, store.ErrCorrupt) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrStopped, err)
}

// Instant returns the current point. A hook of the disk calls it.
func (s *Session) Instant() Instant { return Instant{s.epoch, s.epoch.acks.Load()} }

func (s *Session) begin(what string) {
	s.What = what
	low := s.Head
	if s.o.NoSync {
		low = s.floor
	}
	s.epoch = &Epoch{low: low, head: s.Head, What: fmt.Sprintf("step %d, %s", s.steps, what)}
}

func (s *Session) end() {
	s.epoch.high = s.Head
	s.begin("between steps")
	s.epoch.high = s.Head
}

// strict reports whether no operation may fail.
func (s *Session) strict() bool { return s.o.Rule == nil }

// NewCache returns a cache for the small databases of one run. They share it, because
// creating one costs more than a small database.
func NewCache() *engine.Cache { return engine.NewCache(4 << 20) }

// EngineOptions returns the options of a small database.
func EngineOptions(fs vfs.FS, clock engine.Clock, cache *engine.Cache) engine.Options {
	return engine.Options{
		FS: fs, Cache: cache, SegmentBytes: 64 << 10, FileBytes: 64 << 10, TierRuns: 2,
		Testing: engine.TestHooks{Manual: true, Clock: clock, Random: zeros{}},
	}
}

// zeros gives all databases the same id, so that after a crash only numbers and offsets
// distinguish old data from new.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// open opens the database on the current disk.
func (s *Session) open() error {
	if s.o.Attach != nil {
		s.o.Attach(s.Disk)
	}
	under := vfs.FS(s.Disk)
	if s.o.Wrap != nil {
		under = s.o.Wrap(s.Disk)
	}
	s.FS = errorfs.Wrap(under, func(op vfs.Op) *errorfs.Fault {
		fault := s.gate.rule(op)
		if s.o.Rule != nil {
			fault = cmp.Or(fault, s.o.Rule(op))
		}
		return fault
	})
	o := EngineOptions(s.FS, s.clock, s.o.Cache)
	o.NoSync = s.o.NoSync
	if s.o.Seed%2 == 1 {
		o.Compression = engine.CompressSmall
	}
	db, err := engine.Open(Dir, o)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	s.DB, s.via = db, db
	if s.o.Store != nil {
		s.via = s.o.Store(db)
	}
	return nil
}

// Abandon closes the database without calling the hook of the disk. Do not use the disk
// afterwards.
func (s *Session) Abandon() {
	if s.DB == nil {
		return
	}
	s.Disk.OnOp(nil)
	s.FS.SetRule(nil)
	_ = s.closeDB(context.Background(), false) // the disk is discarded
	s.DB = nil
}

// ReplaceDisk continues with another disk, whose database is in the state of head.
func (s *Session) ReplaceDisk(ctx context.Context, disk *vfs.Mem, head *oracle.Commit) error {
	s.Abandon()
	s.Disk, s.Head, s.floor, s.State = disk, head, head, head.State()
	s.begin("open after a crash")
	if err := s.open(); err != nil {
		return err
	}
	s.end()
	return s.Check(ctx)
}

// Check compares the whole database with the oracle.
func (s *Session) Check(ctx context.Context) error {
	got, err := oracle.Scan(ctx, s.DB)
	if err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	if got.Sum != s.State.Sum() {
		return fmt.Errorf("%w: %s", ErrDiffers, s.diff(ctx))
	}
	return nil
}

func (s *Session) diff(ctx context.Context) string {
	got, err := oracle.Load(ctx, s.DB)
	if err != nil {
		return err.Error()
	}
	return s.State.Diff(got)
}

// commit records an acknowledged commit.
func (s *Session) commit(what string, effects []oracle.Effect) error {
	if len(s.Unknown) > 0 || s.Refused {
		return fmt.Errorf("%s was acknowledged after an unknown outcome", what)
	}
	for _, e := range effects {
		s.State.Apply(e)
	}
	s.Head = s.Head.Next(s.State, what, effects)
	return nil
}

// failed checks an error that the oracle does not expect. It returns nil if the error is
// allowed.
func (s *Session) failed(what string, p Pending, err error) error {
	if s.strict() {
		return fmt.Errorf("%s: %w", what, err)
	}
	switch {
	case errors.Is(err, store.ErrOutcomeUnknown):
		if p.Effects != nil {
			s.Unknown = append(s.Unknown, p)
		}
		s.Refused = true
	case errors.Is(err, store.ErrEntityExists), errors.Is(err, store.ErrEntityNotFound), errors.Is(err, store.ErrPrecondition),
		errors.Is(err, store.ErrTableExists), errors.Is(err, store.ErrTableNotFound):
		return fmt.Errorf("%s: refused for a wrong reason: %w", what, err)
	case errors.Is(err, store.ErrCorrupt):
		return fmt.Errorf("%s: a failure of the disk was reported as damage: %w", what, err)
	}
	return nil
}

// Pending is a commit of unknown outcome. Its Timestamps are not known.
type Pending struct {
	What    string
	Effects []oracle.Effect
}

// Outcomes returns the commit of a database with contents got: Head, or Head with the first
// few unknown commits. It returns nil if got is none of them.
func (s *Session) Outcomes(got *oracle.State) *oracle.Commit {
	at, state := s.Head, s.Head.State()
	for i := 0; ; i++ {
		if state.Sum() == got.Sum() {
			return at
		}
		if i == len(s.Unknown) {
			return nil
		}
		effects := withTicks(s.Unknown[i].Effects, got)
		for _, e := range effects {
			state.Apply(e)
		}
		at = at.Next(state, s.Unknown[i].What, effects)
	}
}

// withTicks returns effects with the Timestamps in got, where they are possible.
func withTicks(effects []oracle.Effect, got *oracle.State) []oracle.Effect {
	out := append([]oracle.Effect(nil), effects...)
	for i := range out {
		e := &out[i]
		t := got.Table(e.Table)
		if t == nil {
			continue
		}
		switch e.Kind {
		case oracle.Put:
			if row, ok := t.Rows[e.Entity.Key]; ok {
				e.Entity.Timestamp = row.Timestamp
			}
		case oracle.Create:
			e.Info.Created = t.Info.Created
		case oracle.Remove, oracle.Drop, oracle.SetMeta:
		}
	}
	return out
}

// tick moves the clock forward, back or not at all.
func (s *Session) tick() {
	switch s.rng.IntN(20) {
	case 0:
		s.clock.Move(-edm.Ticks(s.rng.Int64N(1e13)))
	case 1, 2, 3:
	default:
		s.clock.Move(edm.Ticks(s.rng.Int64N(1e6)))
	}
}
