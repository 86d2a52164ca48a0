package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/ui"
)

func init() { commands = append(commands, newExplore) }

func newExplore(a *app) *cobra.Command {
	e := ui.Explore{Stdout: a.stdout, Stderr: a.stderr}
	cmd := &cobra.Command{
		Use:   "explore [WHERE]",
		Short: "Show and change the data in a browser",
		Long:  ui.Help,
		Args:  arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			of := a
			if len(args) > 0 {
				locations, err := a.where.Parse(a.location(cmd), args[0])
				if err != nil {
					return usagef("%v", err)
				}
				of = a.at("--data", locations[0])
			}
			e.Version, _ = build()
			err := e.Run(cmd.Context(), of.server, of.data, a.note)
			if errors.Is(err, ui.ErrNotLoopback) {
				return usagef("%v", err)
			}
			return err
		},
	}
	a.where.Add(cmd.PersistentFlags())
	e.Flags(cmd.Flags())
	cmd.Flags().Lookup("listen").Annotations = map[string][]string{variable: {"TABLEROCK_EXPLORE_LISTEN"}} // TABLEROCK_LISTEN is that of a server
	return cmd
}
