package main

import (
	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/complete"
	"github.com/tablerock-db/tablerock/engine"
)

// tableNames returns the tables of the account, for a shell that completes cmd.
func (a *app) tableNames(cmd *cobra.Command) (names []string) {
	_ = setFromEnvironment(cmd.Flags()) // a shell needs no error
	_ = a.read(func(db *engine.DB) error {
		tables, err := db.Tables(cmd.Context(), "", 0)
		for _, t := range tables {
			names = append(names, t.Name)
		}
		return err
	})
	return names
}

// accountNames returns the accounts that have a database, for a shell that completes cmd.
func (a *app) accountNames(cmd *cobra.Command) []string {
	_ = setFromEnvironment(cmd.Flags()) // a shell needs no error
	return complete.Accounts(a.data)
}
