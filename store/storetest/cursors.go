package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
)

// testQuerySnapshot changes everything while cursors are open that have read
// nothing, one row, or half of the rows.
func testQuerySnapshot(t *tester) {
	t.needSnapshot()
	s := t.openPeople()
	list := t.fill(s, family())
	back := slices.Clone(list)
	slices.Reverse(back)
	type open struct {
		cursor store.Cursor
		seen   []edm.Entity
		want   []edm.Entity
	}
	var cursors []*open
	for _, read := range []int{0, 1, 15} {
		for _, q := range []store.Query{{}, {Reverse: true}} {
			o := &open{s.Query(t.ctx, people, q), nil, list}
			if q.Reverse {
				o.want = back
			}
			for range read {
				if o.cursor.Next() {
					o.seen = append(o.seen, edm.EntityOf(o.cursor.Row()))
				}
			}
			cursors = append(cursors, o)
		}
	}
	for i, e := range list {
		switch i % 3 {
		case 0:
			t.apply(s, store.Delete(e.Key, store.Any))
		case 1:
			t.apply(s, store.Replace(number(e.Key.Partition, e.Key.Row, -1), store.Any))
		}
		t.apply(s, store.Insert(number(e.Key.Partition, e.Key.Row+"+", -2)), store.Insert(number(e.Key.Partition, e.Key.Row+"-", -2)))
	}
	for i, o := range cursors {
		rest := t.drain(o.cursor)
		t.noErr(fmt.Sprintf("cursor %d", i), rest.Err)
		t.wantEntities(fmt.Sprintf("cursor %d: the rows at the call of Query", i), append(o.seen, rest.Rows...), o.want)
	}
	if n := len(t.page(s, store.Query{}).Rows); n != 80 {
		t.Errorf("%d entities after the writes, want 80", n)
	}
}

func testQueryDeletedTable(t *tester) {
	s := t.openPeople()
	list := t.fill(s, family())
	cursor := s.Query(t.ctx, people, store.Query{})
	late := s.Query(t.ctx, people, store.Query{})
	if !cursor.Next() {
		t.Fatalf("no row: %v", cursor.Err())
	}
	first := edm.EntityOf(cursor.Row())
	t.noErr("DeleteTable", s.DeleteTable(t.ctx, people))
	t.noErr("CreateTable", s.CreateTable(t.ctx, people))
	fresh := t.insert(s, number("a", "05", -1))
	for i, c := range []store.Cursor{cursor, late} {
		p := t.drain(c)
		if i == 0 {
			p.Rows = append([]edm.Entity{first}, p.Rows...)
		}
		if t.backend.Snapshot {
			t.noErr("a query of a table that was deleted", p.Err)
			t.wantEntities("rows of a table that was deleted during the query", p.Rows, list)
			continue
		}
		if p.Err != nil {
			t.wantErr("a query of a table that was deleted", p.Err, store.ErrTableNotFound)
		}
		t.wantVersions("a query of a table that was deleted", p.Rows, false, list, []edm.Entity{fresh})
	}
	t.wantRows("the table of the same name", s, store.Query{}, []edm.Entity{fresh})
}

// endsEarly ends the ctx of q after some rows, of want, and repeats q from its resume key.
func (t *tester) endsEarly(s store.Store, q store.Query, rows int, want []edm.Entity) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.ctx)
	if rows == 0 {
		cancel()
	}
	cursor := s.Query(ctx, people, q)
	var got []edm.Entity
	for len(got) < rows && cursor.Next() {
		got = append(got, edm.EntityOf(cursor.Row()))
	}
	cancel()
	p := t.drain(cursor)
	what := fmt.Sprintf("%s: ctx ended after %d rows", show(q), rows)
	switch {
	case len(p.Rows) == 0 && p.Err == nil && p.Resume == nil && rows == len(want):
		return // the cursor knows that this is the end
	case len(p.Rows) != 0 || p.Err != context.Canceled:
		t.Errorf("%s: got %d more rows and %v", what, len(p.Rows), p.Err)
	case p.Resume != nil:
		q.From = p.Resume
	case rows > 0:
		t.Errorf("%s: no key to resume from", what)
		return
	}
	t.wantEntities(what+": with the resumed rest", append(got, t.page(s, q).Rows...), want)
}

func testQueryContext(t *tester) {
	s := t.openPeople()
	list := t.fill(s, family())
	odd := t.parse("not (Even eq true)")
	for _, reverse := range t.directions() {
		for _, expr := range []*filter.Expr{nil, odd} {
			for _, from := range []*edm.Key{nil, {Partition: "b", Row: "04"}} {
				q := store.Query{Reverse: reverse, Filter: expr, From: from}
				want := t.page(s, q).Rows
				for rows := 0; rows <= len(want); rows += 1 + rows%3 {
					t.endsEarly(s, q, rows, want)
				}
				t.endsEarly(s, q, len(want), want)
			}
		}
	}
	ctx, cancel := context.WithCancelCause(t.ctx)
	cancel(errors.New("its cause"))
	ended := newTester(t.TB, t.backend)
	ended.ctx = ctx
	for method, err := range ended.calls(s, people) {
		t.wantErr(method+" with a ctx that had ended", err, context.Canceled)
	}
	if tables := t.tables(s, "", 0); len(tables) != 1 {
		t.Errorf("after calls with a ctx that had ended: the tables %v", tables)
	}
	t.wantRows("after calls with a ctx that had ended", s, store.Query{}, list)
	if t.backend.Protocol {
		return
	}
	for what, get := range map[string]func() ([]byte, error){
		"TableMeta":   func() ([]byte, error) { return s.TableMeta(t.ctx, people) },
		"AccountMeta": func() ([]byte, error) { return s.AccountMeta(t.ctx) },
	} {
		if meta, err := get(); meta != nil || err != nil {
			t.Errorf("%s after calls with a ctx that had ended: %q, %v", what, meta, err)
		}
	}
}

// testQueryRow reads a row many times before the next, and keeps copies.
func testQueryRow(t *tester) {
	s := t.openPeople()
	list := t.fill(s, family())
	cursor := s.Query(t.ctx, people, store.Query{})
	var copies []edm.Entity
	for i := 0; cursor.Next(); i++ {
		row := cursor.Row()
		t.wellFormed(row)
		one, two := edm.EntityOf(row), edm.EntityOf(cursor.Row())
		t.wellFormed(row)
		if !sameEntity(one, two) || !sameEntity(one, edm.EntityOf(row)) {
			t.Errorf("row %d changes while it is the current row", i)
		}
		copies = append(copies, one)
	}
	t.noErr("Err", cursor.Err())
	t.noErr("Close", cursor.Close())
	t.noErr("second Close", cursor.Close())
	if cursor.Next() {
		t.Error("Next returns true after Close")
	}
	t.wantEntities("copies of rows", copies, list)
	cursor = s.Query(t.ctx, people, store.Query{})
	if !cursor.Next() {
		t.Errorf("no row: %v", cursor.Err())
	}
	t.noErr("Close in the middle", errors.Join(cursor.Close(), cursor.Close()))
	if cursor.Next() {
		t.Error("Next returns true after Close in the middle")
	}
	t.noErr("Close before Next", s.Query(t.ctx, people, store.Query{}).Close())
}

func testQueryEntities(t *tester) {
	s := t.openPeople()
	list := t.fill(s, family())
	var got []edm.Entity
	for e, err := range store.Entities(s.Query(t.ctx, people, store.Query{})) {
		t.noErr("Entities", err)
		got = append(got, e)
	}
	t.wantEntities("Entities", got, list)
	n := 0
	for _, err := range store.Entities(s.Query(t.ctx, "Nobody", store.Query{})) {
		t.wantErr("Entities of a missing table", err, store.ErrTableNotFound)
		n++
	}
	if n != 1 {
		t.Errorf("Entities of a missing table: %d pairs, want one", n)
	}
}
