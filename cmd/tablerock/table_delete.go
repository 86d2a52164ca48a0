package main

import (
	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/where"
	"github.com/tablerock-db/tablerock/store"
)

func newTableDelete(a *app) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a table and all its entities",
		Long: `Delete a table and all its entities. It asks on a terminal; elsewhere it needs --yes.
"tablerock clear" deletes the entities and keeps the table.` + where.Help,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.confirm(cmd.Context(), yes, "delete table %s and all its entities in %s", args[0], a.dataName()); err != nil {
				return err
			}
			err := a.writeStore(func(s store.Store) error { return s.DeleteTable(cmd.Context(), args[0]) })
			if err == nil {
				a.note("deleted table %s", args[0])
			}
			return a.ofTable(args[0], err)
		},
	}
	yesFlag(cmd, &yes)
	return cmd
}
