package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
)

// countedContext ends with its nth call of Err.
type countedContext struct {
	context.Context
	n    int
	done chan struct{}
}

func (c *countedContext) Done() <-chan struct{} { return c.done }

func (c *countedContext) Err() error {
	if c.n--; c.n == 0 {
		close(c.done)
	}
	if c.n <= 0 {
		return context.Canceled
	}
	return nil
}

// TestContextEndsInQuery ends the ctx of a query at each of its checks. The next page begins
// behind the last row, wherever that was.
func TestContextEndsInQuery(t *testing.T) {
	race.SkipOneGoroutine(t)
	db := flushedRows(t, 1000, 64<<10)
	read := func(what string, q store.Query) {
		want := 0
		all := db.Query(t.Context(), table, q)
		for all.Next() {
			want++
		}
		check(t, what, errors.Join(all.Err(), all.Close()))
		for ends := 1; ; ends++ {
			ctx := &countedContext{t.Context(), ends, make(chan struct{})}
			c := db.Query(ctx, table, q)
			n := 0
			var last edm.Key
			for c.Next() {
				n++
				last = c.Row().Key()
			}
			resume, err := c.Resume(), c.Err()
			check(t, "Close", c.Close())
			if resume != nil && n > 0 {
				if order := resume.Compare(last); order == 0 || order > 0 == q.Reverse {
					t.Fatalf("%s, %d checks: resumes at %v after %v", what, ends, *resume, last)
				}
				rest := q
				rest.From = resume
				c := db.Query(t.Context(), table, rest)
				for c.Next() {
					n++
				}
				check(t, what, errors.Join(c.Err(), c.Close()))
				if n != want {
					t.Fatalf("%s, %d checks: %d rows, want %d", what, ends, n, want)
				}
			}
			if err == nil {
				return
			}
		}
	}
	for _, text := range []string{"", "N ge 1L"} {
		for _, fresh := range []bool{false, true} {
			for _, reverse := range []bool{false, true} {
				q := store.Query{Reverse: reverse}
				if text != "" {
					q.Filter = filter.MustParse(text)
				}
				read(fmt.Sprintf("filter %q, fresh %v, reverse %v", text, fresh, reverse), q)
			}
			if !fresh {
				apply(t, db, store.InsertOrReplace(entity("p", "00500", 5, 20)))
			}
		}
	}
}
