package main

import (
	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/datadir"
	"github.com/tablerock-db/tablerock/store"
)

// tableNames returns the tables of the account, for a shell that completes cmd.
func (a *app) tableNames(cmd *cobra.Command) (names []string) {
	_ = setFromEnvironment(cmd.Flags()) // a shell needs no error
	if c := a.location(cmd); c.NamesBackend() {
		a.quiet = true
		if a.server, _ = a.where.Of(cmd, c, nil); a.server == nil {
			return nil
		}
	}
	_ = a.readStore(func(s store.Store) error {
		tables, err := s.Tables(cmd.Context(), "", 0)
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
	names, _ := datadir.Accounts(a.data)
	return names
}
