package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/bulk"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/output"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
)

// queryFlags are the flags of entity query.
type queryFlags struct {
	filter, selected         string
	top                      int
	fromPartition, fromRow   string
	reverse                  bool
	topGiven                 bool
	partitionGiven, rowGiven bool
}

// query returns the query of the flags.
func (f *queryFlags) query() (store.Query, error) {
	selected, err := splitList("--select", f.selected)
	if err != nil {
		return store.Query{}, err
	}
	e, err := parseFilter("--filter", f.filter)
	if err != nil {
		return store.Query{}, err
	}
	q := store.Query{Filter: e, Select: selected, Reverse: f.reverse, Limit: f.top}
	switch {
	case f.topGiven && f.top < 1:
		return q, usagef("--top %d: must be at least 1; omit it for all", f.top)
	case f.rowGiven && !f.partitionGiven:
		return q, usagef("--from-row needs --from-partition")
	case f.partitionGiven:
		q.From = &edm.Key{Partition: f.fromPartition, Row: f.fromRow}
	}
	if f.reverse && f.partitionGiven && !f.rowGiven {
		// Start at the last row of the partition. From would exclude its rows.
		q.From = nil
		last := filter.Bound{Kind: filter.AfterPartition, Key: edm.Key{Partition: f.fromPartition}}
		q.Filter = filter.And(q.Filter, filter.Keys(filter.Bound{}, last))
	}
	return q, nil
}

func newEntityQuery(a *app) *cobra.Command {
	var f queryFlags
	cmd := &cobra.Command{
		Use:   "query TABLE",
		Short: "Print the entities of a table",
		Long: `Print the entities of a table, or those that match a filter, in the order of their
keys.

  tablerock entity query Orders --filter "PartitionKey eq 'eu' and Total gt 50"`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			flags := cmd.Flags()
			f.topGiven, f.partitionGiven, f.rowGiven = flags.Changed("top"), flags.Changed("from-partition"), flags.Changed("from-row")
			q, err := f.query()
			if err != nil {
				return err
			}
			if q.Reverse && a.server != nil && a.server.Protocol() {
				return usagef("--reverse: the Table protocol of %s has no descending order; it works with --data and --backend only", a.dataName())
			}
			return a.ofTable(args[0], a.snapshot(func(s reader) error {
				return a.query(cmd.Context(), s, args[0], q)
			}))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.filter, "filter", "", "print only entities that match this OData `expression`")
	selectFlag(cmd, &f.selected)
	flags.IntVar(&f.top, "top", 0, "print at most `n` entities (default: all)")
	flags.StringVar(&f.fromPartition, "from-partition", "", "start at this `PartitionKey`")
	flags.StringVar(&f.fromRow, "from-row", "", "start at this `RowKey` of --from-partition")
	flags.BoolVar(&f.reverse, "reverse", false, "print in descending order, starting at --from-partition and --from-row")
	return cmd
}

// query prints the entities of a query, and a hint if there are none or if none has a
// selected property.
func (a *app) query(ctx context.Context, s reader, table string, q store.Query) error {
	src := bulk.Watch(s, q.Select)
	var from transfer.Querier = src
	if a.server != nil && a.output == output.Table {
		from = bulk.Hold(src) // a table runs the query several times, and a server has no snapshots
	}
	if err := a.printer().Entities(ctx, from, table, q); err != nil {
		return err
	}
	a.unseen(ctx, src, table, q)
	return nil
}

// unseen prints a hint if q has found nothing in src, or no row with a selected property.
func (a *app) unseen(ctx context.Context, src *bulk.Watched, table string, q store.Query) {
	switch {
	case src.Rows == 0:
		a.unmatched(ctx, src.Querier, table, q.Filter, q.Select)
	case len(src.Unseen) > 0:
		a.unmatched(ctx, src.Querier, table, nil, src.Unseen)
	}
}

// The number of entities that are read for a hint. Those of a server are one page.
const (
	hintRows       = 200_000
	hintServerRows = 1000
)

// unmatched prints a hint if the filter or the selected properties do not suit the table.
func (a *app) unmatched(ctx context.Context, s transfer.Querier, table string, e *filter.Expr, selected []string) {
	rows := hintRows
	if a.server != nil {
		rows = hintServerRows
	}
	if a.quiet {
		return
	}
	if text := hint.Unmatched(ctx, s, table, e, selected, rows); text != "" {
		a.note("%s", text)
	}
}
