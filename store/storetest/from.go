package storetest

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

func testQueryFrom(t *tester) {
	s := t.openPeople()
	var list []edm.Entity
	for _, p := range ordered[4:] {
		list = append(list, number(p, "", 0), number(p, "k", 1), number(p, "\uffff", 2))
	}
	list = t.fill(s, list)
	var back []edm.Entity
	for i := range list {
		back = append(back, list[len(list)-1-i])
	}
	for i, e := range list {
		t.wantRows(fmt.Sprintf("from %q", e.Key), s, store.Query{From: &e.Key}, list[i:])
		t.wantRows(fmt.Sprintf("reverse from %q", e.Key), s, store.Query{From: &e.Key, Reverse: true}, back[len(list)-1-i:])
		next := key(e.Key.Partition, e.Key.Row+" ")
		t.wantRows(fmt.Sprintf("from after %q", e.Key), s, store.Query{From: &next, Limit: 2}, list[i+1:min(i+3, len(list))])
		t.wantRows(fmt.Sprintf("reverse from after %q", e.Key), s, store.Query{From: &next, Reverse: true, Limit: 2},
			back[len(list)-1-i:min(len(list)-i+1, len(list))])
	}
	first := key("", "")
	t.wantRows("from the least key", s, store.Query{From: &first}, list)
	t.wantRows("reverse from the least key", s, store.Query{From: &first, Reverse: true}, nil)
}

func testQueryFromLimits(t *tester) {
	s := t.openPeople()
	list := t.fill(s, []edm.Entity{number("b", "1", 1), number("b", "2", 2)})
	long := strings.Repeat("a", 5*edm.MaxKeyUnits)
	for _, c := range []struct {
		from edm.Key
		want []edm.Entity // forward
	}{
		{key("a/b", "?"), list}, {key(long, long), list}, {key("b", "1\x00"), list[1:]}, {key("b", long), nil}, {key("b/", ""), nil}, {key("b", "1"), list},
	} {
		t.wantRows(fmt.Sprintf("from %.20q", c.from), s, store.Query{From: &c.from}, c.want)
	}
	for _, from := range []edm.Key{key("\xff", ""), key("b", "\xed\xa0\x80")} {
		t.wantRule(fmt.Sprintf("Query from %q", from), t.drain(s.Query(t.ctx, people, store.Query{From: &from})).Err, edm.RuleUTF8)
	}
}

// testQueryNegative checks that no limit may be negative. A page that could examine no entity
// would resume at its own start, for ever.
func testQueryNegative(t *tester) {
	s := t.openPeople()
	t.fill(s, family())
	for _, n := range []int{-1, math.MinInt} {
		for _, q := range []store.Query{{Limit: n}, {Budget: n}, {BudgetBytes: n}, {Limit: n, BudgetBytes: 1}} {
			p := t.drain(s.Query(t.ctx, people, q))
			t.wantErr(show(q), p.Err, store.ErrInvalid)
			if p.Rows != nil {
				t.Errorf("%s: got %d rows, want none", show(q), len(p.Rows))
			}
		}
	}
}

// testQueryFromNoKey starts at illegal keys between two entities. No page has or
// resumes at a key before From.
func testQueryFromNoKey(t *tester) {
	s := t.openPeople()
	list := t.fill(s, family())
	for _, f := range filters {
		for _, from := range []edm.Key{key("b", "05/"), key("b/", ""), key("a", "\x1f")} {
			for _, reverse := range t.directions() {
				var want []edm.Entity
				for i, e := range list {
					if f.keep(e, i) && (e.Key.Compare(from) > 0) != reverse {
						want = append(want, e)
					}
				}
				if reverse {
					slices.Reverse(want)
				}
				for _, budget := range []int{1, 2, 0} {
					q := store.Query{Filter: t.parse(f.text), From: &from, Reverse: reverse, Budget: t.budget(budget)}
					t.wantEntities(show(q), t.chain(s, people, q, 4*len(list)), want)
				}
			}
		}
	}
}
