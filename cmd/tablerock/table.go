package main

import (
	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/where"
)

func init() { commands = append(commands, newTable) }

func newTable(a *app) *cobra.Command {
	table := group("table", "List, create and delete tables")
	table.Long = table.Short + "." + where.Help
	a.where.Add(table.PersistentFlags())
	table.AddCommand(newTableList(a), newTableCreate(a), newTableDelete(a))
	return table
}
