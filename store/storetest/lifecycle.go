package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

var lifecycleTests = []subtest{
	{"Close", testClose},
	{"CloseWhileBusy", testCloseWhileBusy},
	{"Ping", testPing},
	{"Reopen", testReopen},
	{"PowerCut", testPowerCut},
	{"Kill", testKill},
	{"KillWhileBusy", testKillWhileBusy},
}

// patience limits the time of a call that waits for nothing.
const patience = 5 * time.Minute

// within fails unless f returns within patience.
func (t *tester) within(what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	t.wait(what, done)
}

func (t *tester) wait(what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s: still waiting after %v", what, patience)
	}
}

func testClose(t *tester) {
	s := t.openPeople()
	t.fill(s, family())
	cursor := s.Query(t.ctx, people, store.Query{})
	if !cursor.Next() {
		t.Errorf("no row: %v", cursor.Err())
	}
	t.within("Close beside an open cursor", func() { t.wantErr("Close", s.Close(), nil) })
	t.wantErr("second Close", s.Close(), nil)
	for cursor.Next() {
		t.wellFormed(cursor.Row())
	}
	if err := cursor.Err(); err != nil && !errors.Is(err, store.ErrClosed) {
		t.Errorf("a cursor that outlives its store: %v", err)
	}
	t.wantErr("Close of the cursor", cursor.Close(), nil)
	for method, err := range t.calls(s, people) {
		t.wantErr(method+" after Close", err, store.ErrClosed)
	}
}

// calls calls every method but Close and returns the errors by method.
func (t *tester) calls(s store.Store, table string) map[string]error {
	t.Helper()
	errs := t.onTable(s, table)
	errs["CreateTable"] = s.CreateTable(t.ctx, "Another")
	_, errs["Tables"] = s.Tables(t.ctx, "", 0)
	if !t.backend.Protocol {
		_, errs["AccountMeta"] = s.AccountMeta(t.ctx)
		errs["SetAccountMeta"] = s.SetAccountMeta(t.ctx, []byte("m"))
	}
	return errs
}

func testPing(t *tester) {
	s := t.open()
	p, ok := s.(store.Pinger)
	if !ok {
		t.Skip("this backend has no Ping")
	}
	t.noErr("Ping", p.Ping(t.ctx))
	ctx, cancel := context.WithCancel(t.ctx)
	cancel()
	t.wantErr("Ping with a ctx that has ended", p.Ping(ctx), context.Canceled)
	t.noErr("Ping after that", p.Ping(t.ctx))
	t.noErr("Close", s.Close())
	t.wantErr("Ping after Close", p.Ping(t.ctx), store.ErrClosed)
}

// testCloseWhileBusy closes a store during writes and reads. Each call succeeds or
// returns ErrClosed, and acknowledged writes are stored.
func testCloseWhileBusy(t *tester) {
	s := t.openPeople()
	const writers = 4
	acknowledged := make([]int, writers)
	var all sync.WaitGroup
	var closed atomic.Bool // a call that begins now must fail
	started := make(chan struct{}, 2*writers)
	for w := range writers {
		all.Go(func() {
			for n := 0; ; n++ {
				late := closed.Load()
				_, err := s.Apply(t.ctx, people, store.Insert(number(fmt.Sprint(w), fmt.Sprintf("%06d", n), n)))
				if err != nil || late {
					t.wantErr("Apply while closing", err, store.ErrClosed)
					return
				}
				acknowledged[w] = n + 1
				if n == 3 {
					started <- struct{}{}
				}
			}
		})
		all.Go(func() {
			for n := 0; ; n++ {
				late := closed.Load()
				p := t.drain(s.Query(t.ctx, people, store.Query{Limit: 10}))
				if p.Err != nil || late {
					t.wantErr("Query while closing", p.Err, store.ErrClosed)
					return
				}
				if n == 3 {
					started <- struct{}{}
				}
			}
		})
	}
	for range 2 * writers {
		<-started
	}
	t.within("concurrent calls of Close", func() {
		var closers sync.WaitGroup
		for range 3 {
			closers.Go(func() { t.wantErr("Close while busy", s.Close(), nil) })
		}
		closers.Wait()
		closed.Store(true)
		all.Wait()
	})
	if t.backend.Reopen == nil {
		return
	}
	s = t.reopen(s)
	rows := map[string]int{}
	for _, e := range t.page(s, store.Query{}).Rows {
		rows[e.Key.Partition]++
	}
	for w, n := range acknowledged {
		if got := rows[fmt.Sprint(w)]; got != n {
			t.Errorf("writer %d: %d inserts were acknowledged, %d are stored", w, n, got)
		}
	}
}

// content is all data of a store.
type content struct {
	tables  []store.TableInfo
	account string
	metas   map[string]string
	rows    map[string][]edm.Entity
}

func (t *tester) content(s store.Store) content {
	t.Helper()
	c := content{tables: t.tables(s, "", 0), metas: map[string]string{}, rows: map[string][]edm.Entity{}}
	meta, err := s.AccountMeta(t.ctx)
	t.noErr("AccountMeta", err)
	c.account = string(meta)
	for _, table := range c.tables {
		meta, err := s.TableMeta(t.ctx, table.Name)
		t.noErr("TableMeta", err)
		c.metas[table.Name] = string(meta)
		p := t.drain(s.Query(t.ctx, table.Name, store.Query{}))
		t.noErr("Query", p.Err)
		c.rows[table.Name] = p.Rows
	}
	return c
}

// wantContent fails unless s has the data c.
func (t *tester) wantContent(what string, s store.Store, c content) {
	t.Helper()
	got := t.content(s)
	if fmt.Sprint(got.tables, got.account, got.metas) != fmt.Sprint(c.tables, c.account, c.metas) {
		t.Errorf("%s: got tables %v, metadata %q, %q; want %v, %q, %q", what, got.tables, got.account, got.metas, c.tables, c.account, c.metas)
	}
	for name, want := range c.rows {
		t.wantEntities(what+": "+name, got.rows[name], want)
	}
}

// mixed writes every kind of data to a store with the table people.
func (t *tester) mixed(s store.Store) {
	t.Helper()
	list := t.fill(s, family())
	t.apply(s, store.Insert(edm.Entity{Key: key("values", ""), Properties: extremes()}))
	t.apply(s, store.Delete(list[3].Key, store.Any), store.Merge(entity("a", "04", prop("M", edm.Guid(edm.GUID{1}))), store.Any),
		store.Replace(number("a", "05", 55), list[5].Timestamp.ETag()))
	t.noErr("SetTableMeta", s.SetTableMeta(t.ctx, people, []byte("of people")))
	t.noErr("SetAccountMeta", s.SetAccountMeta(t.ctx, []byte("of the account")))
	for _, name := range []string{"Gone", "Back", "Empty"} {
		t.noErr("CreateTable", s.CreateTable(t.ctx, name))
	}
	for _, name := range []string{"Gone", "Back"} {
		t.insertInto(s, name, number("p", "r", 1))
		t.noErr("SetTableMeta", s.SetTableMeta(t.ctx, name, []byte("of "+name)))
		t.noErr("DeleteTable", s.DeleteTable(t.ctx, name))
	}
	t.noErr("CreateTable", s.CreateTable(t.ctx, "bACK"))
	t.insertInto(s, "back", number("q", "r", 2))
}

func testReopen(t *tester) {
	t.needReopen()
	s := t.openPeople()
	t.mixed(s)
	t.survives(s, "reopen", func(s store.Store) store.Store { return t.reopen(s) })
}

func testPowerCut(t *tester) {
	if t.backend.PowerCut == nil {
		t.Skip("this backend has no PowerCut")
	}
	s := t.openPeople()
	t.mixed(s)
	t.survives(s, "power cut", func(s store.Store) store.Store { return t.closing(t.backend.PowerCut(t, s)) })
}

// survives checks that acknowledged data survives again, which ends a store and opens
// its data: several times, with writes between.
func (t *tester) survives(s store.Store, what string, again func(store.Store) store.Store) {
	t.Helper()
	for round := range 3 {
		want := t.content(s)
		last := t.insertAgain(s, number("round", "last", round))
		s = again(s)
		what := fmt.Sprintf("%s %d", what, round)
		t.wantEntity(what, s, last)
		t.apply(s, store.Delete(last.Key, last.Timestamp.ETag()))
		t.wantContent(what, s, want)
		// In the other rounds, no entity that is stored has the latest Timestamp.
		switch round {
		case 1:
			s = again(s)
		case 2:
			before := t.briefly(s)
			s = again(s)
			if ts := t.briefly(s); ts <= before {
				t.Errorf("%s: Timestamp %d after %d of the same key, whose table was deleted", what, ts, before)
			}
		}
		next := t.insert(s, last)
		if next.Timestamp <= last.Timestamp {
			t.Errorf("%s: Timestamp %d after %d of the same key", what, next.Timestamp, last.Timestamp)
		}
		t.apply(s, store.Delete(next.Key, next.Timestamp.ETag()))
		e := t.insert(s, number("round", fmt.Sprint(round), round))
		if t.backend.RisingTimestamps && e.Timestamp <= next.Timestamp {
			t.Errorf("%s: Timestamp %d after %d", what, e.Timestamp, next.Timestamp)
		}
	}
}

// briefly creates a table, inserts an entity and deletes the table. It returns the Timestamp.
func (t *tester) briefly(s store.Store) edm.Ticks {
	t.Helper()
	const table = "Brief"
	t.noErr("CreateTable", s.CreateTable(t.ctx, table))
	r, err := s.Apply(t.ctx, table, store.Insert(number("p", "r", 1)))
	t.noErr("Apply", err)
	t.noErr("DeleteTable", s.DeleteTable(t.ctx, table))
	return r[0].Timestamp
}
