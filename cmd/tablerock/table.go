package main

import "github.com/spf13/cobra"

func init() { commands = append(commands, newTable) }

func newTable(a *app) *cobra.Command {
	table := group("table", "List, create and delete tables")
	table.AddCommand(newTableList(a), newTableCreate(a), newTableDelete(a))
	return table
}
