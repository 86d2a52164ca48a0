// Package upkeep has the commands that check, compact and copy a database as a whole.
package upkeep

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/output"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/progress"
	"github.com/tablerock-db/tablerock/engine"
)

// Env is what the commands use of the program.
type Env struct {
	Args    func(lower, upper int) cobra.PositionalArgs
	Usage   func(format string, args ...any) error
	Note    func(format string, args ...any)
	Printer func() *output.Printer
	Stderr  io.Writer
	Rows    func(name string) *progress.Bar                              // of entities; nil without a terminal
	Bytes   func(name string, total int64) *progress.Bar                 // nil without a terminal
	Dir     func() string                                                // of the database
	Read    func(work func(db *engine.DB) error) error                   // an existing database, without its lock
	Write   func(o engine.Options, work func(db *engine.DB) error) error // an existing database
	Damaged error                                                        // ends the program after a list of damage
}

// smallLog is the size of log segments for commands that write little or nothing.
const smallLog = 1 << 20
