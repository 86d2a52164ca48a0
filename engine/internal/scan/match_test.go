package scan

import (
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/filter"
)

// TestMatchManyShapes matches rows of more shapes than a query remembers: after the first of
// them it does not allocate.
func TestMatchManyShapes(t *testing.T) {
	var rows []*shapedRow
	for i := range 5 * maxBindings {
		rows = append(rows, newShapedRow([]string{fmt.Sprint("a", i), "p", fmt.Sprint("b", i)}))
	}
	var m matcher
	m.init(filter.MustParse("p eq 1 and b7 ne 5"))
	matches := 0
	if n := testing.AllocsPerRun(10, func() {
		matches = 0
		for _, row := range rows {
			if m.matches(row) {
				matches++
			}
		}
	}); n > 0 {
		t.Errorf("%v allocations for %d rows", n, len(rows))
	}
	if matches != 1 || len(m.bindings) > maxBindings {
		t.Errorf("%d rows match, %d bindings are kept", matches, len(m.bindings))
	}
}
