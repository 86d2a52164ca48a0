package storetest

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// queryMutants break rules about queries.
var queryMutants = []mutant{
	{"From is exclusive", "QueryFrom", true, func(h *hooks) {
		eachQuery(h, func(q *store.Query) {
			if q.From != nil && !q.Reverse {
				q.From = &edm.Key{Partition: q.From.Partition, Row: q.From.Row + "\x01"}
			}
		})
	}},
	{"an illegal From starts at its partition", "QueryFromNoKey", false, func(h *hooks) {
		eachQuery(h, func(q *store.Query) {
			if q.From != nil && strings.Contains(q.From.Row, "/") && !q.Reverse && q.Filter != nil {
				q.From = &edm.Key{Partition: q.From.Partition}
			}
		})
	}},
	{"From counts code points", "QueryFrom", true, func(h *hooks) {
		h.query = func(ctx context.Context, table string, q store.Query) store.Cursor {
			from := q.From
			if from == nil || q.Reverse || q.Limit > 0 || q.Budget > 0 {
				return h.mapStore.Query(ctx, table, q)
			}
			q.From = nil
			c := h.mapStore.Query(ctx, table, q)
			return &wrapped{Cursor: c, next: func() bool {
				for c.Next() {
					if k := c.Row().Key(); k.Partition > from.Partition || k.Partition == from.Partition && k.Row >= from.Row {
						return true
					}
				}
				return false
			}}
		}
	}},
	{"Reverse forgets From", "QueryFrom", true, func(h *hooks) {
		eachQuery(h, func(q *store.Query) {
			if q.Reverse && q.Limit == 0 {
				q.From = nil
			}
		})
	}},
	{"order of code points", "QueryOrder", true, func(h *hooks) {
		h.query = func(ctx context.Context, table string, q store.Query) store.Cursor {
			c := h.mapStore.Query(ctx, table, q).(*mapCursor)
			if !q.Reverse {
				slices.SortFunc(c.todo, func(a, b *edm.Entity) int {
					if n := strings.Compare(a.Key.Partition, b.Key.Partition); n != 0 {
						return n
					}
					return strings.Compare(a.Key.Row, b.Key.Row)
				})
			}
			return c
		}
	}},
	{"a negative limit is no limit", "QueryNegative", false, func(h *hooks) {
		eachQuery(h, func(q *store.Query) {
			q.Limit, q.Budget, q.BudgetBytes = max(q.Limit, 0), max(q.Budget, 0), max(q.BudgetBytes, 0)
		})
	}},
	{"a page has one row too many", "Pages", true, func(h *hooks) {
		eachQuery(h, func(q *store.Query) {
			if q.Limit > 3 {
				q.Limit++
			}
		})
	}},
	{"a page ends after the row beyond BudgetBytes", "PagesOfBytes", true, func(h *hooks) {
		eachQuery(h, func(q *store.Query) {
			if q.BudgetBytes > 1 {
				q.BudgetBytes *= 4
			}
		})
	}},
	{"BudgetBytes ends a page after each row", "PagesOfBytes", true, func(h *hooks) {
		eachQuery(h, func(q *store.Query) {
			if q.BudgetBytes > 0 {
				q.BudgetBytes, q.Limit = 0, 1
			}
		})
	}},
	{"BudgetBytes has no resume key", "PagesOfBytes", true, func(h *hooks) {
		h.query = func(ctx context.Context, table string, q store.Query) store.Cursor {
			c := h.mapStore.Query(ctx, table, q)
			return &wrapped{Cursor: c, resume: func() *edm.Key {
				if q.BudgetBytes > 0 && q.Limit == 0 && q.Budget == 0 {
					return nil
				}
				return c.Resume()
			}}
		}
	}},
	{"pages resume at the last row", "Pages", true, func(h *hooks) {
		resumeAt(h, func(last, next *edm.Key) *edm.Key {
			if next != nil && last != nil {
				return last
			}
			return next
		})
	}},
	{"pages that match nothing have no end", "PagesOfBudget", true, func(h *hooks) {
		resumeAt(h, func(last, next *edm.Key) *edm.Key {
			if last == nil {
				return nil
			}
			return next
		})
	}},
	{"a full page always resumes", "PageEnds", false, func(h *hooks) {
		resumeAt(h, func(last, next *edm.Key) *edm.Key {
			if next == nil && last != nil {
				next = &edm.Key{Partition: last.Partition, Row: last.Row + " "}
			}
			return next
		})
	}},
	{"a row is lost between pages", "Pages", true, func(h *hooks) {
		resumeAt(h, func(_, next *edm.Key) *edm.Key {
			if next != nil {
				next.Row += " "
			}
			return next
		})
	}},
	{"the filter forgets ranges", "QueryKeys", false, func(h *hooks) {
		h.query = func(ctx context.Context, table string, q store.Query) store.Cursor {
			all := q
			all.Filter = nil
			c := h.mapStore.Query(ctx, table, all).(*mapCursor)
			c.query.Filter = q.Filter
			return c
		}
	}},
	{"an open cursor mixes two versions of a row", "QueryWhileWriting", false, func(h *hooks) {
		h.query = func(ctx context.Context, table string, q store.Query) store.Cursor {
			c := h.mapStore.Query(ctx, table, q)
			return &wrapped{Cursor: c, row: func() edm.Row {
				e := edm.EntityOf(c.Row())
				if now, err := h.mapStore.Get(ctx, table, e.Key); err == nil {
					e.Timestamp = now.Timestamp
				}
				return e.View()
			}}
		}
	}},
	{"an open cursor skips the row after a write", "QueryWhileWriting", false, func(h *hooks) {
		afterWrite(h, func(c *mapCursor) {
			if len(c.todo) > 4 {
				c.todo = c.todo[4:]
			}
		})
	}},
	{"an open cursor returns a key again after a write", "QueryWhileWriting", false, func(h *hooks) {
		afterWrite(h, func(c *mapCursor) {
			if c.returned > 0 {
				again := c.row
				c.todo = slices.Insert(c.todo, 0, &again)
			}
		})
	}},
	{"an open cursor keeps the state for later queries", "QueryWhileWriting", false, func(h *hooks) {
		var kept *mapStore
		h.query = func(ctx context.Context, table string, q store.Query) store.Cursor {
			if kept == nil {
				kept = clone(h.mapStore)
			}
			return kept.Query(ctx, table, q)
		}
	}},
	{"Select adds nothing but sorts", "QuerySelect", true, func(h *hooks) {
		h.query = func(ctx context.Context, table string, q store.Query) store.Cursor {
			c := h.mapStore.Query(ctx, table, q)
			return &wrapped{Cursor: c, row: func() edm.Row {
				e := edm.EntityOf(c.Row())
				if q.Select != nil {
					slices.SortFunc(e.Properties, func(a, b edm.Property) int {
						return slices.Index(q.Select, a.Name) - slices.Index(q.Select, b.Name)
					})
				}
				return e.View()
			}}
		}
	}},
	{"a cursor keeps the memory of Select", "QueryOwned", false, func(h *hooks) {
		h.query = func(ctx context.Context, table string, q store.Query) store.Cursor {
			c := h.mapStore.Query(ctx, table, q).(*mapCursor)
			c.query.Select = q.Select
			return c
		}
	}},
	{"an empty Select shows all", "QuerySelect", true, func(h *hooks) {
		eachQuery(h, func(q *store.Query) {
			if len(q.Select) == 0 {
				q.Select = nil
			}
		})
	}},
	{"the end of ctx ends the result", "QueryContext", false, func(h *hooks) {
		h.query = func(ctx context.Context, table string, q store.Query) store.Cursor {
			c := h.mapStore.Query(ctx, table, q)
			return &wrapped{Cursor: c, resume: func() *edm.Key {
				if c.Err() != nil {
					return nil
				}
				return c.Resume()
			}}
		}
	}},
	{"the end of ctx after some rows begins anew", "QueryContext", false, func(h *hooks) {
		resumeAtEnd(h, func(q store.Query, _ *edm.Key) *edm.Key {
			if q.From == nil {
				return nil
			}
			return &edm.Key{Partition: q.From.Partition, Row: q.From.Row}
		})
	}},
	{"the end of ctx before the first row loses it", "QueryContext", false, func(h *hooks) {
		resumeAtEnd(h, func(_ store.Query, last *edm.Key) *edm.Key {
			if last == nil {
				return &edm.Key{Partition: "a", Row: "01"}
			}
			return last
		})
	}},
	{"the end of ctx at the end of the result begins anew", "QueryContext", false, func(h *hooks) {
		h.query = func(ctx context.Context, table string, q store.Query) store.Cursor {
			c := h.mapStore.Query(ctx, table, q)
			return &wrapped{Cursor: c, err: func() error {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				return c.Err()
			}}
		}
	}},
	{"ctx is ignored", "QueryContext", false, func(h *hooks) {
		h.query = func(ctx context.Context, table string, q store.Query) store.Cursor {
			return h.mapStore.Query(context.WithoutCancel(ctx), table, q)
		}
	}},
	{"the cause of ctx instead of its error", "QueryContext", false, func(h *hooks) {
		eachResult(h, func(_ string, _ []store.Op, r []store.Result, err error) ([]store.Result, error) {
			if err == context.Canceled {
				err = errors.New("the cause")
			}
			return r, err
		})
	}},
	{"the row of a cursor moves when it is read", "QueryRow", false, func(h *hooks) {
		h.query = func(ctx context.Context, table string, q store.Query) store.Cursor {
			c := h.mapStore.Query(ctx, table, q)
			first := true
			return &wrapped{Cursor: c, row: func() edm.Row {
				e := edm.EntityOf(c.Row())
				if len(e.Properties) > 1 && !first {
					e.Properties[0], e.Properties[1] = e.Properties[1], e.Properties[0]
				}
				first = !first
				return e.View()
			}}
		}
	}},
}
