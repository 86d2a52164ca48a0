package main

import (
	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/edm"
)

func newEntityGet(a *app) *cobra.Command {
	var selected string
	cmd := &cobra.Command{
		Use:   "get TABLE PARTITIONKEY ROWKEY",
		Short: "Print an entity",
		Args:  arguments(3, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := splitList("--select", selected)
			if err != nil {
				return err
			}
			key := edm.Key{Partition: args[1], Row: args[2]}
			return a.ofEntity(args[0], key, a.snapshot(func(s reader) error {
				e, err := s.Get(cmd.Context(), args[0], key)
				if err != nil {
					return err
				}
				e.Properties = selectProperties(e.Properties, list)
				return a.printer().Entity(cmd.Context(), args[0], e, list)
			}))
		},
	}
	selectFlag(cmd, &selected)
	return cmd
}
