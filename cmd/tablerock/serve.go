package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/serve"
)

func init() { commands = append(commands, newServe) }

func newServe(a *app) *cobra.Command {
	c := serve.Config{Stdout: a.stdout, Stderr: a.stderr}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the databases to every client of Azure Tables",
		Long: `Serve the databases in the directory of the data to every client of Azure Tables,
one database for each account, until SIGINT or SIGTERM. Without flags, clients reach
it with UseDevelopmentStorage=true.

The flags of Azurite are taken, too: a script that starts azurite-table only needs
another name of the program. AZURITE_ACCOUNTS is heeded if there is no --account.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Data, c.Quiet = a.data, a.quiet
			c.Version, _ = build()
			err := serve.Run(cmd.Context(), c)
			if usage := (*serve.UsageError)(nil); errors.As(err, &usage) {
				return usagef("%v", usage)
			}
			return err
		},
	}
	c.Flags(cmd.Flags())
	return cmd
}
