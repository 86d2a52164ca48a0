package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres/internal/wire"
)

// A Timestamp is the base of tr_clock plus the next number of the sequence tr_tick, whatever
// clocks do. The base never decreases, and each statement reads it in its own snapshot before it takes
// a number. So two Timestamps are equal only if the base was raised after one statement began,
// and as many numbers were taken before that statement took its own. The base is raised by at
// least a million ticks. So this needs a statement that waits for rows while others take a million
// numbers; lock_timeout limits each wait to 10 s.
//
// A statement that overwrites an entity takes its number when it has locked the row. If the base
// was raised meanwhile, the Timestamp can be below the stored one; then the statement fails
// with a division by zero, and the batch is repeated with its rows locked first. The stored Timestamp plus one would not do: another
// statement may have taken this number, and insert the key again after a deletion.
//
// A statement that inserts an entity takes its number before PostgreSQL looks for the key, and may wait for
// locks then. If the key is in its snapshot and gone after the wait, it fails in the same way, since versions
// of the key may have come and gone meanwhile. One that inserts several entities takes a number before each
// of them, and fails if the base was raised meanwhile.
//
// A beat raises the base to the clock of the server, minus the last number, once a second; so
// a Timestamp is at most about that much behind the clock. Both the base and the numbers are
// in the log of PostgreSQL before a commit that depends on them, so a new primary continues them
// even if its clock is behind. A clock that is ahead raises the base for good; so a beat
// raises it at most to maxAhead beyond the clock of its own process.
//
// A beat is also the proof that the server is the primary: its commit waits for the standby.
//
// A transaction that stays open for hours, such as pg_dump, keeps a dead version of the row of tr_clock for each
// beat. A scan of the table passes all of them: 40,000 make an upsert ten times as expensive. So a statement
// reads the base from the end of the index, where the live version is, since the base only increases.

const (
	beatInterval = time.Second
	// beatLimit bounds the age of the last acknowledged beat for a read or a new write.
	beatLimit = 5 * time.Second
	// beatPatience is how long a beat can take before another connection looks for a new
	// primary.
	beatPatience = 2 * time.Second
	// beatRetry is the pause after a beat that failed.
	beatRetry = 250 * time.Millisecond
	// firstBeat limits the beat of Connect.
	firstBeat = 10 * time.Second
	maxAhead  = time.Minute
)

// leastRaise is the number of ticks by which the base is raised at least.
const leastRaise = "1000000"

// clockSQL is the clock of the server in ticks.
const clockSQL = "((extract(epoch FROM clock_timestamp()) * 10000000)::bigint + 116444736000000000)"

// baseSQL reads the base.
const baseSQL = "(SELECT base FROM tr_clock ORDER BY base DESC LIMIT 1)"

// clockRow is a row with the base, for the FROM of a statement.
const clockRow = baseSQL + " AS c"

// tickSQL is the Timestamp of a write, in a statement that has clockRow.
const tickSQL = "c.base + nextval('tr_tick')"

// tickNow is the same in a statement without clockRow. The number is not in the subquery,
// which PostgreSQL executes once for a statement.
const tickNow = "(" + baseSQL + " + nextval('tr_tick'))"

// tickAbove is the same for an update of e, whose Timestamp must increase.
const tickAbove = "CASE WHEN e.ts < " + tickSQL + " THEN " + tickSQL + " ELSE 1 / (e.ts - e.ts) END"

// beatSQL changes no row of tables that a newer program has upgraded while this one runs. A beat that waited for another one
// finds the row too, whose base is greater by then.
var beatSQL = "UPDATE tr_clock AS c SET base = CASE WHEN least(" + clockSQL + ", $1) - nextval('tr_tick') > c.base + " + leastRaise + " THEN least(" +
	clockSQL + ", $1) - nextval('tr_tick') ELSE c.base END WHERE c.base >= " + baseSQL + " AND (SELECT version FROM tr_version) BETWEEN " +
	strconv.Itoa(oldestVersion) + " AND " + strconv.Itoa(schemaVersion) + " RETURNING " + clockSQL

var (
	// beatHere is for PostgreSQL: it identifies the server and says whether commits wait.
	beatHere  = wire.NewStatement("beat", 3, beatSQL+", current_setting('synchronous_standby_names'), "+wire.ServerSQL, wire.OIDInt8)
	beatThere = wire.NewStatement("beat_any", 1, beatSQL, wire.OIDInt8)
)

var (
	errServer    = errors.New("the connection is to another server than the last heartbeat")
	errNoBeat    = errors.New("the server has not acknowledged a commit for more than 5 s")
	errFirstBeat = fmt.Errorf("the server has not acknowledged a commit within %s: it may wait for a synchronous standby that does not run", firstBeat)
	errStandbys  = fmt.Errorf("since a moment ago %w", wire.ErrNoStandby)
)

// heart is what is known of the primary.
type heart struct {
	now    func() time.Time
	server atomic.Pointer[string] // that acknowledged the last beat
	sent   atomic.Pointer[time.Time]
	woken  chan struct{}

	mu sync.Mutex
	// +checklocks:mu
	beaten chan struct{} // closed after each beat, also a failed one
	// +checklocks:mu
	failed error // of the last beat
}

func (h *heart) init(now func() time.Time) {
	h.now = now
	h.woken = make(chan struct{}, 1)
	h.mu.Lock()
	h.beaten = make(chan struct{})
	h.mu.Unlock()
}

// age returns the time since the last acknowledged beat was sent.
func (h *heart) age() time.Duration {
	if at := h.sent.Load(); at != nil {
		return h.now().Sub(*at)
	}
	return beatLimit + 1
}

// fresh returns an error if the last acknowledged beat is too old.
func (h *heart) fresh() error {
	if h.age() <= beatLimit {
		return nil
	}
	h.mu.Lock()
	failed := h.failed
	h.mu.Unlock()
	if failed != nil {
		return fmt.Errorf("%w: %w: %w", store.ErrUnavailable, errNoBeat, failed)
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, errNoBeat)
}

// check returns an error unless c is a connection to the primary, as far as is known.
func (h *heart) check(c *wire.Conn) error {
	if err := h.fresh(); err != nil {
		return err
	}
	if server := h.server.Load(); server == nil || *server != c.Server {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, errServer)
	}
	return nil
}

// wake makes the next beat start.
func (h *heart) wake() {
	select {
	case h.woken <- struct{}{}:
	default:
	}
}

// wait wakes the heart and waits for the end of a beat.
func (h *heart) wait(ctx context.Context) error {
	h.mu.Lock()
	beaten := h.beaten
	h.mu.Unlock()
	h.wake()
	t := time.NewTimer(beatLimit)
	defer t.Stop()
	select {
	case <-beaten:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return fmt.Errorf("%w: %w", store.ErrUnavailable, errNoBeat)
	}
}

// fail records why a beat has no answer yet, and returns the previous failure.
func (h *heart) fail(err error) (before error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before, h.failed = h.failed, err
	return before
}

// done records the end of a beat, and returns the previous failure.
func (h *heart) done(err error) (before error) {
	before = h.fail(err)
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.beaten)
	h.beaten = make(chan struct{})
	return before
}

// beat makes one beat over c.
func (d *Database) beat(ctx context.Context, c *wire.Conn) error {
	s := beatThere
	if d.kind == wire.PostgreSQL {
		s = beatHere
	}
	sent := d.heart.now()
	limit := edm.TicksOf(sent.Add(maxAhead))
	c.Queue(s, wire.Int8Arg(int64(limit)))
	var clock int64
	standbys, server := "", c.Server
	rows, err := c.RoundTrip(ctx, func(_ int, values [][]byte) (err error) {
		if clock, err = wire.Int8Of(values[0]); err == nil && s == beatHere {
			standbys, server = string(values[1]), string(values[2])
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case c.Warning != nil:
		return fmt.Errorf("the beat was committed without a standby: %w", c.Warning)
	case len(rows) != 1 || rows[0] != 1:
		return d.refuse(cmp.Or(checkSchema(ctx, c), damaged("tr_clock")))
	case s == beatHere && standbys == "" && !d.async:
		return d.refuse(errStandbys)
	}
	if ahead := clock - int64(limit); ahead > 0 {
		d.log.Warn("the clock of the database is far ahead of this machine's; Timestamps do not follow it",
			slog.Duration("ahead", maxAhead+time.Duration(ahead)*100))
	}
	c.Server = server
	old := d.heart.server.Swap(&server)
	d.heart.sent.Store(&sent)
	if old != nil && *old != server {
		d.failovers.Add(1)
		d.log.Info("the database has another primary, or was restarted", slog.String("server", server))
		d.pool.Reset(server)
	}
	return nil
}

// logDown is the message when calls are going to be refused.
const logDown = "the database does not answer"

// refuse refuses calls from now on, not only after beatLimit, with the reason err, which it returns.
func (d *Database) refuse(err error) error {
	d.fail(err)
	d.heart.sent.Store(nil)
	return err
}

// fail records and logs why a beat has no answer yet.
func (d *Database) fail(err error) {
	if before := d.heart.fail(err); before == nil {
		d.log.Warn(logDown, slog.Any("error", err))
	}
}

// beatLoop beats until ctx ends. It owns c.
func (d *Database) beatLoop(ctx context.Context, c *wire.Conn) {
	pause := time.NewTimer(beatInterval)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			if c != nil {
				c.Close()
			}
			return
		case <-pause.C:
		case <-d.heart.woken:
		}
		var err error
		if c, err = d.beatOrMove(ctx, c); ctx.Err() != nil {
			continue
		}
		next := beatInterval
		if err != nil {
			next = beatRetry
		}
		if before := d.heart.done(err); err != nil && before == nil {
			d.log.Warn(logDown, slog.Any("error", err))
		} else if err == nil && before != nil {
			d.log.Info("the database answers again")
		}
		d.pool.Trim()
		pause.Reset(next)
	}
}

// beatOrMove beats over c, or over a new connection if c is nil, is lost, or is to a server that is no longer
// the primary. It returns the connection to use next, nil if there is none.
func (d *Database) beatOrMove(ctx context.Context, c *wire.Conn) (*wire.Conn, error) {
	if c == nil {
		var err error
		if c, err = d.connectToBeat(ctx); err != nil {
			return nil, err
		}
	}
	for {
		moved, err := d.beatUntilMoved(ctx, c)
		if moved != nil {
			c = moved
			continue
		}
		if err != nil {
			c.Close()
			return nil, err
		}
		return c, nil
	}
}

// beatUntilMoved beats over c and waits for the answer as long as c is to the primary. If a
// new connection finds another server, it returns that connection. A beat that waits for a
// standby is not given up for another beat to the same server, which would wait too.
func (d *Database) beatUntilMoved(ctx context.Context, c *wire.Conn) (moved *wire.Conn, err error) {
	server := c.Server // before the beat, which sets it
	answer := make(chan error, 1)
	go func() { answer <- d.beat(context.WithoutCancel(ctx), c) }()
	probe := time.NewTicker(beatPatience)
	defer probe.Stop()
	for {
		select {
		case err := <-answer:
			return nil, err
		case <-ctx.Done():
			c.Abandon()
			return nil, <-answer
		case <-probe.C:
		}
		other, err := d.dialer.ConnectOther(ctx, server)
		if err != nil {
			// The beat can wait for a standby for hours, while calls are refused.
			d.fail(err)
			continue
		}
		c.Abandon()
		<-answer
		return other, nil
	}
}

// connectToBeat connects to another server than the one that has not acknowledged a beat
// for beatLimit, if there is one. A primary whose agent is stopped comes before its
// successor if the URL names it first. If the server has no connection left, the pool gives one up for the next attempt:
// without a beat the others are of no use.
func (d *Database) connectToBeat(ctx context.Context) (*wire.Conn, error) {
	if last := d.heart.server.Load(); last != nil && d.heart.age() > beatLimit {
		if c, err := d.dialer.ConnectOther(ctx, *last); err == nil {
			return c, nil
		}
	}
	c, err := d.dialer.Connect(ctx)
	if wire.NoneLeft(err) {
		d.pool.CloseIdle()
	}
	return c, err
}
