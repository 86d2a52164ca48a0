package storetest

import (
	"fmt"
	"slices"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
)

var queryTests = []subtest{
	{"QueryOrder", testQueryOrder},
	{"QueryFrom", testQueryFrom},
	{"QueryFromLimits", testQueryFromLimits},
	{"QueryFromNoKey", testQueryFromNoKey},
	{"QueryNegative", testQueryNegative},
	{"QueryFilter", testQueryFilter},
	{"QueryFilterOrder", testQueryFilterOrder},
	{"QueryKeys", testQueryKeys},
	{"QuerySelect", testQuerySelect},
	{"QueryOwned", testQueryOwned},
	{"QuerySnapshot", testQuerySnapshot},
	{"QueryWhileWriting", testQueryWhileWriting},
	{"QueryDeletedTable", testQueryDeletedTable},
	{"QueryContext", testQueryContext},
	{"QueryRow", testQueryRow},
	{"QueryColumns", testQueryColumns},
	{"QueryEntities", testQueryEntities},
	{"Pages", testPages},
	{"PagesOfBudget", testPagesOfBudget},
	{"PagesOfBytes", testPagesOfBytes},
	{"PageEnds", testPageEnds},
	{"PagesWhileWriting", testPagesWhileWriting},
}

// ordered has texts in the order of their UTF-16 code units, which differs from that
// of their bytes: U+1F600 begins with the code unit D83D.
var ordered = []string{
	"", " ", "!", "0", "A", "a", "a ", "a!", "aa", "a\ud7ff", "a\U0001F600", "a\ue000", "a\uffff", "b", "~", "\u00a0", "\u00e9", "\u07ff", "\u0800",
	"\ud7ff", "\U00010000", "\U0001F600", "\U0001F600a", "\U0010FFFF", "\ue000", "\ufffd", "\uffff", "\uffff\uffff",
}

func testQueryOrder(t *tester) {
	s := t.openPeople()
	var want []edm.Entity
	for i, p := range ordered {
		for j, r := range ordered {
			if (i+j)%3 == 0 {
				want = append(want, number(p, r, i*100+j))
			}
		}
	}
	// Write them in another order.
	for i := range want {
		e := &want[i*101%len(want)]
		if e.Timestamp == 0 {
			*e = t.insert(s, *e)
		}
	}
	for i := range want {
		if want[i].Timestamp == 0 {
			want[i] = t.insert(s, want[i])
		}
	}
	t.wantRows("all", s, store.Query{}, want)
	back := slices.Clone(want)
	slices.Reverse(back)
	t.wantRows("all in reverse", s, store.Query{Reverse: true}, back)
}

// filters has texts with the entities of family that they keep.
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
	{"n gt 12 or EVEN eq true", func(edm.Entity, int) bool { return false }}, // case counts
}

func testQueryFilter(t *tester) {
	s := t.openPeople()
	list := t.fill(s, family())
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
			t.wantRows(fmt.Sprintf("%s from %d", f.text, from), s, q, want)
			q.Reverse = true
			t.wantRows(fmt.Sprintf("%s reverse from %d", f.text, from), s, q, back)
		}
	}
}

// testQueryKeys checks that rows and resume keys are within the ranges of a filter,
// whatever From is.
func testQueryKeys(t *tester) {
	s := t.openPeople()
	list := t.fill(s, family())
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
		t.wantRows(fmt.Sprintf("%v", keys), s, store.Query{Filter: keys}, want)
		var odd []edm.Entity
		for i := c.lo; i < c.hi; i++ {
			if i%2 != 0 {
				odd = append(odd, list[i])
			}
		}
		both := filter.And(t.parse("not (Even eq true)"), keys)
		t.wantRows(fmt.Sprintf("%v", both), s, store.Query{Filter: both}, odd)
		for _, from := range []*edm.Key{nil, {}, {Partition: "a", Row: "08"}, {Partition: "b", Row: "02"}, {Partition: "zzz"}} {
			for _, reverse := range t.directions() {
				q := store.Query{Filter: both, From: from, Reverse: reverse, Budget: t.budget(2)}
				for p := t.page(s, q); ; p = t.page(s, q) {
					for _, e := range p.Rows {
						if !containsKey(want, e.Key) {
							t.Errorf("%s returns %q", show(q), e.Key)
						}
					}
					if p.Resume == nil {
						break
					}
					if len(want) == 0 || p.Resume.Compare(want[0].Key) < 0 || p.Resume.Compare(want[len(want)-1].Key) > 0 {
						t.Fatalf("%s resumes at %q, out of its ranges", show(q), *p.Resume)
					}
					if q.From != nil && *q.From == *p.Resume {
						t.Fatalf("%s resumes at its From", show(q))
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

// indexOf returns the index of the property called name, -1 if there is none.
func indexOf(props edm.Properties, name string) int {
	return slices.IndexFunc(props, func(p edm.Property) bool { return p.Name == name })
}

func testQuerySelect(t *tester) {
	s := t.openPeople()
	e := t.insert(s, entity("p", "r", prop("C", edm.Int32(3)), prop("A", edm.String("text")), prop("B", edm.Int32(2))))
	other := t.insert(s, entity("p", "s", prop("X", edm.Int32(1))))
	for _, c := range []struct {
		names []string
		want  []int // indexes of properties of e
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
		for _, reverse := range t.directions() {
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
			q := store.Query{Select: slices.Clone(c.names), Reverse: reverse}
			if t.backend.Protocol {
				slices.SortStableFunc(q.Select, func(a, b string) int { return indexOf(e.Properties, a) - indexOf(e.Properties, b) })
			}
			t.wantRows(show(q), s, q, want)
		}
	}
	e.Properties = e.Properties[1:2]
	q := store.Query{Select: []string{"A"}, Filter: t.parse("C eq 3")}
	t.wantRows("filter by a property that is not selected", s, q, []edm.Entity{e})
	cursor := s.Query(t.ctx, people, q)
	if cursor.Next() {
		if v, ok := cursor.Row().Lookup("C"); ok {
			t.Errorf("Lookup finds %#v, which was not selected", v)
		}
	}
	t.noErr("Close", cursor.Close())
}

// testQueryOwned checks that a cursor does not look at the memory of its Query, which the caller
// changes after the call. The entities have two shapes.
func testQueryOwned(t *tester) {
	s := t.openPeople()
	e := t.insert(s, entity("p", "r", prop("A", edm.Int32(1)), prop("B", edm.Int32(2))))
	other := t.insert(s, entity("p", "s", prop("A", edm.Int32(3)), prop("B", edm.Int32(4)), prop("C", edm.Int32(5))))
	e.Properties, other.Properties = e.Properties[:1], other.Properties[:1]
	for _, more := range []int{0, 8, 20} {
		names, from := []string{"A"}, key("p", "")
		for i := range more {
			names = append(names, fmt.Sprint("X", i))
		}
		c := s.Query(t.ctx, people, store.Query{Select: names, From: &from})
		for i := range names {
			names[i] = "B"
		}
		from = key("q", "")
		t.wantEntities(fmt.Sprintf("%d names that change after the call", len(names)), t.drain(c).Rows, []edm.Entity{e, other})
	}
}
