package main

import (
	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/store"
)

func newTableDelete(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a table and all its entities",
		Args:  arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := a.writeStore(func(s store.Store) error { return s.DeleteTable(cmd.Context(), args[0]) })
			if err == nil {
				a.note("deleted table %s", args[0])
			}
			return a.ofTable(args[0], err)
		},
	}
}
