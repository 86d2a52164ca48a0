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
		Short: "Serve the databases to clients of Azure Tables",
		Long: `Serve the databases of --data to clients of Azure Tables, one database per account,
until SIGINT or SIGTERM. Without flags, clients connect with
UseDevelopmentStorage=true. With --backend the data is in a database of PostgreSQL, which
"tablerock backend init" has prepared and which any number of servers can share.

SIGHUP makes it read --accounts-file, --cert and --key again, and open the file of
--debug again. If a file has an error, the server logs it and keeps what it has.

The command also accepts the flags of Azurite, and AZURITE_ACCOUNTS is used if there is
no --account. In a script that starts azurite-table, change only the name of the
program, or make azurite-table a link to tablerock.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Data, c.Quiet, c.Backend = a.data, a.quiet, a.where.Backend
			c.Typed = a.isTyped
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
