package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/bulk"
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
			e, err := parseFilter("--filter", condition)
			if err != nil {
				return err
			}
			n, err := a.count(cmd.Context(), args[0], e)
			if err != nil {
				return err
			}
			return a.printer().Record(output.Record{{"entities", n}})
		},
	}
	a.where.Add(cmd.PersistentFlags())
	cmd.Flags().StringVar(&condition, "filter", "", "count only entities that match this OData `expression`")
	return cmd
}

// count returns the number of entities that match e, all if it is nil. It prints a hint if there
// are none.
func (a *app) count(ctx context.Context, table string, e *filter.Expr) (n int64, err error) {
	bar := a.newBar("count", 0)
	err = a.snapshot(func(s reader) error {
		n, err = bulk.Count(ctx, s, table, store.Query{Filter: e}, func(rows int64) { bar.Set(rows, 0) })
		if err == nil && n == 0 {
			a.unmatched(ctx, s, table, e, nil)
		}
		return err
	})
	bar.Done()
	return n, a.ofTable(table, err)
}
