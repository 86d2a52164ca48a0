package storetest

import (
	"fmt"
	"slices"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// testQueryWhileWriting changes entities while cursors are open that have read some rows.
// Each row must be a version of its entity that existed after the call of Query, and each
// entity that did not change must be there.
func testQueryWhileWriting(t *tester) {
	for _, reverse := range t.directions() {
		for _, rows := range []int{0, 1, 15} {
			t.whileWriting(family(), 1, rows, reverse)
		}
		// More rows than a store reads at once.
		var list []edm.Entity
		for i := range 2500 {
			list = append(list, number(fmt.Sprint(i/1000), fmt.Sprintf("%04d", i), i))
		}
		t.whileWriting(list, 61, 1200, reverse)
	}
}

// whileWriting reads rows of list, and the others after a write of each n-th entity of list.
func (t *tester) whileWriting(list []edm.Entity, n, rows int, reverse bool) {
	t.Helper()
	s := t.openPeople()
	list = t.fill(s, list)
	q := store.Query{Reverse: reverse}
	cursor := s.Query(t.ctx, people, q)
	var seen []edm.Entity
	for len(seen) < rows && cursor.Next() {
		seen = append(seen, edm.EntityOf(cursor.Row()))
	}
	var same, after []edm.Entity // the entities that do not change; the versions after the writes
	for i, e := range list {
		switch {
		case i%n != 0 || i/n%3 == 2:
			same = append(same, e)
			continue
		case i/n%3 == 0:
			t.apply(s, store.Delete(e.Key, store.Any))
		default:
			after = append(after, t.insertAgain(s, number(e.Key.Partition, e.Key.Row, -1)))
		}
		after = append(after, t.insert(s, number(e.Key.Partition, e.Key.Row+"+", -2)))
	}
	rest := t.drain(cursor)
	what := fmt.Sprintf("%s: entities were written after row %d", show(q), rows)
	t.noErr(what, rest.Err)
	all := append(seen, rest.Rows...)
	t.wantVersions(what, all, reverse, list, after)
	has := map[edm.Key]bool{}
	for _, e := range all {
		has[e.Key] = true
	}
	for _, e := range same {
		if !has[e.Key] {
			t.Errorf("%s: %q, which did not change, is missing", what, e.Key)
		}
	}
	now := slices.Concat(same, after)
	slices.SortFunc(now, func(a, b edm.Entity) int { return a.Key.Compare(b.Key) })
	if reverse {
		slices.Reverse(now)
	}
	t.wantEntities(what+": a query after them", t.page(s, q).Rows, now)
	q.Limit = len(now) - 1
	t.wantEntities(what+": all rows but one", t.page(s, q).Rows, now[:q.Limit])
}

// wantVersions fails unless each of rows is one of the versions, and no key is twice there.
func (t *tester) wantVersions(what string, rows []edm.Entity, reverse bool, versions ...[]edm.Entity) {
	t.Helper()
	of := map[edm.Key][]edm.Entity{}
	for _, e := range slices.Concat(versions...) {
		of[e.Key] = append(of[e.Key], e)
	}
	for i, e := range rows {
		if !slices.ContainsFunc(of[e.Key], func(v edm.Entity) bool { return sameEntity(e, v) }) {
			t.Errorf("%s: row %d is %s, which was never stored after the call of Query; the versions are %s", what, i, show(e), show(of[e.Key]))
		}
		if i == 0 {
			continue
		}
		if c := e.Key.Compare(rows[i-1].Key); c == 0 || (c < 0) != reverse {
			t.Errorf("%s: row %d is %q after %q", what, i, e.Key, rows[i-1].Key)
		}
	}
}
