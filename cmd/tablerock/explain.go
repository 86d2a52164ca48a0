package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/output"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/internal/keyspan"
	"github.com/tablerock-db/tablerock/store"
)

func init() { commands = append(commands, newExplain) }

func newExplain(a *app) *cobra.Command {
	var condition string
	cmd := &cobra.Command{
		Use:   "explain TABLE",
		Short: "Run a query and print what it reads",
		Long: `Run a query and print what it reads: the ranges of keys, the groups of rows in files that
these ranges and the bounds of columns leave out, and the number of entities that it
examines. A line on standard error says if it reads a whole table or partition. It works
on a directory only, also beside the server that has it: a server does not say what it
reads.

  tablerock explain Orders --filter "PartitionKey eq 'eu' and Total gt 50"`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.server != nil {
				return usagef("explain: the Table protocol does not say what %s reads; it works with --data only", a.dataName())
			}
			e, err := parseFilter("--filter", condition)
			if err != nil {
				return err
			}
			return a.ofTable(args[0], a.snapshot(func(s reader) error {
				return a.explain(cmd.Context(), s, args[0], e)
			}))
		},
	}
	a.where.AddHidden(cmd.PersistentFlags())
	cmd.Flags().StringVar(&condition, "filter", "", "explain the query of the entities that match this OData `expression`")
	return cmd
}

// explain runs a query of a directory and prints what it reads.
func (a *app) explain(ctx context.Context, s reader, table string, e *filter.Expr) error {
	c := s.Query(ctx, table, store.Query{Filter: e, Select: []string{}})
	plan, err := c.(store.Explainer).Explain()
	returned := 0
	for err == nil && c.Next() {
		returned++
	}
	examined := c.(store.Examiner).Examined()
	if err = errors.Join(err, c.Err(), c.Close()); err != nil {
		return err
	}
	if reads, condition := keyspan.Advice(e.Ranges()); reads != "" {
		a.note("the query reads %s: a condition %s that is joined by \"and\" would limit it", reads, condition)
	}
	if returned == 0 {
		a.unmatched(ctx, s, table, e, nil)
	}
	var ranges []string
	r := output.Record{{"reads", keyspan.Of(e.Ranges()).String()}}
	for _, one := range e.Ranges() {
		ranges = append(ranges, keyspan.Describe(one))
		if a.output == output.Table {
			r = append(r, output.Field{Name: "range", Value: keyspan.Describe(one)})
		}
	}
	if a.output != output.Table {
		r = append(r, output.Field{Name: "ranges", Value: append([]string{}, ranges...)})
	}
	return a.printer().Record(append(r, output.Record{
		{"groups", plan.Groups},
		{"groups_outside_ranges", plan.Groups - plan.InRanges},
		{"groups_excluded_by_bounds", plan.Excluded},
		{"groups_to_read", plan.InRanges - plan.Excluded},
		{"entities_examined", examined},
		{"entities_found", returned},
	}...))
}
