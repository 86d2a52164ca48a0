package main

import (
	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

func newEntityUpdate(a *app, name, short string, op func(edm.Entity, edm.ETag) store.Op) *cobra.Command {
	var etag string
	cmd := &cobra.Command{
		Use:   name + " TABLE [JSON|-]",
		Short: short,
		Long:  short + "." + entityHelp,
		Args:  arguments(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkIfMatch(etag); err != nil {
				return err
			}
			e, err := a.readEntity(cmd.Context(), args)
			if err != nil {
				return err
			}
			return a.apply(cmd.Context(), args[0], op(e, edm.ETag(etag)))
		},
	}
	ifMatchFlag(cmd, &etag)
	return cmd
}
