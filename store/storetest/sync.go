package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

var syncTests = []subtest{
	{"HeldIdle", testHeldIdle},
	{"HeldWrite", testHeldWrite},
	{"HeldRefusal", testHeldRefusal},
	{"HeldFailure", testHeldFailure},
	{"HeldContext", testHeldContext},
	{"HeldClose", testHeldClose},
}

const (
	// minGrace and maxGrace limit the time that a call must not return while its
	// sync is blocked. A store that returns later is not found; a correct store
	// never fails.
	minGrace = 40 * time.Millisecond
	maxGrace = 640 * time.Millisecond
	// idle is longer than a store waits before it syncs an idle log.
	idle = 300 * time.Millisecond
)

var errDisk = errors.New("the disk failed to sync")

// call is a running call.
type call struct {
	what string
	done chan struct{}
	err  error // valid after done is closed
}

func begin(what string, f func() error) *call {
	c := &call{what: what, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.err = f()
	}()
	return c
}

// mustWait fails if a call returns within the grace while a sync that it depends on
// is blocked.
func (t *tester) mustWait(calls ...*call) {
	t.Helper()
	timer := time.NewTimer(t.grace)
	defer timer.Stop()
	<-timer.C
	for _, c := range calls {
		select {
		case <-c.done:
			t.Errorf("%s: returned %v before the data it depends on was durable", c.what, c.err)
		default:
		}
	}
}

// untilInTime runs f with longer and longer graces until it returns true, which says
// that on a busy machine too, each of its calls began within the grace. It returns
// false if none of the runs did.
func (t *tester) untilInTime(f func() bool) bool {
	defer func() { t.grace = minGrace }()
	for ; t.grace <= maxGrace; t.grace *= 2 {
		if f() || t.Failed() {
			return true
		}
	}
	return false
}

func (t *tester) result(c *call) error {
	t.Helper()
	t.wait(c.what, c.done)
	return c.err
}

// openHeld returns a store with the table people and the entities list, and blocks
// the syncs of later calls.
func (t *tester) openHeld(list ...edm.Entity) (store.Store, []edm.Entity, Hold) {
	t.Helper()
	if t.backend.HoldSync == nil {
		t.Skip("this backend has no HoldSync")
	}
	s := t.backend.Open(t)
	t.Cleanup(func() { _ = s.Close() }) // fails after a failed sync
	t.noErr("CreateTable", s.CreateTable(t.ctx, people))
	list = t.fill(s, list)
	return s, list, t.backend.HoldSync(t, s)
}

// held waits until the sync of c blocks.
func (t *tester) held(c *call, h Hold) {
	t.Helper()
	select {
	case <-h.Held:
	case <-c.done:
		t.Fatalf("%s: returned %v without a sync", c.what, c.err)
	case <-time.After(patience):
		t.Fatalf("%s: no sync after %v", c.what, patience)
	}
}

// calls that take part in scenarios.
func (t *tester) applying(s store.Store, ops ...store.Op) func() error {
	return func() error { _, err := s.Apply(t.ctx, people, ops...); return err }
}

func (t *tester) creating(s store.Store, table string) func() error {
	return func() error { return s.CreateTable(t.ctx, table) }
}

func (t *tester) deleting(s store.Store, table string) func() error {
	return func() error { return s.DeleteTable(t.ctx, table) }
}

// testHeldIdle tests HoldSync itself, because the other tests rely on it: a sync that
// covers the write of no call neither blocks nor closes Held.
func testHeldIdle(t *tester) {
	s, _, h := t.openHeld(number("p", "old", 1))
	select {
	case <-h.Held:
		t.Errorf("HoldSync blocks a sync although no call began after it")
	case <-time.After(idle):
	}
	c := begin("Apply", t.applying(s, store.Insert(number("p", "new", 1))))
	t.held(c, h)
	t.mustWait(c)
	h.Release(nil)
	t.wantErr(c.what, t.result(c), nil)
}

func testHeldWrite(t *tester) {
	s, list, h := t.openHeld(number("p", "0", 0), number("p", "1", 1))
	before := t.content(s)
	calls := []*call{
		begin("Apply", t.applying(s, store.Insert(number("p", "2", 2)), store.Replace(number("p", "1", 9), store.Any), store.Delete(list[0].Key, store.Any))),
		begin("Apply", t.applying(s, store.Insert(number("q", "1", 1)))),
		begin("CreateTable", t.creating(s, "Another")),
		begin("SetTableMeta", func() error { return s.SetTableMeta(t.ctx, people, []byte("m")) }),
		begin("SetAccountMeta", func() error { return s.SetAccountMeta(t.ctx, []byte("m")) }),
	}
	t.held(calls[0], h)
	t.mustWait(calls...)
	t.within("readers beside a held sync", func() {
		for _, e := range list {
			if got, err := s.Get(t.ctx, people, e.Key); err != nil || !sameEntity(got, e) {
				t.Errorf("Get: got %s, %v, want %s until the write is durable", show(got), err, show(e))
			}
		}
		for _, k := range []edm.Key{key("p", "2"), key("q", "1")} {
			t.wantGone("while the sync is blocked", s, k)
		}
	})
	t.wantContent("while the sync is blocked", s, before)
	cursor := s.Query(t.ctx, people, store.Query{})
	h.Release(nil)
	for _, c := range calls {
		t.wantErr(c.what, t.result(c), nil)
	}
	if rows := t.drain(cursor).Rows; t.backend.Snapshot && len(rows) != len(list) {
		t.Errorf("a query that began while the sync was blocked has %s", show(rows))
	}
	if n, tables := len(t.page(s, store.Query{}).Rows), t.tables(s, "", 0); n != 3 || len(tables) != 2 {
		t.Errorf("after the sync: %d entities, want 3, and the tables %v", n, tables)
	}
}

// scenario is a call whose sync is blocked, and a second call that fails because of
// it.
type scenario struct {
	name          string
	first, second func() error
	want          failure // an OpError if index, executed or rule is set
	plain         bool    // err is not an OpError
	may           bool    // second may succeed, since it may be before first
}

// scenarios returns calls on the existing entity old.
func (t *tester) scenarios(s store.Store, old edm.Entity) []scenario {
	fresh := number("p", "new", 1)
	stale := old.Timestamp.ETag()
	replace := t.applying(s, store.Replace(number("p", "old", 2), stale))
	remove := t.applying(s, store.Delete(old.Key, stale))
	stored := func(i int, err error) failure { return failure{Index: i, Executed: true, Err: err} }
	missing := failure{Err: store.ErrTableNotFound}
	return []scenario{
		{"insert, insert", t.applying(s, store.Insert(fresh)), t.applying(s, store.Insert(fresh)), stored(0, store.ErrEntityExists), false, false},
		{"upsert, insert", t.applying(s, store.InsertOrMerge(fresh)), t.applying(s, store.Insert(fresh)), stored(0, store.ErrEntityExists), false, false},
		{
			"batch, batch", t.applying(s, store.Insert(number("p", "1", 1)), store.Insert(fresh)),
			t.applying(s, store.Insert(number("p", "2", 1)), store.Insert(fresh)), stored(1, store.ErrEntityExists), false, false,
		},
		{"replace, replace", replace, t.applying(s, store.Replace(number("p", "old", 3), stale)), stored(0, store.ErrPrecondition), false, false},
		{"replace, merge", replace, t.applying(s, store.Merge(number("p", "old", 3), stale)), stored(0, store.ErrPrecondition), false, false},
		{"replace, delete", replace, t.applying(s, store.Delete(old.Key, stale)), stored(0, store.ErrPrecondition), false, false},
		{"delete, replace", remove, t.applying(s, store.Replace(number("p", "old", 3), store.Any)), stored(0, store.ErrEntityNotFound), false, false},
		{"delete, delete", remove, t.applying(s, store.Delete(old.Key, store.Any)), stored(0, store.ErrEntityNotFound), false, false},
		{
			"merge, merge", t.applying(s, store.Merge(edm.Entity{Key: old.Key, Properties: several("P", 251)}, store.Any)),
			t.applying(s, store.Merge(edm.Entity{Key: old.Key, Properties: several("Q", 1)}, store.Any)),
			failure{Executed: true, Rule: edm.RulePropertyCount},
			false, false,
		},
		{"create, create", t.creating(s, "Another"), t.creating(s, "aNOTHER"), failure{Err: store.ErrTableExists}, true, false},
		{"drop, drop", t.deleting(s, people), t.deleting(s, people), missing, true, false},
		{"drop, insert", t.deleting(s, people), t.applying(s, store.Insert(fresh)), missing, false, true},
	}
}

// eachScenario runs f with every scenario on a new store, after both calls began and
// the sync of the first is blocked. f returns false if the second call began too late.
func (t *tester) eachScenario(f func(s store.Store, h Hold, c scenario, first, second *call) bool) {
	for i, n := 0, 1; i < n; i++ {
		var name string
		inTime := t.untilInTime(func() bool {
			s, list, h := t.openHeld(number("p", "old", 1))
			all := t.scenarios(s, list[0])
			n = len(all)
			c := all[i]
			name = c.name
			first := begin(c.name+": first", c.first)
			t.held(first, h)
			second := begin(c.name+": second", c.second)
			t.mustWait(first, second)
			return f(s, h, c, first, second)
		})
		if !inTime {
			t.Errorf("%s: second: always returned %v, although it began before the sync failed", name, store.ErrReadOnly)
		}
	}
}

func testHeldRefusal(t *tester) {
	t.eachScenario(func(_ store.Store, h Hold, c scenario, first, second *call) bool {
		h.Release(nil)
		if err := t.result(first); err != nil {
			t.Errorf("%s: got %v, want nil, because the second call began after the sync of the first", first.what, err)
		}
		err := t.result(second)
		switch {
		case c.may && err == nil:
		case c.plain:
			t.wantErr(second.what, err, c.want.Err)
		default:
			t.wantFailure(second.what, err, c.want)
		}
		return true
	})
	// A second write that succeeds waits too, and has the later Timestamp.
	s, list, h := t.openHeld(number("p", "old", 1))
	first := begin("first", t.applying(s, store.Replace(number("p", "old", 2), list[0].Timestamp.ETag())))
	t.held(first, h)
	second := begin("second", t.applying(s, store.Merge(entity("p", "old", prop("M", edm.Int32(3))), store.Any)))
	t.mustWait(first, second)
	h.Release(nil)
	t.wantErr("first", t.result(first), nil)
	t.wantErr("second", t.result(second), nil)
	if e, err := s.Get(t.ctx, people, list[0].Key); err != nil || len(e.Properties) != 2 || numberOf(e) != 2 {
		t.Errorf("after both: got %s, %v", show(e), err)
	}
}

// testHeldFailure makes the blocked sync fail. Both calls return ErrOutcomeUnknown,
// the store accepts no more writes, and the outcome after the next open is final.
func testHeldFailure(t *tester) {
	if !t.backend.ReadOnlyAfterFailure {
		t.Skip("this backend does not promise to be read-only after a failed sync")
	}
	t.eachScenario(func(s store.Store, h Hold, c scenario, first, second *call) bool {
		before := t.content(s)
		h.Release(errDisk)
		t.wantErr(first.what, t.result(first), store.ErrOutcomeUnknown)
		err := t.result(second)
		if errors.Is(err, store.ErrReadOnly) {
			return false // it began after the failure
		}
		t.wantErr(second.what, err, store.ErrOutcomeUnknown)
		t.wantErr(c.name+": a write after the failure", t.applying(s, store.InsertOrReplace(number("q", "1", 1)))(), store.ErrReadOnly)
		t.wantContent(c.name+": a read after the failure", s, before)
		again := t.backend.PowerCut
		if again == nil {
			again = t.backend.Reopen
		}
		if again == nil {
			return true
		}
		s = again(t, s)
		after := t.content(s)
		whole := map[string]bool{}
		for _, e := range after.rows[people] {
			whole[e.Key.Row] = true
		}
		if c.name == "batch, batch" && (whole["1"] != whole["new"] || whole["2"]) {
			t.Errorf("%s: a part of a batch is stored: %s", c.name, show(after.rows[people]))
		}
		for range 2 {
			s = again(t, s)
			t.wantContent(c.name+": opened once more", s, after)
		}
		t.wantErr(c.name+": CreateTable after all", s.CreateTable(t.ctx, "Later"), nil)
		t.wantErr(c.name+": Close", s.Close(), nil)
		return true
	})
}

func testHeldContext(t *tester) {
	s, _, h := t.openHeld()
	ctx, cancel := context.WithCancel(t.ctx)
	c := begin("Apply", func() error { _, err := s.Apply(ctx, people, store.Insert(number("p", "r", 1))); return err })
	t.held(c, h)
	cancel()
	t.mustWait(c)
	h.Release(nil)
	t.wantErr("Apply with a ctx that ended while it waited for its outcome", t.result(c), nil)
	if _, err := s.Get(t.ctx, people, key("p", "r")); err != nil {
		t.Errorf("Get: %v", err)
	}
}

func testHeldClose(t *tester) {
	if !t.untilInTime(t.closeHeld) {
		t.Errorf("Apply: always returned %v, although it began before Close", store.ErrClosed)
	}
}

// closeHeld closes a store while calls wait for a sync. It returns false if one of
// them began after Close.
func (t *tester) closeHeld() bool {
	s, _, h := t.openHeld()
	var calls []*call
	for i := range 3 {
		calls = append(calls, begin("Apply", t.applying(s, store.Insert(number(fmt.Sprint(i), "r", 1)))))
	}
	t.held(calls[0], h)
	t.mustWait(calls...)
	closing := begin("Close", s.Close)
	t.mustWait(append(calls, closing)...)
	h.Release(nil)
	t.wantErr("Close", t.result(closing), nil)
	inTime := true
	for _, c := range calls {
		if err := t.result(c); errors.Is(err, store.ErrClosed) {
			inTime = false
		} else {
			t.wantErr(c.what+" that began before Close", err, nil)
		}
	}
	if t.backend.Reopen == nil || !inTime {
		return inTime
	}
	s = t.reopen(s)
	if n := len(t.page(s, store.Query{}).Rows); n != len(calls) {
		t.Errorf("%d entities, want %d", n, len(calls))
	}
	return true
}
