package selection

import (
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/sstable/internal/columnchunk"
	"github.com/tablerock-db/tablerock/sstable/internal/rowgroup"
)

// selectMixed is Select for a group whose rows have several shapes. If half of the rows or fewer are in
// set, it costs less to test one after the other than to gather columns, and the memory of many columns
// would be too much.
func (s *Selector) selectMixed(set *predicate.Bits) error {
	s.gathers = set.Len() > s.head.Rows()/2 && len(s.program.Names()) <= columnchunk.MaxColumns
	if s.gathers && s.gathered == nil {
		s.gathered = make([]columnchunk.Gathered, len(s.program.Names()))
	}
	for i := range s.gathered {
		s.gathered[i].Reset()
	}
	s.program.Select((*mixed)(s), set)
	return s.row.Err()
}

// Gathered returns a custom property, an index in Columns, of the group of the last Select, whose
// rows have several shapes. It reads nothing outside the head, so that the column may not be
// Complete. It returns nil if no chunk can hold the column, and reports false if Select gathered no
// columns. The result is valid until the next Select.
func (s *Selector) Gathered(i int) (g *columnchunk.Gathered, ok bool) {
	if !s.gathers {
		return nil, false
	}
	g = &s.gathered[i]
	switch {
	case !g.Begin(s.head, s.program.Columns()[i]):
		return nil, true
	case !g.Complete() && g.InHead():
		g.GatherWords(s.row)
	}
	return g, true
}

// mixed implements predicate.Rows for a group whose rows have several shapes.
type mixed Selector

// Keep implements predicate.Rows.
func (s *mixed) Keep(t *predicate.Term, set *predicate.Bits) {
	column, dense := s.program.Column(t), set.Len() > s.head.Rows()/denseShare
	switch {
	case column < 0 || !s.gathers: // a key
	case column == len(s.gathered):
		if dense {
			w := s.head.Timestamps()
			t.Test(edm.TypeDateTime).KeepWords(&w, s.head.Rows(), set)
			return
		}
	default:
		g := &s.gathered[column]
		// For a chunk that lacks it, a column is gathered for the few rows that other terms left, too.
		wanted := s.texts[column].how != CaptureNone
		if (dense || wanted) && g.Begin(s.head, t.Name) && (dense || g.InHead()) && s.keepGathered(g, t, column, set) {
			return
		}
	}
	for at := set.After(-1); at >= 0; at = set.After(at) {
		if s.row.Set(at); !s.matcher.Bind(s.row.Shape()).Test(t, s.row) {
			set.Remove(at)
		}
	}
}

// keepGathered is Keep for a column that has begun. It reports false if the values must be tested
// row by row.
func (s *mixed) keepGathered(g *columnchunk.Gathered, term *predicate.Term, column int, set *predicate.Bits) bool {
	t := term.Test(g.Type)
	switch {
	case t.Kind == predicate.Never: // or the rows do not have the property
		*set = predicate.Bits{}
		return true
	case t.Kind == predicate.Always:
		g.Present(set)
		return true
	case t.Kind == predicate.Texts || t.Kind == predicate.Blobs:
		if g.Present(set); g.Kind != rowgroup.Codes {
			s.keepTexts(g, t, s.texts[column].how, set)
			return true
		}
	default:
		if !g.Complete() {
			g.GatherWords(s.row)
		}
		g.Present(set)
	}
	return keepValues(t, values{g.Kind, g.Words, g.Booleans, g}, g.Rows, set)
}

// keepTexts is Keep for the rows of set, which have Strings or Binaries in the column.
func (s *mixed) keepTexts(g *columnchunk.Gathered, t *predicate.Test, how Capture, set *predicate.Bits) {
	collect := how != CaptureNone && !g.Complete() && g.All(set)
	if collect {
		g.BeginTexts()
	}
	rest := *set
	*set = predicate.Bits{}
	for at := rest.After(-1); at >= 0; at = rest.After(at) {
		text := g.Text(s.row, at)
		if s.row.Err() != nil {
			return
		}
		if collect {
			g.AddText(at, text)
		}
		if t.Bytes(text) {
			set.Add(at)
		}
	}
	if collect {
		g.EndTexts()
	}
}
