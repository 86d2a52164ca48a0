package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/bulk"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/quantity"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/where"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
)

func init() { commands = append(commands, newClear) }

func newClear(a *app) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "clear TABLE",
		Short: "Delete all entities of a table",
		Long: `Delete all entities of a table, and keep the table. It asks on a terminal; elsewhere it
needs --yes. After an interruption the same command goes on.` + where.Help,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.confirm(cmd.Context(), yes, "delete all entities of table %s in %s", args[0], a.dataName()); err != nil {
				return err
			}
			return a.deleteRows(cmd.Context(), "clear", args[0], nil)
		},
	}
	a.where.Add(cmd.PersistentFlags())
	yesFlag(cmd, &yes)
	return cmd
}

// deleteRows deletes the entities of a table that a filter keeps, or all if it is nil, and
// says how many these were.
func (a *app) deleteRows(ctx context.Context, name, table string, e *filter.Expr) error {
	var n bulk.Deleted
	bar := a.newBar(name, 0)
	err := a.writeStore(func(s store.Store) (err error) {
		n, err = bulk.Delete(ctx, s, table, e, func(rows int64) { bar.Set(rows, 0) })
		return err
	})
	bar.Done()
	switch {
	case err == nil:
		a.note("deleted %s of table %s", quantity.Plural(n.Rows, "entity"), table)
	case errors.Is(err, context.Canceled):
		a.note("deleted %s of table %s; repeat the command to continue", quantity.Plural(n.Rows, "entity"), table)
	case n.Rows > 0 || errors.Is(err, store.ErrOutcomeUnknown):
		err = hint.Repeatable(fmt.Errorf("%w (%s deleted; repeat the command to continue)", err, quantity.Plural(n.Rows, "entity")))
	}
	if err == nil && n.Changed > 0 {
		a.note("kept %s that changed meanwhile; repeat the command to check again", quantity.Plural(n.Changed, "entity"))
	}
	if e == nil {
		err = hint.Clear(err)
	}
	return a.ofTable(table, err)
}
