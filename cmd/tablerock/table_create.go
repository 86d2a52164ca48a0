package main

import (
	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
)

func newTableCreate(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "create NAME",
		Short: "Create an empty table",
		Args:  arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := a.createStore(engine.Options{SegmentBytes: smallLog}, func(s store.Store) error { return s.CreateTable(cmd.Context(), args[0]) })
			if err == nil {
				a.note("created table %s in %s", args[0], a.dataName())
			}
			return a.ofTable(args[0], err)
		},
	}
}
