package bulk

import (
	"fmt"
	"io"

	"github.com/tablerock-db/tablerock/internal/transfer"
)

// maxSkipped limits the skipped rows that are printed.
const maxSkipped = 20

// Skipped prints the first rows that an import skips, and how many there are.
type Skipped struct {
	W      io.Writer
	Plural func(n int64, thing string) string // formats a number of things
	rows   int64
}

// Row prints a skipped row if it is one of the first.
func (s *Skipped) Row(e *transfer.LineError) {
	if s.rows++; s.rows <= maxSkipped {
		fmt.Fprintln(s.W, "tablerock: skipped "+e.Error())
	}
}

// End prints how many rows were not printed. Call it after the import.
func (s *Skipped) End() {
	if more := s.rows - maxSkipped; more > 0 {
		fmt.Fprintf(s.W, "tablerock: ... and %s\n", s.Plural(more, "more row"))
	}
}

// Summary prints how many rows an import has skipped, and in how many lines they are if
// these are more. It prints nothing if there are none.
func (s *Skipped) Summary(p transfer.Progress) {
	if p.Skipped == 0 {
		return
	}
	text := s.Plural(p.Skipped, "bad row")
	if p.SkippedLines > p.Skipped {
		text += " in " + s.Plural(p.SkippedLines, "line")
	}
	fmt.Fprintln(s.W, "tablerock: skipped "+text)
}
