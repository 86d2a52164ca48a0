package main

import (
	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/engine"
)

func newTableList(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List all tables",
		Args:  arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.read(func(db *engine.DB) error {
				tables, err := db.Tables(cmd.Context(), "", 0)
				if err != nil {
					return err
				}
				var list []record
				for _, t := range tables {
					list = append(list, record{{"TableName", t.Name}, {"Created", t.Created.String()}})
				}
				return a.printList([]string{"TableName", "Created"}, list)
			})
		},
	}
}
