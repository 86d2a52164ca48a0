package main

import (
	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

func newEntityDelete(a *app) *cobra.Command {
	var etag string
	cmd := &cobra.Command{
		Use:   "delete TABLE PARTITIONKEY ROWKEY",
		Short: "Delete an entity",
		Args:  arguments(3, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkIfMatch(etag); err != nil {
				return err
			}
			key := edm.Key{Partition: args[1], Row: args[2]}
			err := a.writeStore(func(s store.Store) error {
				_, err := s.Apply(cmd.Context(), args[0], store.Delete(key, edm.ETag(etag)))
				return err
			})
			return a.ofEntity(args[0], key, err)
		},
	}
	ifMatchFlag(cmd, &etag)
	return cmd
}
