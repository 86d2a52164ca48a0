package scan

import (
	"slices"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
)

// projection is a row with only the selected properties. It finds them once for
// each shape, not for each row.
type projection struct {
	names    []string            // at most maxScanNames
	set      map[string]struct{} // more names
	row      codec.ShapedRow
	shape    *codec.Shape
	index    []int  // of the selected properties, in stored order
	selected []bool // by property of shape
}

// maxScanNames is the longest list in which has compares name by name.
const maxScanNames = 8

// init selects names, whose memory it does not keep.
func (p *projection) init(names []string) {
	if len(names) <= maxScanNames {
		p.names = append(p.names[:0], names...)
		return
	}
	p.set = make(map[string]struct{}, len(names))
	for _, name := range names {
		p.set[name] = struct{}{}
	}
}

// reset forgets everything but memory to be used again.
func (p *projection) reset() {
	clear(p.names)
	*p = projection{names: p.names[:0], index: p.index, selected: p.selected}
}

// has reports whether name is selected.
func (p *projection) has(name string) bool {
	if p.set == nil {
		return slices.Contains(p.names, name)
	}
	_, ok := p.set[name]
	return ok
}

// load makes row the current one and reads its selected values.
func (p *projection) load(row codec.ShapedRow) error {
	p.show(row)
	for _, i := range p.index {
		if err := row.LoadAt(i); err != nil {
			return err
		}
	}
	return row.Err()
}

func (p *projection) show(row codec.ShapedRow) {
	p.row = row
	p.setShape(row.Shape())
}

// setShape finds the selected properties of a shape.
func (p *projection) setShape(shape *codec.Shape) {
	if shape == p.shape {
		return
	}
	p.shape = shape
	p.index, p.selected = p.index[:0], p.selected[:0]
	for i := range shape.Len() {
		has := p.has(shape.Name(i))
		p.selected = append(p.selected, has)
		if has {
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
	i := p.shape.Index(name)
	if i < 0 || !p.selected[i] {
		return edm.Value{}, false
	}
	_, v := p.row.At(i)
	return v, true
}
