package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres/internal/wire"
	"github.com/tablerock-db/tablerock/store/postgres/pgtest"
)

// patience limits the time of one step of a test.
const patience = time.Minute

// await polls until done returns true.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not after %v", what, patience)
		case <-tick.C:
		}
	}
}

// one returns an entity of the partition p.
func one(r string, n int32) edm.Entity {
	return edm.Entity{Key: edm.Key{Partition: "p", Row: r}, Properties: edm.Properties{{Name: "N", Value: edm.Int32(n)}}}
}

// holds reports whether the table people has the entity.
func (s *Store) holds(t *testing.T, r string) bool {
	t.Helper()
	_, err := s.Get(t.Context(), people, one(r, 0).Key)
	if err != nil && !errors.Is(err, store.ErrEntityNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

// apply executes ops on the table people.
func (s *Store) apply(t *testing.T, ops ...store.Op) []store.Result {
	t.Helper()
	r, err := s.Apply(t.Context(), people, ops...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestLostConnections ends a connection before the server gets a flight, or after it has
// executed it.
func TestLostConnections(t *testing.T) {
	t.Parallel()
	p := newProxy(t, pgtest.Shared(t).NewDatabase(t))
	s := openURL(t, p.url, &Options{AllowAsync: true, MaxConns: 2})
	if err := s.CreateTable(t.Context(), people); err != nil {
		t.Fatal(err)
	}
	apply := func(ops ...store.Op) func() error {
		return func() error { _, err := s.Apply(t.Context(), people, ops...); return err }
	}
	insert := func(r string) store.Op { return store.Insert(one(r, 1)) }
	s.apply(t, insert("merged"))
	merge := store.Merge(one("merged", 2), store.Any)
	for _, c := range []struct {
		name      string
		statement string
		action    action
		call      func() error
		want      error
		row       string // that is stored afterwards if stored is true
		stored    bool
	}{
		{"insert, no answer", "insert", mute, apply(insert("1")), store.ErrOutcomeUnknown, "1", true},
		{"insert, not received", "insert", drop, apply(insert("2")), store.ErrOutcomeUnknown, "2", false},
		{"inserts, no answer", "insert_many", mute, apply(insert("3"), insert("4")), store.ErrOutcomeUnknown, "4", true},
		{"inserts, not received", "insert_many", drop, apply(insert("5"), insert("6")), store.ErrOutcomeUnknown, "5", false},
		{"batch, commit without an answer", "commit", mute, apply(merge, insert("7")), store.ErrOutcomeUnknown, "7", true},
		{"batch, commit not received", "commit", drop, apply(merge, insert("8")), store.ErrOutcomeUnknown, "8", false},
		{"batch, first flight not received", "begin", drop, apply(merge, insert("9")), nil, "9", true},
		{"batch, first flight without an answer", "begin", mute, apply(merge, insert("10")), nil, "10", true},
		{"get, not received", "get", drop, func() error { _, err := s.Get(t.Context(), people, one("1", 1).Key); return err }, nil, "1", true},
		{"get, no answer", "get", mute, func() error { _, err := s.Get(t.Context(), people, one("1", 1).Key); return err }, nil, "1", true},
		{"create, no answer", "create", mute, func() error { return s.CreateTable(t.Context(), "Other") }, store.ErrOutcomeUnknown, "1", true},
		{"drop, not received", "drop", drop, func() error { return s.DeleteTable(t.Context(), "Other") }, store.ErrOutcomeUnknown, "1", true},
		{"metadata, no answer", "set_meta", mute, func() error { return s.SetTableMeta(t.Context(), "Other", []byte("m")) }, store.ErrOutcomeUnknown, "1", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p.once(c.statement, c.action)
			before := s.db.Stats().UnknownOutcomes
			if err := c.call(); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			unknown := s.db.Stats().UnknownOutcomes - before
			if (unknown == 1) != (c.want != nil) {
				t.Errorf("%d unknown outcomes are counted", unknown)
			}
			if got := s.holds(t, c.row); got != c.stored {
				t.Errorf("%s is stored: %v, want %v", c.row, got, c.stored)
			}
		})
	}
	if n := p.cancels.Load(); n != 0 {
		t.Errorf("%d CancelRequests were sent", n)
	}
}

// TestNoCancel loses the connection of an insert while its commit waits for a standby. The
// entity must stay invisible. An administrator who cancels the wait makes it visible, and
// the outcome unknown.
func TestNoCancel(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, "client_min_messages=error") // which hides the warning of the canceled wait
	database := server.NewDatabase(t)
	p := newProxy(t, database)
	// While no beat can be acknowledged, the last one must not become too old.
	start := time.Now()
	o := &Options{AllowAsync: true, now: func() time.Time { return start }}
	direct, s := openURL(t, database, o), openURL(t, p.url, o)
	if err := s.CreateTable(t.Context(), people); err != nil {
		t.Fatal(err)
	}
	server.SetSynchronousStandbys(t, "nobody")
	insert := func(r string) chan error {
		done := make(chan error, 1)
		go func() {
			_, err := s.Apply(context.WithoutCancel(t.Context()), people, store.Insert(one(r, 1)))
			done <- err
		}()
		await(t, "the commit waits", func() bool { return len(server.Exec(t, waiting)) == 1 })
		return done
	}
	lost := insert("lost")
	p.cut()
	if err := <-lost; !errors.Is(err, store.ErrOutcomeUnknown) {
		t.Errorf("insert over a lost connection: %v", err)
	}
	if direct.holds(t, "lost") {
		t.Error("an entity whose commit still waits for a standby is visible")
	}
	if n := p.cancels.Load(); n != 0 {
		t.Errorf("%d CancelRequests were sent", n)
	}
	server.Exec(t, strings.Replace(waiting, "SELECT pid", "SELECT pg_terminate_backend(pid)", 1))
	await(t, "the session ends", func() bool { return len(server.Exec(t, waiting)) == 0 })
	s.db.pool.Reset("") // a write over an idle connection that was cut has an unknown outcome
	canceled := insert("canceled")
	server.Exec(t, strings.Replace(waiting, "SELECT pid", "SELECT pg_cancel_backend(pid)", 1))
	if err := <-canceled; !errors.Is(err, store.ErrOutcomeUnknown) {
		t.Errorf("insert whose wait was canceled: %v, want %v", err, store.ErrOutcomeUnknown)
	}
	if !direct.holds(t, "canceled") {
		t.Error("a commit whose wait was canceled is not visible: the test sees nothing")
	}
	server.SetSynchronousStandbys(t, "")
}

const waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE 'INSERT INTO tr_entities%'"

// TestReadOnlyServer demotes the server behind a connection. Nothing happened, and the next
// call uses another connection.
func TestReadOnlyServer(t *testing.T) {
	t.Parallel()
	s := openOne(t)
	if err := s.CreateTable(t.Context(), people); err != nil {
		t.Fatal(err)
	}
	for _, ops := range [][]store.Op{{store.Insert(one("1", 1))}, {store.Insert(one("1", 1)), store.InsertOrMerge(one("2", 1))}} {
		s.run(t, "SET default_transaction_read_only = on")
		if _, err := s.Apply(t.Context(), people, ops...); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("Apply on a read-only server: %v, want %v", err, store.ErrUnavailable)
		}
	}
	s.apply(t, store.Insert(one("1", 1)))
}

// TestRestart kills the server and starts it again. The connections of the old one are
// not used, and Timestamps continue although the clock is behind their base.
func TestRestart(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	s := openURL(t, server.NewDatabase(t), &Options{AllowAsync: true})
	if err := s.CreateTable(t.Context(), people); err != nil {
		t.Fatal(err)
	}
	s.run(t, "UPDATE tr_clock SET base = base + 36000000000") // an hour
	first := s.apply(t, store.Insert(one("1", 1)))[0]
	s.apply(t, store.Delete(one("1", 1).Key, store.Any))
	server.Kill(t)
	if _, err := s.Get(t.Context(), people, one("1", 1).Key); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Get without a server: %v, want %v", err, store.ErrUnavailable)
	}
	server.Restart(t)
	await(t, "the server is back", func() bool { return s.Ping(t.Context()) == nil })
	if second := s.apply(t, store.Insert(one("1", 1)))[0]; second.Timestamp <= first.Timestamp {
		t.Errorf("Timestamp %v after %v", second, first)
	}
	if n := s.db.Stats().Failovers; n != 1 {
		t.Errorf("%d changes of the server, want 1", n)
	}
}

// TestSettings checks that a connection replaces settings of the database that would show
// commits before they are safe.
func TestSettings(t *testing.T) {
	t.Parallel()
	url := pgtest.Shared(t).NewDatabase(t)
	s := openURL(t, url, &Options{AllowAsync: true, MaxConns: 1})
	bad := map[string]string{
		"statement_timeout": "5s", "synchronous_commit": "off", "client_connection_check_interval": "1s", "lock_timeout": "0",
		"idle_in_transaction_session_timeout": "0", "default_transaction_isolation": "serializable",
		"plan_cache_mode": "force_custom_plan", "client_min_messages": "error",
	}
	want := map[string]string{
		"statement_timeout": "0", "synchronous_commit": "on", "client_connection_check_interval": "0", "lock_timeout": "10s",
		"idle_in_transaction_session_timeout": "10s", "default_transaction_isolation": "read committed",
		"plan_cache_mode": "force_generic_plan", "client_min_messages": "warning",
	}
	name := s.run(t, "SELECT current_database()")[0][0]
	for setting, value := range bad {
		s.run(t, "ALTER DATABASE "+name+" SET "+setting+" = '"+value+"'")
	}
	s.db.pool.Reset("")
	for setting, value := range want {
		if got := s.run(t, "SHOW "+setting)[0][0]; got != value {
			t.Errorf("%s is %s, want %s", setting, got, value)
		}
	}
}

// TestPooler connects over something that greets for another process than that which executes statements.
func TestPooler(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	p := newProxy(t, server.NewDatabase(t))
	server.SetSynchronousStandbys(t, "nobody")
	for _, c := range []struct {
		pooler, async bool
		want          error
	}{{false, false, nil}, {true, false, ErrPooler}, {true, true, nil}} {
		p.pooler.Store(c.pooler)
		d, err := wire.NewDialer(p.url, c.async, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := d.Connect(t.Context())
		if err == nil {
			conn.Close()
		}
		if !errors.Is(err, c.want) {
			t.Errorf("pooler %v, AllowAsync %v: %v, want %v", c.pooler, c.async, err, c.want)
		}
	}
	server.SetSynchronousStandbys(t, "")
}

// TestFullPool checks that a call that gets no connection is refused, and that a failed
// transaction gives its connection back clean.
func TestFullPool(t *testing.T) {
	t.Parallel()
	s := openOne(t)
	if err := s.CreateTable(t.Context(), people); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, err := s.Apply(t.Context(), people, store.Insert(one("1", 1)), store.Merge(one("2", 1), store.Any))
		if !errors.Is(err, store.ErrEntityNotFound) {
			t.Errorf("Apply: %v", err)
		}
	}
	err := s.db.read(t.Context(), func(*wire.Conn) error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := s.Get(ctx, people, one("1", 1).Key); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Get with a ctx that ends: %v", err)
		}
		_, err := s.Get(t.Context(), people, one("1", 1).Key)
		return err
	})
	if !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Get without a free connection: %v, want %v", err, store.ErrUnavailable)
	}
}

// TestNoSecrets checks that no error has the password of a URL.
func TestNoSecrets(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for _, url := range []string{
		"postgres://u:" + secret + "@127.0.0.1:1/db", "postgres://u:" + secret + "/x@127.0.0.1:1/db", "postgres://u:%zz" + secret + "@127.0.0.1/db",
		"postgres://u@127.0.0.1:x" + secret + "/db", secret, "postgres://u:" + secret + "@127.0.0.1:1/db?sslmode=" + secret,
		"postgres://u:" + secret + "@127.0.0.1:1/db?connect_timeout=x", "postgres://127.0.0.1:1/db?password=" + secret,
		"postgres://u:" + secret + "@no-such-host.invalid/db",
	} {
		_, err := Connect(t.Context(), url, nil)
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("Connect(%q): %v", url, err)
		}
	}
}

// TestInitOverLostConnections ends the connection of Init before a statement.
func TestInitOverLostConnections(t *testing.T) {
	t.Parallel()
	p := newProxy(t, pgtest.Shared(t).NewDatabase(t))
	for _, c := range []struct {
		statement string
		want      error
	}{{"SELECT version()\x00", store.ErrUnavailable}, {"FROM tr_version", store.ErrUnavailable}, {"CREATE TABLE tr_version", store.ErrOutcomeUnknown}, {"", nil}} {
		p.mu.Lock()
		last := 1
		if c.statement == "SELECT version()\x00" {
			last = 2 // the first one is of the connection
		}
		p.rule = func(flight []byte) action {
			if c.statement == "" || !strings.Contains(string(flight), c.statement) {
				return pass
			}
			if last--; last > 0 {
				return pass
			}
			p.rule = nil
			return drop
		}
		p.mu.Unlock()
		if err := Init(t.Context(), p.url, &Options{AllowAsync: true}); !errors.Is(err, c.want) {
			t.Errorf("Init without an answer to %q: %v, want %v", c.statement, err, c.want)
		}
	}
}
