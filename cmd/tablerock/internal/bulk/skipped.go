package bulk

import (
	"errors"
	"fmt"
	"io"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/quantity"
	"github.com/tablerock-db/tablerock/internal/transfer"
)

// maxSkipped limits the skipped rows that are printed.
const maxSkipped = 20

// Skipped prints the first rows that an import skips, and how many there are.
type Skipped struct {
	W io.Writer
	// Hold reports whether to print the rows at the end of the import, and none if its file is
	// damaged. It is for compressed files, whose damage shows as bad rows first.
	Hold    func() bool
	rows    int64
	held    []string
	damaged bool
}

// Row prints a skipped row if it is one of the first.
func (s *Skipped) Row(e *transfer.LineError) {
	if s.rows++; s.rows > maxSkipped {
		return
	}
	text := "tablerock: skipped " + e.Error()
	if s.Hold() {
		s.held = append(s.held, text)
		return
	}
	fmt.Fprintln(s.W, text)
}

// End prints what was held, and how many rows were not printed. Call it after the import, which
// ended with err.
func (s *Skipped) End(err error) {
	damage := (*transfer.DamageError)(nil)
	if s.damaged = errors.As(err, &damage); s.damaged {
		return
	}
	for _, text := range s.held {
		fmt.Fprintln(s.W, text)
	}
	if more := s.rows - maxSkipped; more > 0 {
		fmt.Fprintf(s.W, "tablerock: ... and %s\n", quantity.Plural(more, "more row"))
	}
}

// Summary prints how many rows an import has skipped, and in how many lines they are if
// these are more. It prints nothing if there are none, or if the file is damaged.
func (s *Skipped) Summary(p transfer.Progress) {
	if p.Skipped == 0 || s.damaged {
		return
	}
	text := quantity.Plural(p.Skipped, "bad row")
	if p.SkippedLines > p.Skipped {
		text += " in " + quantity.Plural(p.SkippedLines, "line")
	}
	fmt.Fprintln(s.W, "tablerock: skipped "+text)
}
