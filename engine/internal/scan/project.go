package scan

import (
	"slices"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
)

// projection is a row with only the selected properties. It finds them once for
// each shape, not for each row.
type projection struct {
	names []string
	row   codec.ShapedRow
	shape *codec.Shape
	index []int // of the selected properties, in stored order
}

func (p *projection) show(row codec.ShapedRow) {
	p.row = row
	shape := row.Shape()
	if shape == p.shape {
		return
	}
	p.shape = shape
	p.index = p.index[:0]
	for i := range shape.Len() {
		if slices.Contains(p.names, shape.Name(i)) {
			p.index = append(p.index, i)
		}
	}
}

func (p *projection) AppendPartition(dst []byte) []byte { return p.row.AppendPartition(dst) }
func (p *projection) AppendRow(dst []byte) []byte       { return p.row.AppendRow(dst) }
func (p *projection) Key() edm.Key                      { return p.row.Key() }
func (p *projection) Timestamp() edm.Ticks              { return p.row.Timestamp() }
func (p *projection) Len() int                          { return len(p.index) }

func (p *projection) At(i int) (string, edm.Value) { return p.row.At(p.index[i]) }

func (p *projection) Lookup(name string) (edm.Value, bool) {
	if !slices.Contains(p.names, name) {
		return edm.Value{}, false
	}
	return p.row.Lookup(name)
}
