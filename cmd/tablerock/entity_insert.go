package main

import (
	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/store"
)

func newEntityInsert(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "insert TABLE [JSON|-]",
		Short: "Insert an entity that does not exist",
		Long:  "Insert an entity that does not exist." + entityHelp,
		Args:  arguments(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := a.readEntity(cmd.Context(), args)
			if err != nil {
				return err
			}
			return a.apply(cmd.Context(), args[0], store.Insert(e))
		},
	}
}
