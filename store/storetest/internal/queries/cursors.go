package queries

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest/internal/suite"
)

// testQuerySnapshot changes everything while cursors are open that have read
// nothing, one row, or half.
func testQuerySnapshot(t *suite.T) {
	s := t.OpenPeople()
	list := t.Fill(s, suite.Family())
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
			o := &open{s.Query(t.Ctx, suite.People, q), nil, list}
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
			t.Apply(s, store.Delete(e.Key, store.Any))
		case 1:
			t.Apply(s, store.Replace(suite.Number(e.Key.Partition, e.Key.Row, -1), store.Any))
		}
		t.Apply(s, store.Insert(suite.Number(e.Key.Partition, e.Key.Row+"+", -2)), store.Insert(suite.Number(e.Key.Partition, e.Key.Row+"-", -2)))
	}
	for i, o := range cursors {
		rest := t.Drain(o.cursor)
		if got := append(o.seen, rest.Rows...); rest.Err != nil || !slices.EqualFunc(got, o.want, suite.SameEntity) {
			t.Errorf("cursor %d: got %s, %v; want what there was at the call of Query, %s", i, suite.Show(got), rest.Err, suite.Show(o.want))
		}
	}
	if n := len(t.Page(s, store.Query{}).Rows); n != 80 {
		t.Errorf("%d entities after the writes, want 80", n)
	}
}

func testQueryDeletedTable(t *suite.T) {
	s := t.OpenPeople()
	list := t.Fill(s, suite.Family())
	cursor := s.Query(t.Ctx, suite.People, store.Query{})
	late := s.Query(t.Ctx, suite.People, store.Query{})
	if !cursor.Next() {
		t.Fatalf("no row: %v", cursor.Err())
	}
	first := edm.EntityOf(cursor.Row())
	t.NoErr("DeleteTable", s.DeleteTable(t.Ctx, suite.People))
	t.NoErr("CreateTable", s.CreateTable(t.Ctx, suite.People))
	fresh := t.Insert(s, suite.Number("a", "05", -1))
	for _, rows := range [][]edm.Entity{append([]edm.Entity{first}, t.Drain(cursor).Rows...), t.Drain(late).Rows} {
		if !slices.EqualFunc(rows, list, suite.SameEntity) {
			t.Errorf("the table was deleted during the query: got %s, want %s", suite.Show(rows), suite.Show(list))
		}
	}
	t.WantRows("the table of the same name", s, store.Query{}, []edm.Entity{fresh})
}

func testQueryContext(t *suite.T) {
	s := t.OpenPeople()
	list := t.Fill(s, suite.Family())
	odd := t.Parse("not (Even eq true)")
	for _, reverse := range []bool{false, true} {
		for _, expr := range []*filter.Expr{nil, odd} {
			want := t.Page(s, store.Query{Reverse: reverse, Filter: expr}).Rows
			for read := 0; read < len(want); read += 4 {
				ctx, cancel := context.WithCancel(t.Ctx)
				if read == 0 {
					cancel()
				}
				cursor := s.Query(ctx, suite.People, store.Query{Reverse: reverse, Filter: expr})
				var got []edm.Entity
				for len(got) < read && cursor.Next() {
					got = append(got, edm.EntityOf(cursor.Row()))
				}
				cancel()
				p := t.Drain(cursor)
				what := fmt.Sprintf("ctx ended after %d rows, reverse %v, filter %v", read, reverse, expr)
				if len(p.Rows) != 0 || p.Err != context.Canceled {
					t.Errorf("%s: got %d more rows and %v", what, len(p.Rows), p.Err)
				}
				if p.Resume == nil {
					t.Errorf("%s: no key to resume from", what)
					continue
				}
				rest := t.Page(s, store.Query{Reverse: reverse, Filter: expr, From: p.Resume})
				if got = append(got, rest.Rows...); !slices.EqualFunc(got, want, suite.SameEntity) {
					t.Errorf("%s: with the rest got %s, want %s", what, suite.Show(got), suite.Show(want))
				}
			}
		}
	}
	ctx, cancel := context.WithCancelCause(t.Ctx)
	cancel(errors.New("its cause"))
	_, err := s.Apply(ctx, suite.People, store.Insert(suite.Number("z", "z", 1)))
	t.WantErr("Apply", err, context.Canceled)
	_, err = s.Get(ctx, suite.People, list[0].Key)
	t.WantErr("Get", err, context.Canceled)
	t.WantErr("CreateTable", s.CreateTable(ctx, "Another"), context.Canceled)
	t.WantErr("SetAccountMeta", s.SetAccountMeta(ctx, []byte("x")), context.Canceled)
	t.WantRows("after calls whose ctx had ended", s, store.Query{}, list)
}

// testQueryRow looks at a row many times before the next, and keeps copies.
func testQueryRow(t *suite.T) {
	s := t.OpenPeople()
	list := t.Fill(s, suite.Family())
	cursor := s.Query(t.Ctx, suite.People, store.Query{})
	var copies []edm.Entity
	for i := 0; cursor.Next(); i++ {
		row := cursor.Row()
		t.WellFormed(row)
		one, two := edm.EntityOf(row), edm.EntityOf(cursor.Row())
		t.WellFormed(row)
		if !suite.SameEntity(one, two) || !suite.SameEntity(one, edm.EntityOf(row)) {
			t.Errorf("row %d changes while it is the current row", i)
		}
		copies = append(copies, one)
	}
	t.NoErr("Err", cursor.Err())
	t.NoErr("Close", cursor.Close())
	t.NoErr("second Close", cursor.Close())
	if cursor.Next() {
		t.Error("Next returns true after Close")
	}
	if !slices.EqualFunc(copies, list, suite.SameEntity) {
		t.Errorf("copies of rows: got %s, want %s", suite.Show(copies), suite.Show(list))
	}
	cursor = s.Query(t.Ctx, suite.People, store.Query{})
	if !cursor.Next() {
		t.Errorf("no row: %v", cursor.Err())
	}
	t.NoErr("Close in the middle", errors.Join(cursor.Close(), cursor.Close()))
	if cursor.Next() {
		t.Error("Next returns true after Close in the middle")
	}
	t.NoErr("Close before Next", s.Query(t.Ctx, suite.People, store.Query{}).Close())
}

func testQueryEntities(t *suite.T) {
	s := t.OpenPeople()
	list := t.Fill(s, suite.Family())
	var got []edm.Entity
	for e, err := range store.Entities(s.Query(t.Ctx, suite.People, store.Query{})) {
		t.NoErr("Entities", err)
		got = append(got, e)
	}
	if !slices.EqualFunc(got, list, suite.SameEntity) {
		t.Errorf("Entities: got %s, want %s", suite.Show(got), suite.Show(list))
	}
	n := 0
	for _, err := range store.Entities(s.Query(t.Ctx, "Nobody", store.Query{})) {
		t.WantErr("Entities of a missing table", err, store.ErrTableNotFound)
		n++
	}
	if n != 1 {
		t.Errorf("Entities of a missing table: %d pairs, want one", n)
	}
}
