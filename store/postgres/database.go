package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres/internal/layout"
	"github.com/tablerock-db/tablerock/store/postgres/internal/reindex"
	"github.com/tablerock-db/tablerock/store/postgres/internal/wire"
)

// Options are the options of Connect and Init. Nil means the zero Options.
type Options struct {
	// AllowAsync accepts a server whose commits do not wait for a standby, or that does not
	// show whether they do, and a pooler of connections. A failover then can lose acknowledged writes.
	AllowAsync bool
	// MaxConns limits the connections of the pool; 0 means 32. One more is for the
	// heartbeat, and one for rebuilds of the index.
	MaxConns int
	// Log receives events of the background work, never a secret. Nil means none.
	Log *slog.Logger

	now    func() time.Time // of a test; nil: systemClock
	manual bool             // of Sweep and of tests: no sweeper and no rebuilds in the background
}

// clock returns the clock of the process, or of a test.
func (o *Options) clock() func() time.Time {
	if o.now != nil {
		return o.now
	}
	return systemClock
}

// Database is a connection to a database with the entities of many accounts. Its methods are
// safe for concurrent use.
type Database struct {
	dialer *wire.Dialer
	async  bool // Options.AllowAsync
	pool   *wire.Pool
	kind   wire.Kind
	log    *slog.Logger
	heart  heart
	shapes layout.Shapes

	retries, unknowns, failovers atomic.Uint64
	index                        reindex.Figures
	sample                       atomic.Pointer[Sample]

	cancel     context.CancelFunc // ends the background work
	background sync.WaitGroup
	closing    sync.Once
}

// OtherConns is the number of connections of a Database beside those of Options.MaxConns.
const OtherConns = 2

// Stats are figures of a Database.
type Stats struct {
	Conns, IdleConns, MaxConns int
	RoundTrips                 uint64        // to the server
	Retries                    uint64        // of transactions and reads
	UnknownOutcomes            uint64        // writes that returned store.ErrOutcomeUnknown
	Failovers                  uint64        // changes of the server, restarts included
	Heartbeat                  time.Duration // since the server acknowledged a commit
	NewIndexBytes              int64         // of the index of the keys if it were new, estimated; 0 until it is known
	Rebuilds                   uint64        // of this index by this process
	Sample                     Sample        // zero until it is taken
}

// Sample has the sizes of the database at one time.
type Sample struct {
	Time          time.Time
	LiveRows      int64 // estimates of PostgreSQL
	DeadRows      int64
	TableBytes    int64 // of the entities, without indexes
	IndexBytes    int64
	DroppedTables int64 // that the sweeper has not finished
}

// Connect connects to a database that Init has prepared. It returns an error that wraps store.ErrUnavailable
// if the server cannot be reached or refuses the connection, store.ErrNotDatabase if it has no schema or
// its encoding is not UTF8, and store.ErrNewerFormat if the schema is newer. The URL is that of libpq, such as
// postgres://USER@HOST1,HOST2/DATABASE; with several hosts, the first is used that accepts
// writes. Passwords can be in a file (PGPASSFILE) or in a service file.
func Connect(ctx context.Context, url string, o *Options) (*Database, error) {
	if o == nil {
		o = &Options{}
	}
	dialer, err := wire.NewDialer(url, o.AllowAsync, o.clock())
	if err != nil {
		return nil, err
	}
	c, err := dialer.Connect(ctx)
	if err != nil {
		return nil, err
	}
	d := &Database{dialer: dialer, async: o.AllowAsync, pool: wire.NewPool(o.MaxConns, o.clock(), dialer.Connect), log: o.Log}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	d.heart.init(o.clock())
	if err := d.adopt(ctx, c); err != nil {
		c.Close()
		return nil, err
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	d.cancel = cancel
	d.start(func() { d.beatLoop(run, c) })
	if !o.manual {
		d.start(func() { d.sweepLoop(run) })
		if d.kind == wire.PostgreSQL {
			d.start(func() { d.rebuildLoop(run) })
		}
	}
	return d, nil
}

// adopt checks the database on its first connection, and makes the first beat.
func (d *Database) adopt(ctx context.Context, c *wire.Conn) (err error) {
	if d.kind, err = wire.KindOf(ctx, c); err != nil {
		return wire.ConnectError(ctx, err)
	}
	if err := checkEncoding(ctx, c); err != nil {
		return failure(err, false)
	}
	if err := checkSchema(ctx, c); err != nil {
		return failure(err, false)
	}
	if version, err := schemaOf(ctx, c); err == nil && version < schemaVersion {
		d.log.Warn("the tables are of an older version; when all servers run this version of the program, run: tablerock backend init URL",
			slog.Int("version", version), slog.Int("newest", schemaVersion))
	}
	limited, cancel := context.WithTimeout(ctx, firstBeat)
	defer cancel()
	err = d.beat(limited, c)
	if limited.Err() != nil && ctx.Err() == nil && err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, errFirstBeat)
	}
	return failure(err, false)
}

// start runs f in the background until Close, which waits for it.
func (d *Database) start(f func()) {
	d.background.Go(f)
}

// rebuilder returns what rebuilds the index, as a server of its own.
func (d *Database) rebuilder() *reindex.Rebuilder {
	return &reindex.Rebuilder{Read: d.read, Connect: d.dialer.Connect, Check: d.heart.check, Now: d.heart.now, Log: d.log, Figures: &d.index}
}

// rebuildLoop looks at the index until ctx ends.
func (d *Database) rebuildLoop(ctx context.Context) {
	r := d.rebuilder()
	defer r.Release()
	failed := false
	for wait(ctx, reindex.Interval) == nil {
		err := r.Run(ctx)
		if err != nil && !failed && ctx.Err() == nil {
			d.log.Warn("the index of the entities cannot be rebuilt", slog.Any("error", err))
		}
		failed = err != nil
	}
}

// Account returns the store of an account, which it registers at its first use. Each call
// returns another Store. Its Close does not close the Database.
func (d *Database) Account(ctx context.Context, name string) (*Store, error) {
	s := &Store{db: d, account: []byte(name)}
	err := s.read(ctx, func(c *wire.Conn) error { return s.register(ctx, c) })
	if err != nil {
		return nil, err
	}
	return s, nil
}

// readNothing fails if a table of the schema is missing, or if the user must not read it.
var readNothing = wire.NewStatement("ping", 1,
	"SELECT 1 FROM tr_version, tr_accounts, tr_tables, tr_dead, tr_entities, tr_long, tr_clock, tr_tick WHERE false")

// Ping returns nil if the server is ready: it has the tables, and it acknowledged a commit within the
// last seconds.
func (d *Database) Ping(ctx context.Context) error {
	err := d.read(ctx, func(c *wire.Conn) error {
		c.Queue(readNothing)
		_, err := c.RoundTrip(ctx, nil)
		return err
	})
	if err == nil || ctx.Err() != nil || errors.Is(err, store.ErrClosed) || errors.Is(err, store.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
}

// Stats returns figures of the database.
func (d *Database) Stats() Stats {
	s := Stats{
		RoundTrips: d.dialer.Trips.Load(), Retries: d.retries.Load(), UnknownOutcomes: d.unknowns.Load(), Failovers: d.failovers.Load(),
		Heartbeat: d.heart.age(), NewIndexBytes: d.index.NewBytes.Load(), Rebuilds: d.index.Rebuilds.Load(),
	}
	s.Conns, s.IdleConns, s.MaxConns = d.pool.Counts()
	if sample := d.sample.Load(); sample != nil {
		s.Sample = *sample
	}
	return s
}

// Close closes all connections and ends the background work. Close the stores first: a
// write that runs has an unknown outcome. A second Close returns nil.
func (d *Database) Close() error {
	d.closing.Do(func() {
		d.cancel()
		d.pool.Close()
		d.background.Wait()
	})
	return nil
}

const (
	// maxTries limits how often a read or a transaction runs.
	maxTries = 30
	// readTries limits how many connections a read tries.
	readTries = 4
)

// read calls f with a connection to the primary. It calls f again, with another connection, if a
// connection is lost or another transaction was in the way. f must not write.
func (d *Database) read(ctx context.Context, f func(c *wire.Conn) error) error {
	for try := 1; ; try++ {
		c, err := d.acquire(ctx)
		if err != nil {
			return err
		}
		err = f(c)
		if err == nil || isOurs(err) {
			// The server may have stopped for a while before it answered, also that it does
			// not have a row.
			if stale := d.heart.check(c); stale != nil {
				err = stale
			}
		}
		c.Rollback(ctx)
		d.pool.Release(c)
		if err == nil || try == readTries || ctx.Err() != nil || !d.again(err) {
			return failure(err, false)
		}
	}
}

// again reports whether a read, or a flight that cannot commit, can run again after err.
func (d *Database) again(err error) bool {
	d.demoted(err)
	var lost *wire.LostError
	if !errors.As(err, &lost) && !wire.Transient(err) && !errors.Is(err, errServer) && !wire.ShutsDown(err) {
		return false
	}
	d.retries.Add(1)
	return true
}

// demoted drops all connections if err says that the server accepts no more writes.
func (d *Database) demoted(err error) {
	if wire.CodeOf(err) == "25006" {
		d.pool.Reset("")
		d.heart.wake()
	}
}

// Acquire returns a connection to the server that acknowledged the last beat. Give it back
// to d.pool.
func (d *Database) acquire(ctx context.Context) (*wire.Conn, error) {
	for try := 1; ; try++ {
		// A connection to a server that hangs would not be tried before ctx ends.
		if err := d.heart.fresh(); err != nil && !d.pool.Closed() {
			return nil, err
		}
		c, err := d.pool.Acquire(ctx)
		if err != nil {
			if errors.Is(err, store.ErrClosed) || ctx.Err() != nil {
				return nil, err
			}
			return nil, failure(err, false)
		}
		err = d.heart.check(c)
		if err == nil {
			return c, nil
		}
		d.pool.Release(c)
		if !errors.Is(err, errServer) || try == readTries {
			return nil, err
		}
		// The heartbeat or the connection is the older one. After the next beat it
		// is the connection.
		if err := d.heart.wait(ctx); err != nil {
			return nil, err
		}
	}
}
