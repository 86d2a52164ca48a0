package main

import (
	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/store"
)

func newEntityUpsert(a *app) *cobra.Command {
	replace := false
	cmd := &cobra.Command{
		Use:   "upsert TABLE [JSON|-]",
		Short: "Insert an entity, or set the given properties of an existing one",
		Long:  "Insert an entity, or set the given properties of an existing one." + entityHelp,
		Args:  arguments(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := a.readEntity(cmd.Context(), args)
			if err != nil {
				return err
			}
			op := store.InsertOrMerge(e)
			if replace {
				op = store.InsertOrReplace(e)
			}
			return a.apply(cmd.Context(), args[0], op)
		},
	}
	cmd.Flags().BoolVar(&replace, "replace", false, "replace all properties of an existing entity")
	return cmd
}
