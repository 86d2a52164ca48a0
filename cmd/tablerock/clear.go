package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/bulk"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/where"
	"github.com/tablerock-db/tablerock/edm"
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
			if err := edm.CheckTableName(args[0]); err != nil {
				return err
			}
			if err := a.confirm(cmd.Context(), yes, "delete all entities of table %s in %s", args[0], a.dataName()); err != nil {
				return err
			}
			n, bar := int64(0), a.newBar("clear", 0)
			err := a.writeStore(func(s store.Store) (err error) {
				n, err = bulk.Clear(cmd.Context(), s, args[0], func(rows int64) { bar.Set(rows, 0) })
				return err
			})
			bar.Done()
			if err != nil && n > 0 {
				err = fmt.Errorf("%w (%s deleted; clear again to continue)", err, formatPlural(n, "row"))
			}
			if err == nil {
				a.note("deleted %s of table %s", formatPlural(n, "row"), args[0])
			}
			return a.ofTable(args[0], err)
		},
	}
	a.where.Add(cmd.PersistentFlags())
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}
