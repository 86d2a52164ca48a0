package queries

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest/internal/suite"
)

func testQueryFrom(t *suite.T) {
	s := t.OpenPeople()
	var list []edm.Entity
	for _, p := range ordered[4:] {
		list = append(list, suite.Number(p, "", 0), suite.Number(p, "k", 1), suite.Number(p, "\uffff", 2))
	}
	list = t.Fill(s, list)
	var back []edm.Entity
	for i := range list {
		back = append(back, list[len(list)-1-i])
	}
	for i, e := range list {
		t.WantRows(fmt.Sprintf("from %q", e.Key), s, store.Query{From: &e.Key}, list[i:])
		t.WantRows(fmt.Sprintf("back from %q", e.Key), s, store.Query{From: &e.Key, Reverse: true}, back[len(list)-1-i:])
		next := suite.Key(e.Key.Partition, e.Key.Row+" ")
		t.WantRows(fmt.Sprintf("from after %q", e.Key), s, store.Query{From: &next, Limit: 2}, list[i+1:min(i+3, len(list))])
		t.WantRows(fmt.Sprintf("back from after %q", e.Key), s, store.Query{From: &next, Reverse: true, Limit: 2}, back[len(list)-1-i:min(len(list)-i+1, len(list))])
	}
	first := suite.Key("", "")
	t.WantRows("from the least key", s, store.Query{From: &first}, list)
	t.WantRows("back from the least key", s, store.Query{From: &first, Reverse: true}, nil)
}

func testQueryFromLimits(t *suite.T) {
	s := t.OpenPeople()
	list := t.Fill(s, []edm.Entity{suite.Number("b", "1", 1), suite.Number("b", "2", 2)})
	long := strings.Repeat("a", 5*edm.MaxKeyUnits)
	for _, c := range []struct {
		from edm.Key
		want []edm.Entity // forward
	}{
		{suite.Key("a/b", "?"), list}, {suite.Key(long, long), list}, {suite.Key("b", "1\x00"), list[1:]}, {suite.Key("b", long), nil}, {suite.Key("b/", ""), nil}, {suite.Key("b", "1"), list},
	} {
		t.WantRows(fmt.Sprintf("from %.20q", c.from), s, store.Query{From: &c.from}, c.want)
	}
	for _, from := range []edm.Key{suite.Key("\xff", ""), suite.Key("b", "\xed\xa0\x80")} {
		t.WantRule(fmt.Sprintf("Query from %q", from), t.Drain(s.Query(t.Ctx, suite.People, store.Query{From: &from})).Err, edm.RuleUTF8)
	}
}

// testQueryFromNoKey begins at keys that no entity can have, between two that are
// there. No page shows, or resumes at, what lies before them.
func testQueryFromNoKey(t *suite.T) {
	s := t.OpenPeople()
	list := t.Fill(s, suite.Family())
	for _, f := range filters {
		for _, from := range []edm.Key{suite.Key("b", "05/"), suite.Key("b/", ""), suite.Key("a", "\x1f")} {
			for _, reverse := range []bool{false, true} {
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
					q := store.Query{Filter: t.Parse(f.text), From: &from, Reverse: reverse, Budget: budget}
					if got := t.Chain(s, suite.People, q, 4*len(list)); !slices.EqualFunc(got, want, suite.SameEntity) {
						t.Errorf("%s: got %s, want %s", suite.Show(q), suite.Show(got), suite.Show(want))
					}
				}
			}
		}
	}
}
