package rowgroup

import (
	"math"

	"github.com/tablerock-db/tablerock/sstable/internal/groupbounds"
)

// AppendBounds appends the bounds of the group, about limit bytes at most. Call it after AppendTo.
func (g *Builder) AppendBounds(dst []byte, shapes *Shapes, limit int) []byte {
	g.bounds.Reset()
	rows, first, last := 0, uint64(math.MaxInt64), uint64(0)
	for row, s := range g.sectionOf {
		if s > 0 {
			rows++
			first, last = min(first, g.times[row]), max(last, g.times[row])
		}
	}
	for _, s := range g.sections {
		for i, id := range s.shape.columns {
			if id == groupbounds.MaxColumns {
				continue
			}
			c := &s.columns[i]
			if !c.text() {
				c.bounds.AddWords(c.typ, c.words, c.more)
			}
			g.bounds.Add(id, c.typ, s.rows, &c.bounds)
		}
	}
	return g.bounds.AppendTo(dst, shapes.columns, rows, first, last, limit)
}

// AppendColumns appends the list of columns with which the bounds section begins.
func (t *Shapes) AppendColumns(dst []byte) []byte { return groupbounds.AppendColumns(dst, t.columns) }
