package main

import (
	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/output"
	"github.com/tablerock-db/tablerock/store"
)

func newTableList(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List all tables",
		Args:  arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.readStore(func(s store.Store) error {
				tables, err := s.Tables(cmd.Context(), "", 0)
				if err != nil {
					return err
				}
				var list []output.Record
				columns := []string{"TableName", "Created"}
				if a.server != nil && a.server.Protocol() {
					columns = columns[:1] // the protocol does not have the time
				}
				for _, t := range tables {
					list = append(list, output.Record{{"TableName", t.Name}, {"Created", t.Created.String()}}[:len(columns)])
				}
				return a.printer().List(columns, list)
			})
		},
	}
}
