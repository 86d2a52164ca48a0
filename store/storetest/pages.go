package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

func testPages(t *tester) {
	s := t.openPeople()
	list := t.fill(s, family())
	texts := []string{""}
	for _, f := range filters {
		texts = append(texts, f.text)
	}
	step := 1
	if testing.Short() {
		step = 4
	}
	for _, text := range texts {
		for _, reverse := range t.directions() {
			q := store.Query{Filter: t.parse(text), Reverse: reverse}
			want := t.page(s, q).Rows
			for q.Limit = 1; q.Limit <= len(want)+1; q.Limit += step {
				t.wantEntities("pages of "+show(q), t.chain(s, people, q, len(list)+1), want)
			}
		}
	}
	for limit := 1; limit <= len(list)+1; limit += step {
		for at := range list {
			p := t.page(s, store.Query{From: &list[at].Key, Limit: limit})
			want := list[at:min(at+limit, len(list))]
			t.wantEntities(fmt.Sprintf("%d from row %d", limit, at), p.Rows, want)
		}
	}
}

func testPagesOfBudget(t *tester) {
	t.needBeyondProtocol()
	s := t.openPeople()
	list := t.fill(s, family())
	for _, text := range []string{
		"", "N eq 100", "N eq 29", "N lt 3", "S eq '3'", "PartitionKey eq 'b' and Even eq true",
		"PartitionKey eq 'a' and RowKey eq '01' or PartitionKey eq 'c'",
	} {
		for _, reverse := range t.directions() {
			want := t.page(s, store.Query{Filter: t.parse(text), Reverse: reverse}).Rows
			for budget := 1; budget <= len(list)+1; budget += 1 + budget/5 {
				for _, limit := range []int{0, 1, 3, budget} {
					q := store.Query{Filter: t.parse(text), Reverse: reverse, Budget: budget, Limit: limit}
					t.wantEntities("pages of "+show(q), t.chain(s, people, q, 4*len(list)), want)
				}
			}
		}
	}
}

// testPagesOfBytes reads pages of entities whose sizes differ, up to the largest that there
// are.
func testPagesOfBytes(t *tester) {
	s := t.openPeople()
	var list []edm.Entity
	for i, size := range []int{0, 10, 1000, 40_000, 3, 0, 300_000, 900_000, 100, 1000, 60_000, 1, 0} {
		e := number(fmt.Sprint(i/8), fmt.Sprintf("%02d", i), i)
		if size > 100 {
			e.Properties = append(e.Properties, filling(size)...)
		} else {
			e.Properties = append(e.Properties, prop("S", edm.String(strings.Repeat("\u8868", size))), prop("B", edm.Binary(make([]byte, size))))
		}
		list = append(list, t.insert(s, e))
	}
	texts := []string{"", "N ge 3", "RowKey ne '06'"}
	budgets := []int{1, 25, 3000, 41_000, 350_000, 1 << 20, 2 << 20}
	if testing.Short() { // all take half a minute with the race detector
		texts, budgets = texts[1:2], []int{25, 350_000}
	}
	for _, text := range texts {
		for _, reverse := range t.directions() {
			for _, names := range [][]string{nil, {"N"}, {"S", "B"}} {
				if names != nil && t.backend.Protocol {
					continue // it returns names without values
				}
				q := store.Query{Filter: t.parse(text), Reverse: reverse, Select: names}
				want := t.page(s, q).Rows
				for _, q.BudgetBytes = range budgets {
					for _, q.Limit = range []int{0, 2} {
						t.wantEntities("pages of "+show(q), t.chain(s, people, q, len(list)+1), want)
					}
				}
			}
		}
	}
	q := store.Query{BudgetBytes: 310_000}
	if n := len(t.page(s, q).Rows); n < 4 || n >= 8 {
		t.Errorf("%s: %d rows, want one that reaches the limit and no more", show(q), n)
	}
}

// testPageEnds checks the resume key at the end of a result and before it.
func testPageEnds(t *tester) {
	s := t.openPeople()
	if p := t.page(s, store.Query{Limit: 1, Budget: t.budget(1)}); p.Resume != nil {
		t.Errorf("an empty table resumes at %q", *p.Resume)
	}
	list := t.fill(s, family())
	last := &list[len(list)-1].Key
	for _, c := range []struct {
		q    store.Query
		rows int
		more bool
	}{
		{store.Query{}, 30, false},
		{store.Query{Limit: 30}, 30, false},
		{store.Query{Limit: 31, Budget: 31}, 30, false},
		{store.Query{Budget: 30}, 30, false},
		{store.Query{Limit: 29}, 29, true},
		{store.Query{Budget: 29}, 29, true},
		{store.Query{Limit: 30, Reverse: true}, 30, false},
		{store.Query{Budget: 30, Reverse: true}, 30, false},
		{store.Query{Limit: 29, Reverse: true}, 29, true},
		{store.Query{BudgetBytes: 1 << 20}, 30, false},
		{store.Query{BudgetBytes: 1 << 20, Limit: 29}, 29, true},
		{store.Query{From: last, Limit: 1}, 1, false},
		{store.Query{From: &list[0].Key, Reverse: true, Limit: 1}, 1, false},
		{store.Query{Filter: t.parse("PartitionKey eq 'b'"), Limit: 10}, 10, false},
		{store.Query{Filter: t.parse("PartitionKey eq 'b'"), Budget: 10}, 10, false},
		{store.Query{Filter: t.parse("PartitionKey eq 'b'"), Limit: 9}, 9, true},
		{store.Query{Filter: t.parse("PartitionKey eq 'b'"), Limit: 10, Reverse: true}, 10, false},
		{store.Query{Filter: t.parse("PartitionKey eq 'b' and RowKey eq '03'"), Limit: 1}, 1, false},
		{store.Query{Filter: t.parse("N eq 100"), Budget: 30}, 0, false},
	} {
		if !t.can(c.q) {
			continue
		}
		p := t.page(s, c.q)
		if len(p.Rows) != c.rows || (p.Resume != nil) != c.more {
			t.Errorf("%s: got %d rows and resume %v, want %d rows, more %v", show(c.q), len(p.Rows), p.Resume, c.rows, c.more)
		}
		if c.more && p.Resume != nil && t.page(s, store.Query{From: p.Resume, Reverse: c.q.Reverse, Limit: 1}).Rows == nil {
			t.Errorf("%s: nothing at the resume key %q", show(c.q), *p.Resume)
		}
	}
}

// testPagesWhileWriting deletes, after each page, the first entity of the next page,
// and adds one within the pages before.
func testPagesWhileWriting(t *tester) {
	s := t.openPeople()
	list := t.fill(s, family())
	want := slices.Clone(list)
	q := store.Query{Limit: 4}
	var got []edm.Entity
	for n := 0; ; n++ {
		p := t.page(s, q)
		got = append(got, p.Rows...)
		if p.Resume == nil || n > len(list) {
			break
		}
		q.From = p.Resume
		next := slices.IndexFunc(want, func(e edm.Entity) bool { return e.Key.Compare(*p.Resume) >= 0 })
		t.apply(s, store.Delete(want[next].Key, store.Any))
		want = slices.Delete(want, next, next+1)
		shown := p.Rows[0].Key
		t.insert(s, number(shown.Partition, fmt.Sprintf("%s-%d", shown.Row, n), -1))
	}
	t.wantEntities("pages with writes between", got, want)
}
