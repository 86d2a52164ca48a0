package main

import (
	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/progress"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/upkeep"
)

func init() {
	commands = append(commands,
		func(a *app) *cobra.Command { return a.upkeep().Checkpoint() },
		func(a *app) *cobra.Command { return a.upkeep().Compact() },
		func(a *app) *cobra.Command { return a.upkeep().Verify() })
}

// upkeep returns the environment of the commands for a database as a whole.
func (a *app) upkeep() *upkeep.Env {
	return &upkeep.Env{
		Args: arguments, Usage: usagef, Note: a.note, Printer: a.printer, Stderr: a.stderr,
		Rows:  func(name string) *progress.Bar { return a.newBar(name, 0) },
		Bytes: a.newByteBar,
		Dir:   a.dir, Read: a.read, Write: a.write,
		Damaged: &quietError{exitCorrupt},
	}
}
