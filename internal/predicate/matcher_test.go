package predicate

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
)

// testShape is the names of the properties of an entity.
type testShape struct{ names []string }

func (s *testShape) Index(name string) int { return slices.Index(s.names, name) }

// TestMatchManyShapes matches rows of more shapes than a Matcher remembers: after the first of
// them it does not allocate.
func TestMatchManyShapes(t *testing.T) {
	var shapes []*testShape
	var rows []edm.Row
	for i := range 5 * maxBindings {
		names := []string{fmt.Sprint("a", i), "p", fmt.Sprint("b", i)}
		var e edm.Entity
		for k, name := range names {
			e.Properties = append(e.Properties, edm.Property{Name: name, Value: edm.Int32(int32(k))})
		}
		shapes, rows = append(shapes, &testShape{names}), append(rows, e.View())
	}
	m := NewMatcher(Compile(NewAnd(NewCompare("p", Eq, edm.Int32(1)), NewCompare("b7", Eq, edm.Int32(2)))))
	matches := 0
	if n := testing.AllocsPerRun(10, func() {
		matches = 0
		for i, row := range rows {
			if m.Match(shapes[i], row) {
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
