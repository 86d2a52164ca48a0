package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/bulk"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/output"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/where"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
)

func init() { commands = append(commands, newCount) }

func newCount(a *app) *cobra.Command {
	var condition string
	cmd := &cobra.Command{
		Use:   "count TABLE",
		Short: "Count the entities of a table",
		Long: `Read and count the entities of a table, or those that match a filter.

  tablerock count Orders --filter "PartitionKey eq 'eu'"` + where.Help,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := filter.Parse(condition)
			if err != nil {
				return fmt.Errorf("--filter: %w", hint.Filter(condition, err))
			}
			n, bar := int64(0), a.newBar("count", 0)
			err = a.snapshot(func(s reader) error {
				n, err = bulk.Count(cmd.Context(), s, args[0], store.Query{Filter: e}, func(rows int64) { bar.Set(rows, 0) })
				if err == nil && n == 0 {
					a.unmatched(cmd.Context(), s, args[0], e, nil)
				}
				return err
			})
			bar.Done()
			if err != nil {
				return a.ofTable(args[0], err)
			}
			return a.printer().Record(output.Record{{"entities", n}})
		},
	}
	a.where.Add(cmd.PersistentFlags())
	cmd.Flags().StringVar(&condition, "filter", "", "count only entities that match this OData `expression`")
	return cmd
}
