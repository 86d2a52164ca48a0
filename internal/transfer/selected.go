package transfer

import (
	"slices"

	"github.com/tablerock-db/tablerock/edm"
)

// selectedRow is a row whose properties have the order of a Query.Select.
type selectedRow struct {
	edm.Row
	selected []string // without duplicates
	present  []int    // indexes of the selected names that the row has
}

func newSelectedRow(selected []string) *selectedRow {
	r := &selectedRow{}
	for _, name := range selected {
		if !slices.Contains(r.selected, name) {
			r.selected = append(r.selected, name)
		}
	}
	return r
}

// of makes r a view of row, valid as long as row and until the next call.
func (r *selectedRow) of(row edm.Row) edm.Row {
	r.Row, r.present = row, r.present[:0]
	for i, name := range r.selected {
		if _, ok := row.Lookup(name); ok {
			r.present = append(r.present, i)
		}
	}
	return r
}

// Len implements edm.Row.
func (r *selectedRow) Len() int { return len(r.present) }

// At implements edm.Row.
func (r *selectedRow) At(i int) (string, edm.Value) {
	name := r.selected[r.present[i]]
	v, _ := r.Lookup(name)
	return name, v
}
