package main

import (
	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/pgbackend"
)

func init() { commands = append(commands, newBackend) }

func newBackend(a *app) *cobra.Command {
	e := &pgbackend.Env{
		Group: group, Usage: usagef, Note: a.note, Printer: a.printer, Bar: a.newBar,
		Flags: &a.where.Backend, Failed: &quietError{exitFailure},
	}
	return e.Command()
}
