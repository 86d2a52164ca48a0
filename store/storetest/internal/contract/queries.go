package contract

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

var queryParts = []Part{
	{"QueryOrder", testQueryOrder},
	{"QueryFrom", testQueryFrom},
	{"QueryFilter", testQueryFilter},
	{"QueryKeys", testQueryKeys},
	{"QuerySelect", testQuerySelect},
	{"QuerySnapshot", testQuerySnapshot},
	{"QueryDeletedTable", testQueryDeletedTable},
	{"QueryContext", testQueryContext},
	{"QueryRow", testQueryRow},
	{"QueryEntities", testQueryEntities},
}

// ordered are texts in the order of their UTF-16 code units, which is not that
// of their bytes: U+1F600 begins with the code unit D83D.
var ordered = []string{
	"", " ", "!", "0", "A", "a", "a ", "a!", "aa", "a\ud7ff", "a\U0001F600", "a\ue000", "a\uffff", "b", "~", "\u00a0", "\u00e9", "\u07ff", "\u0800",
	"\ud7ff", "\U00010000", "\U0001F600", "\U0001F600a", "\U0010FFFF", "\ue000", "\ufffd", "\uffff", "\uffff\uffff",
}

func testQueryOrder(t *tester) {
	s := t.OpenPeople()
	var want []edm.Entity
	for i, p := range ordered {
		for j, r := range ordered {
			if (i+j)%3 == 0 {
				want = append(want, number(p, r, i*100+j))
			}
		}
	}
	// In an order of writing that is not theirs.
	for i := range want {
		e := &want[i*101%len(want)]
		if e.Timestamp == 0 {
			*e = t.Insert(s, *e)
		}
	}
	for i := range want {
		if want[i].Timestamp == 0 {
			want[i] = t.Insert(s, want[i])
		}
	}
	t.WantRows("all", s, store.Query{}, want)
	back := slices.Clone(want)
	slices.Reverse(back)
	t.WantRows("all backwards", s, store.Query{Reverse: true}, back)
}

func testQueryFrom(t *tester) {
	s := t.OpenPeople()
	var list []edm.Entity
	for _, p := range ordered[4:] {
		list = append(list, number(p, "", 0), number(p, "k", 1), number(p, "\uffff", 2))
	}
	list = t.Fill(s, list)
	var back []edm.Entity
	for i := range list {
		back = append(back, list[len(list)-1-i])
	}
	for i, e := range list {
		t.WantRows(fmt.Sprintf("from %q", e.Key), s, store.Query{From: &e.Key}, list[i:])
		t.WantRows(fmt.Sprintf("back from %q", e.Key), s, store.Query{From: &e.Key, Reverse: true}, back[len(list)-1-i:])
		next := key(e.Key.Partition, e.Key.Row+" ")
		t.WantRows(fmt.Sprintf("from after %q", e.Key), s, store.Query{From: &next, Limit: 2}, list[i+1:min(i+3, len(list))])
		t.WantRows(fmt.Sprintf("back from after %q", e.Key), s, store.Query{From: &next, Reverse: true, Limit: 2}, back[len(list)-1-i:min(len(list)-i+1, len(list))])
	}
	first := key("", "")
	t.WantRows("from the least key", s, store.Query{From: &first}, list)
	t.WantRows("back from the least key", s, store.Query{From: &first, Reverse: true}, nil)
}

// filters pairs texts with what they must keep of suite.Family.
var filters = []struct {
	text string
	keep func(e edm.Entity, n int) bool
}{
	{"PartitionKey eq 'b'", func(e edm.Entity, _ int) bool { return e.Key.Partition == "b" }},
	{"PartitionKey eq 'b' and RowKey eq '05'", func(e edm.Entity, _ int) bool { return e.Key == key("b", "05") }},
	{"PartitionKey eq 'b' and RowKey eq '99'", func(edm.Entity, int) bool { return false }},
	{"PartitionKey gt 'a' and PartitionKey lt 'c'", func(e edm.Entity, _ int) bool { return e.Key.Partition == "b" }},
	{"PartitionKey ge 'b' and RowKey lt '03'", func(e edm.Entity, _ int) bool { return e.Key.Partition >= "b" && e.Key.Row < "03" }},
	{"PartitionKey eq 'a' and RowKey ge '03' and RowKey le '05'", func(_ edm.Entity, n int) bool { return n >= 3 && n <= 5 }},
	{"PartitionKey eq 'a' and RowKey eq '01' or PartitionKey eq 'c' and RowKey eq '09'", func(_ edm.Entity, n int) bool { return n == 1 || n == 29 }},
	{"PartitionKey lt 'a'", func(edm.Entity, int) bool { return false }},
	{"RowKey eq '07'", func(e edm.Entity, _ int) bool { return e.Key.Row == "07" }},
	{"N gt 12", func(_ edm.Entity, n int) bool { return n > 12 }},
	{"N ge 25 or N lt 3", func(_ edm.Entity, n int) bool { return n >= 25 || n < 3 }},
	{"N eq 100", func(edm.Entity, int) bool { return false }},
	{"Even eq true and PartitionKey ne 'b'", func(e edm.Entity, n int) bool { return n%2 == 0 && e.Key.Partition != "b" }},
	{"not (Even eq true)", func(_ edm.Entity, n int) bool { return n%2 != 0 }},
	{"S eq '3'", func(_ edm.Entity, n int) bool { return n%3 == 0 && n%7 == 3 }},
	{"S ne '3'", func(_ edm.Entity, n int) bool { return n%3 == 0 && n%7 != 3 }},
	{"S ge '' and PartitionKey eq 'c'", func(_ edm.Entity, n int) bool { return n%3 == 0 && n >= 20 }},
	{"Missing eq 1", func(edm.Entity, int) bool { return false }},
}

func (t *tester) parse(text string) *filter.Expr {
	t.Helper()
	e, err := filter.Parse(text)
	t.NoErr("Parse", err)
	return e
}

func testQueryFilter(t *tester) {
	s := t.OpenPeople()
	list := t.Fill(s, suite.Family())
	for _, f := range filters {
		expr := t.parse(f.text)
		for from := -1; from < len(list); from += 7 {
			q := store.Query{Filter: expr}
			var want, back []edm.Entity
			if from >= 0 {
				q.From = &list[from].Key
			}
			for i, e := range list {
				if f.keep(e, i) && i >= from {
					want = append(want, e)
				}
				if f.keep(e, i) && (from < 0 || i <= from) {
					back = append([]edm.Entity{e}, back...)
				}
			}
			t.WantRows(fmt.Sprintf("%s from %d", f.text, from), s, q, want)
			q.Reverse = true
			t.WantRows(fmt.Sprintf("%s back from %d", f.text, from), s, q, back)
		}
	}
}

// testQueryKeys shows that neither rows nor resume keys leave the ranges of a
// filter, whatever From says.
func testQueryKeys(t *tester) {
	s := t.OpenPeople()
	list := t.Fill(s, suite.Family())
	at := func(kind filter.BoundKind, k edm.Key) filter.Bound { return filter.Bound{Kind: kind, Key: k} }
	for _, c := range []struct {
		from, to filter.Bound
		lo, hi   int
	}{
		{at(filter.Unbounded, key("", "")), at(filter.Unbounded, key("", "")), 0, 30},
		{at(filter.BeforePartition, key("b", "")), at(filter.AfterPartition, key("b", "")), 10, 20},
		{at(filter.BeforePartition, key("b", "")), at(filter.BeforePartition, key("c", "")), 10, 20},
		{at(filter.AfterPartition, key("a", "")), at(filter.Unbounded, key("", "")), 10, 30},
		{at(filter.BeforeRow, key("a", "05")), at(filter.AfterRow, key("b", "04")), 5, 15},
		{at(filter.AfterRow, key("a", "05")), at(filter.BeforeRow, key("b", "04")), 6, 14},
		{at(filter.BeforeRow, key("a", "055")), at(filter.BeforeRow, key("a", "06")), 6, 6},
		{at(filter.Unbounded, key("", "")), at(filter.BeforeRow, key("a", "03")), 0, 3},
		{at(filter.AfterRow, key("c", "09")), at(filter.Unbounded, key("", "")), 30, 30},
	} {
		keys := filter.Keys(c.from, c.to)
		want := list[c.lo:c.hi]
		t.WantRows(fmt.Sprintf("%v", keys), s, store.Query{Filter: keys}, want)
		var odd []edm.Entity
		for i := c.lo; i < c.hi; i++ {
			if i%2 != 0 {
				odd = append(odd, list[i])
			}
		}
		both := filter.And(t.parse("not (Even eq true)"), keys)
		t.WantRows(fmt.Sprintf("%v", both), s, store.Query{Filter: both}, odd)
		for _, from := range []*edm.Key{nil, {}, {Partition: "a", Row: "08"}, {Partition: "b", Row: "02"}, {Partition: "zzz"}} {
			for _, reverse := range []bool{false, true} {
				q := store.Query{Filter: both, From: from, Reverse: reverse, Budget: 2}
				for p := t.Page(s, q); ; p = t.Page(s, q) {
					for _, e := range p.Rows {
						if !containsKey(want, e.Key) {
							t.Errorf("%s shows %q", suite.Show(q), e.Key)
						}
					}
					if p.Resume == nil {
						break
					}
					if len(want) == 0 || p.Resume.Compare(want[0].Key) < 0 || p.Resume.Compare(want[len(want)-1].Key) > 0 {
						t.Fatalf("%s resumes at %q, out of its ranges", suite.Show(q), *p.Resume)
					}
					if q.From != nil && *q.From == *p.Resume {
						t.Fatalf("%s resumes where it began", suite.Show(q))
					}
					q.From = p.Resume
				}
			}
		}
	}
}

func containsKey(list []edm.Entity, k edm.Key) bool {
	return slices.ContainsFunc(list, func(e edm.Entity) bool { return e.Key == k })
}

func testQuerySelect(t *tester) {
	s := t.OpenPeople()
	e := t.Insert(s, entity("p", "r", prop("C", edm.Int32(3)), prop("A", edm.String("text")), prop("B", edm.Int32(2))))
	other := t.Insert(s, entity("p", "s", prop("X", edm.Int32(1))))
	for _, c := range []struct {
		names []string
		want  []int // of e's properties
	}{
		{nil, []int{0, 1, 2}},
		{[]string{}, nil},
		{[]string{"A"}, []int{1}},
		{[]string{"B", "A", "C"}, []int{0, 1, 2}}, // in the stored order
		{[]string{"B", "C", "B"}, []int{0, 2}},
		{[]string{"a", "Missing"}, nil},
		{[]string{"Missing", "B"}, []int{2}},
		{[]string{edm.PartitionKeyName, edm.TimestampName, "C"}, []int{0}},
	} {
		for _, reverse := range []bool{false, true} {
			want := []edm.Entity{e, other}
			want[0].Properties = nil
			for _, i := range c.want {
				want[0].Properties = append(want[0].Properties, e.Properties[i])
			}
			if c.names != nil {
				want[1].Properties = nil
			}
			if reverse {
				slices.Reverse(want)
			}
			q := store.Query{Select: c.names, Reverse: reverse}
			t.WantRows(suite.Show(q), s, q, want)
		}
	}
	e.Properties = e.Properties[1:2]
	q := store.Query{Select: []string{"A"}, Filter: t.parse("C eq 3")}
	t.WantRows("filter by what is not selected", s, q, []edm.Entity{e})
	cursor := s.Query(t.Ctx, people, q)
	if cursor.Next() {
		if v, ok := cursor.Row().Lookup("C"); ok {
			t.Errorf("Lookup finds %#v, which was not selected", v)
		}
	}
	t.NoErr("Close", cursor.Close())
}

// testQuerySnapshot changes everything while cursors are open that have read
// nothing, one row, or half.
func testQuerySnapshot(t *tester) {
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
			o := &open{s.Query(t.Ctx, people, q), nil, list}
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
			t.Apply(s, store.Replace(number(e.Key.Partition, e.Key.Row, -1), store.Any))
		}
		t.Apply(s, store.Insert(number(e.Key.Partition, e.Key.Row+"+", -2)), store.Insert(number(e.Key.Partition, e.Key.Row+"-", -2)))
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

func testQueryDeletedTable(t *tester) {
	s := t.OpenPeople()
	list := t.Fill(s, suite.Family())
	cursor := s.Query(t.Ctx, people, store.Query{})
	late := s.Query(t.Ctx, people, store.Query{})
	if !cursor.Next() {
		t.Fatalf("no row: %v", cursor.Err())
	}
	first := edm.EntityOf(cursor.Row())
	t.NoErr("DeleteTable", s.DeleteTable(t.Ctx, people))
	t.NoErr("CreateTable", s.CreateTable(t.Ctx, people))
	fresh := t.Insert(s, number("a", "05", -1))
	for _, rows := range [][]edm.Entity{append([]edm.Entity{first}, t.Drain(cursor).Rows...), t.Drain(late).Rows} {
		if !slices.EqualFunc(rows, list, suite.SameEntity) {
			t.Errorf("the table was deleted during the query: got %s, want %s", suite.Show(rows), suite.Show(list))
		}
	}
	t.WantRows("the table of the same name", s, store.Query{}, []edm.Entity{fresh})
}

func testQueryContext(t *tester) {
	s := t.OpenPeople()
	list := t.Fill(s, suite.Family())
	odd := t.parse("not (Even eq true)")
	for _, reverse := range []bool{false, true} {
		for _, expr := range []*filter.Expr{nil, odd} {
			want := t.Page(s, store.Query{Reverse: reverse, Filter: expr}).Rows
			for read := 0; read < len(want); read += 4 {
				ctx, cancel := context.WithCancel(t.Ctx)
				if read == 0 {
					cancel()
				}
				cursor := s.Query(ctx, people, store.Query{Reverse: reverse, Filter: expr})
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
	_, err := s.Apply(ctx, people, store.Insert(number("z", "z", 1)))
	t.WantErr("Apply", err, context.Canceled)
	_, err = s.Get(ctx, people, list[0].Key)
	t.WantErr("Get", err, context.Canceled)
	t.WantErr("CreateTable", s.CreateTable(ctx, "Another"), context.Canceled)
	t.WantErr("SetAccountMeta", s.SetAccountMeta(ctx, []byte("x")), context.Canceled)
	t.WantRows("after calls whose ctx had ended", s, store.Query{}, list)
}

// testQueryRow looks at a row many times before the next, and keeps copies.
func testQueryRow(t *tester) {
	s := t.OpenPeople()
	list := t.Fill(s, suite.Family())
	cursor := s.Query(t.Ctx, people, store.Query{})
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
	cursor = s.Query(t.Ctx, people, store.Query{})
	if !cursor.Next() {
		t.Errorf("no row: %v", cursor.Err())
	}
	t.NoErr("Close in the middle", errors.Join(cursor.Close(), cursor.Close()))
	if cursor.Next() {
		t.Error("Next returns true after Close in the middle")
	}
	t.NoErr("Close before Next", s.Query(t.Ctx, people, store.Query{}).Close())
}

func testQueryEntities(t *tester) {
	s := t.OpenPeople()
	list := t.Fill(s, suite.Family())
	var got []edm.Entity
	for e, err := range store.Entities(s.Query(t.Ctx, people, store.Query{})) {
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
