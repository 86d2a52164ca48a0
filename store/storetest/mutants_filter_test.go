package storetest

import (
	"context"
	"regexp"
	"strings"

	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
)

// textComparison is a filter of testQueryFilterOrder on a String.
var textComparison = regexp.MustCompile(`^(PartitionKey eq 'values1') and V (lt|le|gt|ge) '(.*)'$`)

// byBytes sets a hook whose filters compare Strings by their bytes.
func byBytes(h *hooks) {
	h.query = func(ctx context.Context, table string, q store.Query) store.Cursor {
		m := textComparison.FindStringSubmatch(q.Filter.String())
		if m == nil {
			return h.mapStore.Query(ctx, table, q)
		}
		var err error
		if q.Filter, err = filter.Parse(m[1]); err != nil {
			panic(err)
		}
		c := h.mapStore.Query(ctx, table, q)
		return &wrapped{Cursor: c, next: func() bool {
			for c.Next() {
				v, _ := c.Row().Lookup("V")
				if comparisons[m[2]](strings.Compare(string(v.Bytes()), m[3])) {
					return true
				}
			}
			return false
		}}
	}
}

// rewritten sets a hook that replaces what pattern matches in the texts of filters.
func rewritten(h *hooks, pattern, by string) {
	re := regexp.MustCompile(pattern)
	eachQuery(h, func(q *store.Query) {
		if text := q.Filter.String(); re.MatchString(text) {
			var err error
			if q.Filter, err = filter.Parse(re.ReplaceAllString(text, by)); err != nil {
				panic(err)
			}
		}
	})
}

// countingCursor is a mapCursor with Examined.
type countingCursor struct{ *mapCursor }

// Examined implements store.Examiner.
func (c countingCursor) Examined() int { return c.examined }

// filterMutants break rules about filters, and about what a query examines.
var filterMutants = []mutant{
	{"filters compare Strings by bytes", "QueryFilterOrder", false, byBytes},
	{"filters compare Int64 as Double", "QueryFilterOrder", false, func(h *hooks) { rewritten(h, `(\d{16,})L`, "$1.0") }},
	{"filters ignore the case of names", "QueryFilter", false, func(h *hooks) { rewritten(h, `\bn\b`, "N") }},
	{"Budget counts the rows that match", "PagesOfBudget", true, func(h *hooks) {
		h.query = func(ctx context.Context, table string, q store.Query) store.Cursor {
			if q.Budget > 0 && (q.Limit == 0 || q.Limit > q.Budget) {
				q.Limit = q.Budget
			}
			q.Budget = min(q.Budget, 0)
			return countingCursor{h.mapStore.Query(ctx, table, q).(*mapCursor)}
		}
	}},
	{"a page has at most 1,000 rows", "QueryWhileWriting", false, func(h *hooks) {
		eachQuery(h, func(q *store.Query) { q.Limit = min(q.Limit, 1000) })
	}},
}
