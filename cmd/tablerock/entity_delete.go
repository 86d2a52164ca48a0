package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/quantity"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/where"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

func newEntityDelete(a *app) *cobra.Command {
	var etag, condition string
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete TABLE [PARTITIONKEY ROWKEY]",
		Short: "Delete an entity, or those that match a filter",
		Long: `Delete the entity with a key, or all entities that match --filter. For a filter it
shows their number and asks on a terminal; elsewhere it needs --yes. An entity that
somebody changes meanwhile is kept. After an interruption the same command goes on.

  tablerock entity delete Orders --filter "Total eq 0 and PartitionKey lt '2024'"` + where.Help,
		Args: arguments(1, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("filter") {
				if len(args) > 1 || cmd.Flags().Changed("if-match") {
					return usagef("--filter excludes a key and --if-match: %s", cmd.UseLine())
				}
				return a.deleteMatches(cmd.Context(), args[0], condition, yes)
			}
			if len(args) < 3 {
				return usagef("give a PartitionKey and a RowKey, or --filter: %s", cmd.UseLine())
			}
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
	cmd.Flags().StringVar(&condition, "filter", "", "delete all entities that match this OData `expression`")
	yesFlag(cmd, &yes)
	return cmd
}

// deleteMatches deletes the entities that match a condition, after a question that says how
// many there are.
func (a *app) deleteMatches(ctx context.Context, table, condition string, yes bool) error {
	e, err := parseFilter("--filter", condition)
	if err != nil {
		return err
	}
	if e == nil {
		return usagef(`--filter is empty; "tablerock clear" deletes all entities of a table`)
	}
	if !yes {
		if err := a.canAsk(fmt.Sprintf("delete entities of table %s in %s", table, a.dataName())); err != nil {
			return err
		}
	}
	n, err := a.count(ctx, table, e)
	if err != nil {
		return err
	}
	if n > 0 {
		if err := a.confirm(ctx, yes, "delete %s of table %s in %s", quantity.Plural(n, "entity"), table, a.dataName()); err != nil {
			return err
		}
	}
	return a.deleteRows(ctx, "delete", table, e)
}
