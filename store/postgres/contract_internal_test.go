package postgres

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres/pgtest"
	"github.com/tablerock-db/tablerock/store/storetest"
)

// contract is a server whose accounts are the stores of storetest.
type contract struct {
	server   *pgtest.Server
	d        *Database
	accounts atomic.Int64
	clock    pausedClock
}

// pausedClock is a clock that can be stopped for a while. It is late by that time then.
type pausedClock struct {
	mu      sync.Mutex
	late    time.Duration
	stopped time.Time // zero while it runs
}

func (c *pausedClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped.IsZero() {
		return c.stopped
	}
	return time.Now().Add(-c.late)
}

func (c *pausedClock) stop() {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = now
}

func (c *pausedClock) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.late, c.stopped = time.Since(c.stopped), time.Time{}
}

// TestContract tests the contract of package store. It skips the tests of what this backend
// does not promise: that the rows of a walk are of one time, and that it is read-only after a
// failed sync, of which PostgreSQL has none: it ends, and recovers. A loss of power is Kill
// and what the kernel has not synced, which is the promise of fsync alone.
func TestContract(t *testing.T) {
	if testing.Short() {
		t.Skip("half a minute, and minutes with the race detector")
	}
	c := &contract{server: pgtest.Start(t)}
	url := c.server.NewDatabase(t)
	o := &Options{AllowAsync: true, now: c.clock.now}
	if err := Init(t.Context(), url, o); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.d, err = Connect(t.Context(), url, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.d.Close(); err != nil {
			t.Error(err)
		}
	})
	storetest.Run(t, storetest.Backend{
		Open: func(tb testing.TB) store.Store { return c.account(tb, fmt.Sprintf("a%d", c.accounts.Add(1))) },
		Reopen: func(tb testing.TB, s store.Store) store.Store {
			if err := s.Close(); err != nil {
				tb.Error(err)
			}
			return c.account(tb, nameOf(s))
		},
		Kill:     c.kill,
		HoldSync: c.hold,
	})
}

func nameOf(s store.Store) string { return string(s.(*Store).account) }

// account returns the store of an account.
func (c *contract) account(tb testing.TB, name string) store.Store {
	tb.Helper()
	s, err := c.d.Account(context.Background(), name)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// kill ends all processes of the server and starts it again. The Database finds it by
// itself.
func (c *contract) kill(tb testing.TB, s store.Store) store.Store {
	tb.Helper()
	c.server.Kill(tb)
	c.server.Restart(tb)
	deadline := time.After(time.Minute)
	for {
		err := c.d.Ping(context.Background())
		if err == nil {
			return c.account(tb, nameOf(s))
		}
		select {
		case <-deadline:
			tb.Fatalf("a minute after the restart of the server: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// ownWork matches the commits that are of no call: of the heartbeat and the sweeper.
const ownWork = `query LIKE 'UPDATE tr_clock%' OR query LIKE 'WITH l AS (SELECT id FROM tr_dead%' OR query LIKE 'DELETE FROM tr_dead%'`

// hold makes commits wait for a standby that does not exist. The clock stops meanwhile: on a busy
// machine the last beat would become too old, because no other one is acknowledged.
func (c *contract) hold(tb testing.TB, _ store.Store) storetest.Hold {
	tb.Helper()
	c.clock.stop()
	c.server.SetSynchronousStandbys(tb, "nobody")
	held, stop, stopped := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			waiting := c.server.Exec(tb, "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND NOT ("+ownWork+")")
			if len(waiting) > 0 {
				close(held)
				return
			}
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	return storetest.Hold{Held: held, Release: func(error) {
		close(stop)
		<-stopped
		c.server.SetSynchronousStandbys(tb, "")
		c.clock.start()
	}}
}
