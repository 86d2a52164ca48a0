package storetest

import (
	"fmt"
	"math"
	"strconv"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// comparisons are the operators of $filter, with their results for a value that is less than
// the literal (-1), equal to it (0) or greater (1).
var comparisons = map[string]func(order int) bool{
	"eq": func(order int) bool { return order == 0 },
	"ne": func(order int) bool { return order != 0 },
	"lt": func(order int) bool { return order < 0 },
	"le": func(order int) bool { return order <= 0 },
	"gt": func(order int) bool { return order > 0 },
	"ge": func(order int) bool { return order >= 0 },
}

// literal is a value with its text in a filter.
type literal struct {
	value edm.Value
	text  string
}

// ascending returns lists of values that can be compared, from the least to the greatest.
// Numbers of all types are in one list, and some of them are equal as float64.
func ascending() [][]literal {
	int32s := func(n int32) literal { return literal{edm.Int32(n), strconv.Itoa(int(n))} }
	int64s := func(n int64) literal { return literal{edm.Int64(n), strconv.FormatInt(n, 10) + "L"} }
	doubles := func(f float64) literal { return literal{edm.Double(f), strconv.FormatFloat(f, 'e', -1, 64)} }
	numbers := []literal{
		doubles(-1e300), int64s(math.MinInt64), int64s(math.MinInt64 + 1), int32s(math.MinInt32), int64s(-1), doubles(-0.5), int32s(0), doubles(5e-324),
		doubles(0.1), int32s(1), int32s(math.MaxInt32), doubles(1<<53 - 1), int64s(1 << 53), int64s(1<<53 + 1), doubles(1<<53 + 2), int64s(1<<53 + 3),
		int64s(math.MaxInt64 - 1), int64s(math.MaxInt64), doubles(1 << 63), doubles(1e300),
	}
	var texts, times []literal
	for _, s := range ordered {
		texts = append(texts, literal{edm.String(s), quoted(s)})
	}
	for _, ts := range []edm.Ticks{edm.MinTicks, 1<<57 - 1, 1 << 57, 1<<57 + 1, 1<<57 + 10, edm.MaxTicks} {
		times = append(times, literal{edm.DateTime(ts), "datetime'" + ts.Time().Format("2006-01-02T15:04:05.0000000Z") + "'"})
	}
	return [][]literal{numbers, texts, times}
}

// testQueryFilterOrder compares each of some values, as property and as key, with each of
// them as literal. Texts are in the order of their UTF-16 code units, numbers in that of
// their values, and no other type has an order with them.
func testQueryFilterOrder(t *tester) {
	s := t.openPeople()
	var list []edm.Entity
	for i, values := range ascending() {
		for j, v := range values {
			list = append(list, entity(fmt.Sprint("values", i), fmt.Sprintf("%02d", j), prop("V", v.value)))
		}
	}
	for _, text := range ordered {
		list = append(list, entity("row", text), entity(text, "partition"))
	}
	list = t.fill(s, list)
	of := map[edm.Key]edm.Entity{}
	for _, e := range list {
		of[e.Key] = e
	}
	for i, values := range ascending() {
		for j, v := range values {
			for operator, holds := range comparisons {
				var want []edm.Entity
				for k := range values {
					if holds(k - j) {
						want = append(want, of[key(fmt.Sprint("values", i), fmt.Sprintf("%02d", k))])
					}
				}
				t.wantFiltered(s, fmt.Sprintf("PartitionKey eq 'values%d' and V %s %s", i, operator, v.text), want)
			}
		}
	}
	for j, text := range ordered {
		for operator, holds := range comparisons {
			var rows, partitions []edm.Entity
			for k, other := range ordered {
				if holds(k - j) {
					rows, partitions = append(rows, of[key("row", other)]), append(partitions, of[key(other, "partition")])
				}
			}
			t.wantFiltered(s, fmt.Sprintf("PartitionKey eq 'row' and RowKey %s %s", operator, quoted(text)), rows)
			t.wantFiltered(s, fmt.Sprintf("RowKey eq 'partition' and PartitionKey %s %s", operator, quoted(text)), partitions)
		}
	}
}

// wantFiltered fails unless a query with the filter returns want.
func (t *tester) wantFiltered(s store.Store, text string, want []edm.Entity) {
	t.Helper()
	t.wantRows(text, s, store.Query{Filter: t.parse(text)}, want)
}
