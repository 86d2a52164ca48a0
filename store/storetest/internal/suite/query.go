package suite

import (
	"errors"
	"slices"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
)

// Parse returns the expression of a filter's text, which must be one.
func (t *T) Parse(text string) *filter.Expr {
	t.Helper()
	e, err := filter.Parse(text)
	t.NoErr("Parse", err)
	return e
}

// Page is what one Query gave.
type Page struct {
	Rows   []edm.Entity
	Resume *edm.Key
	Err    error
}

// Page returns what a Query of People gives, which must not fail.
func (t *T) Page(s store.Store, q store.Query) Page {
	t.Helper()
	p := t.Drain(s.Query(t.Ctx, People, q))
	if p.Err != nil {
		t.Fatalf("Query %s: %v", Show(q), p.Err)
	}
	return p
}

// Drain returns what a cursor gives and closes it.
func (t *T) Drain(c store.Cursor) Page {
	t.Helper()
	var p Page
	for c.Next() {
		t.WellFormed(c.Row())
		p.Rows = append(p.Rows, edm.EntityOf(c.Row()))
	}
	if c.Next() {
		t.Error("Next returns true after it returned false")
	}
	p.Resume, p.Err = c.Resume(), c.Err()
	if p.Resume != nil {
		key := *p.Resume
		p.Resume = &key
	}
	if err := errors.Join(c.Close(), c.Close()); err != nil {
		t.Errorf("Close of a cursor: %v", err)
	}
	return p
}

// WantRows fails unless a Query of People gives want.
func (t *T) WantRows(what string, s store.Store, q store.Query, want []edm.Entity) {
	t.Helper()
	if got := t.Page(s, q).Rows; !slices.EqualFunc(got, want, SameEntity) {
		t.Errorf("%s: got %s, want %s", what, Show(got), Show(want))
	}
}

// Chain follows resume keys from q to the end and returns all rows. It fails if
// a page breaks q's limits or does not move on.
func (t *T) Chain(s store.Store, table string, q store.Query, most int) []edm.Entity {
	t.Helper()
	var all []edm.Entity
	for n := 0; ; n++ {
		p := t.Drain(s.Query(t.Ctx, table, q))
		if p.Err != nil {
			t.Fatalf("%s: %v", Show(q), p.Err)
		}
		if q.Limit > 0 && len(p.Rows) > q.Limit || q.Budget > 0 && len(p.Rows) > q.Budget {
			t.Fatalf("%s: a page of %d rows", Show(q), len(p.Rows))
		}
		all = append(all, p.Rows...)
		if p.Resume == nil {
			return all
		}
		if q.Limit == 0 && q.Budget == 0 {
			t.Fatalf("%s: resumes at %q without a limit", Show(q), *p.Resume)
		}
		if q.Budget == 0 && len(p.Rows) != q.Limit {
			t.Fatalf("%s: a page of %d rows, and it goes on at %q", Show(q), len(p.Rows), *p.Resume)
		}
		for _, e := range p.Rows {
			if c := p.Resume.Compare(e.Key); c == 0 || (c < 0) != q.Reverse {
				t.Fatalf("%s: resumes at %q and has %q already", Show(q), *p.Resume, e.Key)
			}
		}
		if q.From != nil && len(p.Rows) == 0 {
			if c := p.Resume.Compare(*q.From); c == 0 || (c < 0) != q.Reverse {
				t.Fatalf("%s: resumes at %q, which is not further", Show(q), *p.Resume)
			}
		}
		if n > most {
			t.Fatalf("%s: more than %d pages", Show(q), most)
		}
		q.From = p.Resume
	}
}

// Tables returns what Tables of s returns, which must not fail.
func (t *T) Tables(s store.Store, from string, limit int) []store.TableInfo {
	t.Helper()
	list, err := s.Tables(t.Ctx, from, limit)
	t.NoErr("Tables", err)
	return list
}
