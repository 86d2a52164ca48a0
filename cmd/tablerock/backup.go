package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/backups"
	"github.com/tablerock-db/tablerock/engine"
)

func init() {
	commands = append(commands,
		func(a *app) *cobra.Command { return a.backups().Command() },
		func(a *app) *cobra.Command { return a.backups().Restore() })
}

// backups returns the environment of the commands for backups.
func (a *app) backups() *backups.Env {
	said := false
	return &backups.Env{
		Group: group, Args: arguments, Usage: usagef, Note: a.note, Printer: a.printer,
		Bar:  a.newByteBar,
		Data: func() string { return filepath.Clean(a.data) },
		Account: func() string {
			if !a.named {
				return ""
			}
			if !a.isTyped("account") && !said {
				said = true
				a.note("only account %s, which TABLEROCK_ACCOUNT names", a.account)
			}
			return a.account
		},
		Open: func(account string, work func(db *engine.DB) error) error {
			one := *a
			one.account = account
			return one.write(engine.Options{SegmentBytes: smallLog}, work)
		},
		Damaged: &quietError{exitCorrupt},
		Missing: a.missing,
	}
}
