package postgres

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres/pgtest"
)

// shiftedClock is the clock of a process that is wrong by some time.
type shiftedClock struct{ by atomic.Int64 }

func (c *shiftedClock) now() time.Time { return time.Now().Add(time.Duration(c.by.Load())) }

// TestTimestamps inserts and deletes an entity, and overwrites another, while the base of
// Timestamps is ahead of all clocks, and while the clock of the process goes back. No
// Timestamp comes twice.
func TestTimestamps(t *testing.T) {
	t.Parallel()
	var clock shiftedClock
	s := openURL(t, pgtest.Shared(t).NewDatabase(t), &Options{AllowAsync: true, now: clock.now})
	s.makeTable(t)
	s.apply(t, store.Insert(one("other", 0)))
	last := edm.Ticks(0)
	write := func(what string, ops ...store.Op) {
		for _, r := range s.apply(t, ops...) {
			if r.Timestamp == 0 {
				continue
			}
			if r.Timestamp <= last {
				t.Errorf("%s: Timestamp %v after %v", what, r.Timestamp, last)
			}
			last = r.Timestamp
		}
	}
	round := func(what string) {
		for range 20 {
			write(what, store.Insert(one("a", 1)))
			write(what, store.Delete(one("a", 1).Key, store.Any))
			write(what, store.InsertOrReplace(one("a", 1)))
			write(what, store.InsertOrReplace(one("a", 2)))
			write(what, store.Merge(one("a", 3), store.Any))
			write(what, store.Replace(one("a", 3), store.Any))
			write(what, store.Delete(one("a", 1).Key, store.Any), store.Insert(one("b", 1)))
			write(what, store.Delete(one("b", 1).Key, store.Any))
		}
	}
	round("at first")
	if ahead := time.Until(last.Time()); ahead.Abs() > time.Minute {
		t.Errorf("Timestamps are %v ahead of the clock", ahead)
	}
	s.run(t, "UPDATE tr_clock SET base = base + 36000000000") // an hour
	round("the base is an hour ahead")
	clock.by.Store(int64(-24 * time.Hour))
	round("the clock went back by a day")
	if err := s.db.heart.wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	round("after a beat with this clock")
}

// TestClockFarAhead gives the server a clock that is an hour ahead of the process's. The
// base follows it by a minute only.
func TestClockFarAhead(t *testing.T) {
	t.Parallel()
	var clock shiftedClock
	clock.by.Store(int64(-time.Hour))
	s := openURL(t, pgtest.Shared(t).NewDatabase(t), &Options{AllowAsync: true, now: clock.now})
	s.makeTable(t)
	got := s.apply(t, store.Insert(one("a", 1)))[0].Timestamp
	if ahead := got.Time().Sub(clock.now()); ahead > maxAhead+5*time.Second {
		t.Errorf("a Timestamp is %v ahead of the process's clock", ahead)
	}
}

// TestHeartbeat lets no commit become durable. Reads and writes are refused when the last
// beat is too old, and work again by themselves.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	// The clock is stopped: on a busy machine the last beat becomes too old by itself.
	start := time.Now()
	var later atomic.Int64
	now := func() time.Time { return start.Add(time.Duration(later.Load())) }
	log := make(lines, 100)
	s := openURL(t, server.NewDatabase(t), &Options{AllowAsync: true, now: now, manual: true, Log: slog.New(slog.NewTextHandler(log, nil))})
	s.makeTable(t)
	s.apply(t, store.Insert(one("a", 1)))
	server.SetSynchronousStandbys(t, "nobody")
	await(t, "a beat waits", func() bool {
		return len(server.Exec(t, "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE 'UPDATE tr_clock%'")) == 1
	})
	if !s.holds(t, "a") {
		t.Error("a read within the limit fails")
	}
	later.Store(int64(beatLimit + time.Second))
	for name, call := range map[string]func() error{
		"Get":   func() error { _, err := s.Get(t.Context(), people, one("a", 1).Key); return err },
		"Apply": func() error { _, err := s.Apply(t.Context(), people, store.Insert(one("b", 1))); return err },
		"Ping":  func() error { return s.Ping(t.Context()) },
	} {
		if err := call(); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %v, want %v", name, err, store.ErrUnavailable)
		}
	}
	log.await(t, logDown, "synchronous standby")
	server.SetSynchronousStandbys(t, "")
	await(t, "beats again", func() bool { return s.Ping(t.Context()) == nil })
	log.await(t, "answers again")
	s.apply(t, store.Insert(one("b", 1)))
	if n := s.db.Stats().Failovers; n != 0 {
		t.Errorf("%d changes of the server, want 0", n)
	}
}

// lines are what a log has, line by line.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// await waits for the next line, which must have the texts.
func (l lines) await(t *testing.T, texts ...string) {
	t.Helper()
	await(t, "a line of the log with "+texts[0], func() bool { return len(l) > 0 })
	line := <-l
	for _, text := range texts {
		if !strings.Contains(line, text) {
			t.Errorf("the log has %s, want %q", line, text)
		}
	}
}

// standby acknowledges the log of a server as a synchronous standby does, until the test
// ends.
func standby(t *testing.T, server string) {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	u.RawQuery = "replication=true&application_name=standby"
	c, err := pgconn.Connect(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	f := c.Frontend()
	f.SendQuery(&pgproto3.Query{String: "START_REPLICATION PHYSICAL 0/1000000"})
	if err := f.Flush(); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			m, err := f.Receive()
			if err != nil {
				return
			}
			data, ok := m.(*pgproto3.CopyData)
			if !ok || len(data.Data) < 17 {
				continue
			}
			end := binary.BigEndian.Uint64(data.Data[1:]) // of a keepalive
			if data.Data[0] == 'w' {
				end += uint64(len(data.Data) - 25)
			}
			status := []byte{'r'}
			for range 3 { // written, flushed, applied
				status = binary.BigEndian.AppendUint64(status, end)
			}
			status = append(status, make([]byte, 9)...)
			f.Send(&pgproto3.CopyData{Data: status})
			if err := f.Flush(); err != nil {
				return
			}
		}
	})
	t.Cleanup(func() {
		_ = c.Conn().Close()
		running.Wait()
	})
}

// TestStandbyGone connects to a server with a synchronous standby, and configures it to have
// none. Calls are refused from then on, and new connections too.
func TestStandbyGone(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	database := server.NewDatabase(t)
	openURL(t, database, &Options{AllowAsync: true}).makeTable(t)
	standby(t, server.URL())
	server.SetSynchronousStandbys(t, "standby")
	d, err := Connect(t.Context(), database, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	s, err := d.Account(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	s.apply(t, store.Insert(one("a", 1)))
	server.SetSynchronousStandbys(t, "")
	_ = d.heart.wait(t.Context())
	if _, err := s.Apply(t.Context(), people, store.Insert(one("b", 1))); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, ErrAsync) {
		t.Errorf("Apply: %v, want %v", err, ErrAsync)
	}
	if _, err := Connect(context.WithoutCancel(t.Context()), database, nil); !errors.Is(err, ErrAsync) {
		t.Errorf("Connect: %v, want %v", err, ErrAsync)
	}
	server.SetSynchronousStandbys(t, "standby")
	await(t, "the standby is back", func() bool { return s.Ping(t.Context()) == nil })
	s.apply(t, store.Insert(one("b", 1)))
}

// TestPartition cuts off a primary, whose connections stay open in silence, while another
// server becomes the primary. Calls that wait for the old one end, and new ones use the new
// one.
func TestPartition(t *testing.T) {
	t.Parallel()
	servers := [2]*pgtest.Server{pgtest.Start(t), pgtest.Start(t)}
	var urls [2]string
	for i, server := range servers {
		server.Exec(t, "CREATE DATABASE same")
		u, err := url.Parse(server.URL())
		if err != nil {
			t.Fatal(err)
		}
		u.Path = "/same"
		urls[i] = u.String()
		openURL(t, urls[i], &Options{AllowAsync: true}).makeTable(t)
	}
	p := newProxy(t, urls[0])
	s := openURL(t, p.url, &Options{AllowAsync: true})
	s.apply(t, store.Insert(one("a", 1)))
	o := newOther(t, urls[0])
	o.exec("BEGIN; UPDATE tr_entities SET ts = ts + 1")
	answers := make(chan error, 1)
	go func() {
		_, err := s.Apply(context.WithoutCancel(t.Context()), people, store.Replace(one("a", 2), store.Any))
		answers <- err
	}()
	await(t, "a write waits", func() bool {
		return len(servers[0].Exec(t, "SELECT 1 FROM pg_locks WHERE NOT granted")) > 0
	})
	p.partition(t, urls[1])
	if err := <-answers; !errors.Is(err, store.ErrOutcomeUnknown) {
		t.Errorf("a write to the old primary: %v, want %v", err, store.ErrOutcomeUnknown)
	}
	if s.holds(t, "a") {
		t.Error("a read is from the old primary")
	}
	if n := s.db.Stats().Failovers; n != 1 {
		t.Errorf("%d changes of the server, want 1", n)
	}
}

// TestConnectWithoutStandby connects to a server whose commits wait for a standby that does not run.
func TestConnectWithoutStandby(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	url := server.NewDatabase(t)
	o := &Options{AllowAsync: true}
	if err := Init(t.Context(), url, o); err != nil {
		t.Fatal(err)
	}
	server.SetSynchronousStandbys(t, "nobody")
	d, err := Connect(t.Context(), url, o)
	if err == nil {
		_ = d.Close()
	}
	if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Connect: %v, want %v", err, store.ErrUnavailable)
	}
}

// TestHungServer calls while all connections are to a server that does not answer, and the last beat is too
// old. The calls are refused at once, although there are idle connections.
func TestHungServer(t *testing.T) {
	t.Parallel()
	url := pgtest.Shared(t).NewDatabase(t)
	p := newProxy(t, url)
	var clock shiftedClock
	s := openURL(t, p.url, &Options{AllowAsync: true, now: clock.now, manual: true})
	s.makeTable(t)
	p.partition(t, url) // a new connection finds the same server, and is not used for that
	clock.by.Store(int64(beatLimit + time.Second))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := s.Get(ctx, people, one("a", 1).Key); !errors.Is(err, errNoBeat) {
		t.Errorf("Get: %v, want %v", err, errNoBeat)
	}
	if _, err := s.Apply(ctx, people, store.Insert(one("a", 1))); !errors.Is(err, errNoBeat) {
		t.Errorf("Apply: %v, want %v", err, errNoBeat)
	}
	if err := s.db.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Ping(ctx); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Ping after Close: %v, want %v", err, store.ErrClosed)
	}
}

// TestUpgradeWhileServing upgrades the tables, as a newer program does, while a Database of this one is open. It reads
// and writes nothing any more, not even its heartbeat.
func TestUpgradeWhileServing(t *testing.T) {
	t.Parallel()
	url := pgtest.Shared(t).NewDatabase(t)
	s := openURL(t, url, &Options{AllowAsync: true})
	s.makeTable(t)
	pgtest.Exec(t, url, "UPDATE tr_version SET version = 3")
	await(t, "a refusal", func() bool { return s.Ping(t.Context()) != nil })
	for name, call := range map[string]func() error{
		"Get":   func() error { _, err := s.Get(t.Context(), people, one("a", 1).Key); return err },
		"Apply": func() error { _, err := s.Apply(t.Context(), people, store.Insert(one("a", 1))); return err },
		"Ping":  func() error { return s.Ping(t.Context()) },
	} {
		if err := call(); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, store.ErrNewerFormat) {
			t.Errorf("%s: %v, want %v and %v", name, err, store.ErrUnavailable, store.ErrNewerFormat)
		}
	}
	pgtest.Exec(t, url, "UPDATE tr_clock SET base = 0")
	for range 2 { // the first may have begun before
		if err := s.db.heart.wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if base := pgtest.Exec(t, url, "SELECT base FROM tr_clock")[0]; base != "0" {
		t.Errorf("a beat has written the base %s", base)
	}
	pgtest.Exec(t, url, "UPDATE tr_version SET version = 2")
	await(t, "the version of this program", func() bool { return s.Ping(t.Context()) == nil })
}

// TestBeatsAtOnce lets a beat wait for one of another server, which raises the base. It finds the row, and does not
// lower the base.
func TestBeatsAtOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.Shared(t).NewDatabase(t)
	s := openURL(t, url, &Options{AllowAsync: true})
	o := newOther(t, url)
	o.exec("BEGIN; UPDATE tr_clock SET base = base + 36000000000") // an hour
	base := o.value("SELECT base FROM tr_clock")
	c, err := s.db.dialer.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	beaten := make(chan error, 1)
	go func() { beaten <- s.db.beat(context.WithoutCancel(t.Context()), c) }()
	o.awaitWaiting(2) // with that of s itself
	o.exec("COMMIT")
	if err := <-beaten; err != nil {
		t.Errorf("the beat fails: %v", err)
	}
	if got := o.value("SELECT base FROM tr_clock"); got != base {
		t.Errorf("the base is %d, want %d", got, base)
	}
}

// TestBeatWithoutConnections ends the connection of the heartbeat while the user may have no further one than that of the
// pool. The pool gives it to the heartbeat.
func TestBeatWithoutConnections(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	database := server.NewDatabase(t)
	if err := Init(t.Context(), database, &Options{AllowAsync: true}); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, database, "CREATE ROLE few LOGIN", "GRANT ALL ON ALL TABLES IN SCHEMA public TO few", "GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO few")
	start := time.Now() // no connection of the pool becomes old
	o := &Options{AllowAsync: true, MaxConns: 1, manual: true, now: func() time.Time { return start }}
	d, err := Connect(t.Context(), strings.Replace(database, "postgres@", "few@", 1), o)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Exec(t, "ALTER ROLE few CONNECTION LIMIT 1")
	const beats = " FROM pg_stat_activity WHERE usename = 'few' AND query LIKE 'UPDATE tr_clock%'"
	pid := server.Exec(t, "SELECT pid"+beats)[0]
	server.Exec(t, "SELECT pg_terminate_backend("+pid+")")
	await(t, "a beat over another connection", func() bool { return len(server.Exec(t, "SELECT pid"+beats+" AND pid <> "+pid)) == 1 })
}

// TestRefusalsAfterHeartbeat lets the last beat become too old while the server answers. An answer
// that it has no row, or has one, is no answer of the primary then.
func TestRefusalsAfterHeartbeat(t *testing.T) {
	t.Parallel()
	p := newProxy(t, pgtest.Shared(t).NewDatabase(t))
	var clock shiftedClock
	var stopped atomic.Bool
	now := func() time.Time {
		if stopped.Load() {
			clock.by.Add(int64(beatLimit + time.Second)) // so also a beat that comes now is too old
		}
		return clock.now()
	}
	s := openURL(t, p.url, &Options{AllowAsync: true, now: now})
	s.makeTable(t)
	for _, c := range []struct {
		statement string
		call      func() error
	}{
		{"get", func() error { _, err := s.Get(t.Context(), people, one("a", 1).Key); return err }},
		{"meta", func() error { _, err := s.TableMeta(t.Context(), "Other"); return err }},
		{"set_meta", func() error { return s.SetTableMeta(t.Context(), "Other", []byte("m")) }},
		{"create", func() error { return s.CreateTable(t.Context(), people) }},
		{"drop", func() error { return s.DeleteTable(t.Context(), "Other") }},
	} {
		p.mu.Lock()
		p.rule = func(flight []byte) action {
			if bytes.Contains(flight, []byte("tr_"+c.statement+"\x00")) {
				stopped.Store(true)
			}
			return pass
		}
		p.mu.Unlock()
		if err := c.call(); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %v, want %v", c.statement, err, store.ErrUnavailable)
		}
		stopped.Store(false)
		await(t, "a beat", func() bool { s.db.heart.wake(); return s.Ping(t.Context()) == nil })
	}
}
