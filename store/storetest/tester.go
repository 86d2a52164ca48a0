package storetest

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
)

// tester opens stores of one backend and compares what they return. Its methods
// fail the test.
type tester struct {
	testing.TB
	backend  Backend
	ctx      context.Context
	grace    time.Duration // see mustWait
	failures atomic.Int64  // calls of Errorf
	drains   atomic.Int64  // calls of drain
}

func newTester(tb testing.TB, b Backend) *tester {
	return &tester{TB: tb, backend: b, ctx: context.Background(), grace: minGrace}
}

// maxFailures is how many failures of one test are printed. A bug that breaks one query
// breaks hundreds, and the first ones tell as much.
const maxFailures = 10

// Errorf fails the test and prints the first failures.
func (t *tester) Errorf(format string, args ...any) {
	t.Helper()
	switch n := t.failures.Add(1); {
	case n <= maxFailures:
		t.TB.Errorf(format, args...)
	case n == maxFailures+1:
		t.TB.Errorf("more failures are not printed")
	}
}

// people is the table of most tests.
const people = "People"

// open returns an empty store.
func (t *tester) open() store.Store {
	t.Helper()
	return t.closing(t.backend.Open(t))
}

// openPeople returns a store with the empty table people.
func (t *tester) openPeople() store.Store {
	t.Helper()
	s := t.open()
	t.noErr("CreateTable", s.CreateTable(t.ctx, people))
	return s
}

// closing closes s at the end of the test, and returns s.
func (t *tester) closing(s store.Store) store.Store {
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !t.Failed() {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// reopen closes s and returns a store with the same data.
func (t *tester) reopen(s store.Store) store.Store {
	t.Helper()
	return t.closing(t.backend.Reopen(t, s))
}

// needBeyondProtocol skips the test where the backend is a client of the Table protocol.
func (t *tester) needBeyondProtocol() {
	if t.backend.Protocol {
		t.Skip("the Table protocol does not promise this")
	}
}

// needSnapshot skips the test where a Query of the backend is no snapshot.
func (t *tester) needSnapshot() {
	if !t.backend.Snapshot {
		t.Skip("this backend does not promise that the rows of a query are of one time")
	}
}

// directions returns the values of Query.Reverse that the backend has.
func (t *tester) directions() []bool {
	if t.backend.Protocol {
		return []bool{false}
	}
	return []bool{false, true}
}

// budget returns n, or 0 where the backend has no Query.Budget.
func (t *tester) budget(n int) int {
	if t.backend.Protocol {
		return 0
	}
	return n
}

// can reports whether the backend can run q.
func (t *tester) can(q store.Query) bool {
	return !t.backend.Protocol || !q.Reverse && q.Budget == 0
}

// needReopen skips the test where the backend has no Reopen.
func (t *tester) needReopen() {
	if t.backend.Reopen == nil {
		t.Skip("this backend has no Reopen")
	}
}

// apply executes ops on people, which must succeed.
func (t *tester) apply(s store.Store, ops ...store.Op) []store.Result {
	t.Helper()
	results, err := s.Apply(t.ctx, people, ops...)
	t.noErr("Apply", err)
	if len(results) != len(ops) {
		t.Fatalf("Apply of %d ops: %d results", len(ops), len(results))
	}
	return results
}

// insert adds e to people and returns it as it must be stored.
func (t *tester) insert(s store.Store, e edm.Entity) edm.Entity {
	t.Helper()
	e.Timestamp = t.apply(s, store.Insert(e))[0].Timestamp
	return e
}

// fill adds entities to people, in batches, and returns them as they must be stored,
// in the order of their keys.
func (t *tester) fill(s store.Store, list []edm.Entity) []edm.Entity {
	t.Helper()
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b edm.Entity) int { return a.Key.Compare(b.Key) })
	for from := 0; from < len(list); {
		to := from + 1
		for to < len(list) && to-from < edm.MaxBatchOps && list[to].Key.Partition == list[from].Key.Partition {
			to++
		}
		var ops []store.Op
		for _, e := range list[from:to] {
			ops = append(ops, store.Insert(e))
		}
		for i, r := range t.apply(s, ops...) {
			list[from+i].Timestamp = r.Timestamp
		}
		from = to
	}
	return list
}

// wantEntity fails unless Get, View and Query of people return want.
func (t *tester) wantEntity(what string, s store.Store, want edm.Entity) {
	t.Helper()
	got, err := s.Get(t.ctx, people, want.Key)
	if err != nil || !sameEntity(got, want) {
		t.Errorf("%s: Get: got %s, %v, want %s", what, show(got), err, show(want))
	}
	var views []edm.Entity
	err = s.View(t.ctx, people, want.Key, func(r edm.Row) error {
		t.wellFormed(r)
		views = append(views, edm.EntityOf(r))
		return nil
	})
	if err != nil || len(views) != 1 || !sameEntity(views[0], want) {
		t.Errorf("%s: View: got %s, %v, want %s, once", what, show(views), err, show(want))
	}
	page := t.page(s, store.Query{From: &want.Key, Limit: 1})
	if len(page.Rows) != 1 || !sameEntity(page.Rows[0], want) {
		t.Errorf("%s: Query: got %s, want %s", what, show(page.Rows), show(want))
	}
}

// wantGone fails if people has an entity of key.
func (t *tester) wantGone(what string, s store.Store, key edm.Key) {
	t.Helper()
	_, err := s.Get(t.ctx, people, key)
	t.wantErr(what+": Get", err, store.ErrEntityNotFound)
	err = s.View(t.ctx, people, key, func(edm.Row) error {
		t.Errorf("%s: View returns an entity that does not exist", what)
		return nil
	})
	t.wantErr(what+": View", err, store.ErrEntityNotFound)
}

// wellFormed fails unless the methods of a row agree with each other.
func (t *tester) wellFormed(r edm.Row) {
	t.Helper()
	key := r.Key()
	if p := r.AppendPartition([]byte("+")); string(p) != "+"+key.Partition {
		t.Errorf("AppendPartition appends %q for the key %q", p, key)
	}
	if p := r.AppendRow([]byte("+")); string(p) != "+"+key.Row {
		t.Errorf("AppendRow appends %q for the key %q", p, key)
	}
	for i := range r.Len() {
		name, v := r.At(i)
		if w, ok := r.Lookup(name); !ok || !v.Equal(w) {
			t.Errorf("At(%d) is %q = %s, Lookup returns %s, %v", i, name, show(v), show(w), ok)
		}
	}
	if v, ok := r.Lookup("NoSuchName"); ok || !v.IsNull() {
		t.Errorf("Lookup of an absent name returns %s, %v", show(v), ok)
	}
}

// parse parses the text of a filter, which must be valid.
func (t *tester) parse(text string) *filter.Expr {
	t.Helper()
	e, err := filter.Parse(text)
	t.noErr("Parse", err)
	return e
}

// page is the result of a Query.
type page struct {
	Rows     []edm.Entity
	Resume   *edm.Key
	Err      error
	Examined int // by the count of the cursor, or len(Rows)
}

// page returns the result of a Query of people, which must succeed.
func (t *tester) page(s store.Store, q store.Query) page {
	t.Helper()
	p := t.drain(s.Query(t.ctx, people, q))
	if p.Err != nil {
		t.Fatalf("Query %s: %v", show(q), p.Err)
	}
	return p
}

// drain reads the rest of a cursor and closes it. It reads every second cursor by columns,
// where it has columns.
func (t *tester) drain(c store.Cursor) page {
	t.Helper()
	var p page
	columns, _ := c.(store.ColumnCursor)
	if t.drains.Add(1)%2 == 0 {
		columns = nil
	}
	var failed error // the first one of columns
	for {
		if columns != nil {
			if rows := columns.NextColumns(); rows != nil {
				list, err := t.columns(rows)
				p.Rows = append(p.Rows, list...)
				if failed == nil {
					failed = err
				}
				continue
			}
		}
		if !c.Next() {
			break
		}
		t.wellFormed(c.Row())
		p.Rows = append(p.Rows, edm.EntityOf(c.Row()))
	}
	if c.Next() {
		t.Error("Next returns true after it returned false")
	}
	if columns != nil && columns.NextColumns() != nil {
		t.Error("NextColumns returns rows after Next returned false")
	}
	p.Resume, p.Err, p.Examined = c.Resume(), c.Err(), len(p.Rows)
	if e, ok := c.(store.Examiner); ok {
		if p.Examined = e.Examined(); p.Examined < len(p.Rows) {
			t.Errorf("a cursor of %d rows has examined %d", len(p.Rows), p.Examined)
		}
	}
	if p.Resume != nil {
		key := *p.Resume
		p.Resume = &key
	}
	if failed != nil && p.Err == nil {
		t.Errorf("Err returns nil after AppendBytes has returned %v", failed)
	}
	if err := errors.Join(c.Close(), c.Close()); err != nil {
		t.Errorf("Close of a cursor: %v", err)
	}
	return p
}

// wantRows fails unless a Query of people returns want. It does nothing for a Query that
// the backend cannot run.
func (t *tester) wantRows(what string, s store.Store, q store.Query, want []edm.Entity) {
	t.Helper()
	if t.can(q) {
		t.wantEntities(what, t.page(s, q).Rows, want)
	}
}

// chain follows resume keys from q to the end and returns all rows. It fails if a page
// exceeds the limits of q or does not advance.
func (t *tester) chain(s store.Store, table string, q store.Query, most int) []edm.Entity {
	t.Helper()
	var all []edm.Entity
	for n := 0; ; n++ {
		p := t.drain(s.Query(t.ctx, table, q))
		if p.Err != nil {
			t.Fatalf("%s: %v", show(q), p.Err)
		}
		if q.Limit > 0 && len(p.Rows) > q.Limit || q.Budget > 0 && len(p.Rows) > q.Budget || t.exceeds(p.Rows, q) {
			t.Fatalf("%s: a page of %d rows", show(q), len(p.Rows))
		}
		if q.Budget > 0 && p.Examined > q.Budget {
			t.Fatalf("%s: a page that examined %d entities", show(q), p.Examined)
		}
		all = append(all, p.Rows...)
		if p.Resume == nil {
			return all
		}
		if q.Limit == 0 && q.Budget == 0 && q.BudgetBytes == 0 {
			t.Fatalf("%s: resumes at %q without a limit", show(q), *p.Resume)
		}
		if q.Budget == 0 && len(p.Rows) != q.Limit && !t.reaches(s, table, p.Rows, q) {
			t.Fatalf("%s: a page of %d rows that resumes at %q", show(q), len(p.Rows), *p.Resume)
		}
		for _, e := range p.Rows {
			if c := p.Resume.Compare(e.Key); c == 0 || (c < 0) != q.Reverse {
				t.Fatalf("%s: resumes at %q and has %q already", show(q), *p.Resume, e.Key)
			}
		}
		if q.From != nil && len(p.Rows) == 0 {
			if c := p.Resume.Compare(*q.From); c == 0 || (c < 0) != q.Reverse {
				t.Fatalf("%s: resumes at %q, which is not after From", show(q), *p.Resume)
			}
		}
		if n > most {
			t.Fatalf("%s: more than %d pages", show(q), most)
		}
		q.From = p.Resume
	}
}

// exceeds reports whether a page has a row after the one that reaches Query.BudgetBytes.
func (t *tester) exceeds(rows []edm.Entity, q store.Query) bool {
	n := 0
	for i := range len(rows) - 1 {
		n += leastBytes(rows[i])
	}
	return q.BudgetBytes > 0 && n >= q.BudgetBytes
}

// reaches reports whether the rows of a page can reach Query.BudgetBytes. It reads the
// whole entities: a Store can count properties that are not selected.
func (t *tester) reaches(s store.Store, table string, rows []edm.Entity, q store.Query) bool {
	t.Helper()
	if q.BudgetBytes == 0 {
		return false
	}
	n := 0
	for _, row := range rows {
		e, err := s.Get(t.ctx, table, row.Key)
		t.noErr("Get", err)
		n += 2 * edm.EntitySize(e.Key, e.Properties)
	}
	return n >= q.BudgetBytes
}

// tables returns the result of Tables, which must succeed.
func (t *tester) tables(s store.Store, from string, limit int) []store.TableInfo {
	t.Helper()
	list, err := s.Tables(t.ctx, from, limit)
	t.noErr("Tables", err)
	return list
}
