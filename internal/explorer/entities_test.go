package explorer_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/explorer"
	"github.com/tablerock-db/tablerock/store"
)

// lateStore is a store whose first query returns no row before the end of its ctx, and then
// that error, or failure if it is set.
type lateStore struct {
	store.Store
	failure error
	queries atomic.Int32
}

func (s *lateStore) Query(ctx context.Context, table string, q store.Query) store.Cursor {
	c := s.Store.Query(ctx, table, q)
	if s.queries.Add(1) > 1 {
		return c
	}
	return &lateCursor{c, c.(store.Examiner), ctx, s.failure}
}

type lateCursor struct {
	store.Cursor
	store.Examiner
	ctx     context.Context
	failure error
}

func (c *lateCursor) Next() bool {
	<-c.ctx.Done()
	return false
}

func (c *lateCursor) Err() error { return cmp.Or(c.failure, c.ctx.Err()) }

func (c *lateCursor) Resume() *edm.Key { return nil }

// TestLateFirstRow requires that a page whose time ends before its first row is not taken for
// the end of the table, and that an error at this time is not lost.
func TestLateFirstRow(t *testing.T) {
	for name, c := range map[string]struct {
		failure error
		status  int
		rows    int
	}{
		"no error": {nil, http.StatusOK, 10},
		"an error": {errors.New("the disk is broken"), http.StatusInternalServerError, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.fill("Tab", 1, 10)
			s.change(func(a *explorer.Account) { a.Store = &lateStore{Store: a.Store, failure: c.failure} })
			b := s.owner()
			var page explorer.EntityPage
			b.want(c.status, &page, "entities?a=first&t=Tab", nil)
			if len(page.Rows) != c.rows || page.Next != "" {
				t.Errorf("the page has %d rows and the next token %q", len(page.Rows), page.Next)
			}
		})
	}
}

// explainingStore counts the plans of its queries.
type explainingStore struct {
	store.Store
	plans atomic.Int32
}

func (s *explainingStore) Query(ctx context.Context, table string, q store.Query) store.Cursor {
	c := s.Store.Query(ctx, table, q)
	return &explainedCursor{c, c.(store.Examiner), s}
}

type explainedCursor struct {
	store.Cursor
	store.Examiner
	s *explainingStore
}

func (c *explainedCursor) Explain() (store.Plan, error) {
	c.s.plans.Add(1)
	return c.Cursor.(store.Explainer).Explain()
}

// TestPagesHaveNoPlan requires that only an explanation makes a plan, which examines the index of
// the whole table.
func TestPagesHaveNoPlan(t *testing.T) {
	s := newSite(t)
	s.fill("Tab", 1, 10)
	var explaining explainingStore
	s.change(func(a *explorer.Account) {
		explaining.Store = a.Store
		a.Store = &explaining
	})
	b := s.owner()
	for path, want := range map[string]int32{"entities": 0, "count": 0, "explain": 1} {
		explaining.plans.Store(0)
		b.want(http.StatusOK, nil, path+"?a=first&t=Tab", nil)
		if got := explaining.plans.Load(); got != want {
			t.Errorf("%s: %d plans, want %d", path, got, want)
		}
	}
}

// TestPageOfManyProperties requires that the JSON of a page is limited, although small values take
// a few bytes of a row and fifty of its JSON.
func TestPageOfManyProperties(t *testing.T) {
	s := newSite(t)
	s.fill("Wide", 0, 0)
	const rows = 600
	ops := make([]store.Op, rows)
	for i := range ops {
		e := edm.Entity{Key: edm.Key{Partition: "p", Row: fmt.Sprintf("%04d", i)}}
		for j := range edm.MaxProperties {
			e.Properties = append(e.Properties, edm.Property{Name: fmt.Sprintf("p%d", j), Value: edm.Boolean(true)})
		}
		ops[i] = store.Insert(e)
	}
	for batch := range slices.Chunk(ops, edm.MaxBatchOps) {
		if _, err := s.db.Apply(t.Context(), "Wide", batch...); err != nil {
			t.Fatal(err)
		}
	}
	b := s.owner()
	got := 0
	for next := ""; ; {
		response, text := b.send(http.MethodGet, "/ui/api/entities?a=first&t=Wide&top=1000&next="+next, "", "Cookie", b.cookie)
		var page explorer.EntityPage
		if err := json.Unmarshal([]byte(text), &page); err != nil || response.StatusCode != http.StatusOK || len(text) > 5<<20 {
			t.Fatalf("%s, %d bytes of JSON, %v", response.Status, len(text), err)
		}
		got += len(page.Rows)
		if next = page.Next; next == "" {
			break
		}
	}
	if got != rows {
		t.Errorf("the pages have %d rows, want %d", got, rows)
	}
}

// TestValuesThatDoNotParse requires the errors of the protocol for the same values.
func TestValuesThatDoNotParse(t *testing.T) {
	b := newSite(t).owner()
	for _, c := range []struct{ kind, value, message string }{
		{"Edm.Int32", "abc", "An error occurred while processing this request."},
		{"Edm.DateTime", "junk", "An error occurred while processing this request."},
		{"Edm.DateTime", "1600-12-31T23:59:59Z", "The 'a' parameter of value '12/31/1600 23:59:59' is out of range."},
	} {
		var got explorer.Failure
		b.want(http.StatusBadRequest, &got, "entity", object{
			"account": "first", "table": "Any", "op": "insert",
			"entity": object{"pk": "p", "rk": "r", "props": []object{{"name": "a", "type": c.kind, "value": c.value}}},
		})
		if got.Message != c.message {
			t.Errorf("%s %q: %+v, want %q", c.kind, c.value, got, c.message)
		}
	}
}
