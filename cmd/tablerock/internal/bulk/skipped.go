package bulk

import (
	"fmt"
	"io"

	"github.com/tablerock-db/tablerock/internal/transfer"
)

// Skipped prints the rows that an import skips.
type Skipped struct {
	W      io.Writer
	Plural func(n int64, thing string) string // formats a number of things
}

// Row prints a skipped row.
func (s *Skipped) Row(e *transfer.LineError) { fmt.Fprintln(s.W, "tablerock: skipped "+e.Error()) }

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
