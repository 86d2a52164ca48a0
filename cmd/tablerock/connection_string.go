package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/output"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/serve"
)

func init() { commands = append(commands, newConnectionString) }

func newConnectionString(a *app) *cobra.Command {
	var c serve.Config
	cmd := &cobra.Command{
		Use:   "connection-string",
		Short: "Print the connection string of an account",
		Long: `Print the connection string of an account of the server that has --data, with its key. If
none runs there, or with --listen, --accounts-file, --account NAME:KEY or --self-signed, print
that of "tablerock serve" with these flags.

  export AZURE_STORAGE_CONNECTION_STRING="$(tablerock connection-string --account shop)"`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Data, c.Quiet, c.Stderr = a.data, a.quiet, a.stderr
			return a.connectionString(cmd, c)
		},
	}
	all := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	c.Flags(all)
	for _, name := range serve.ConnectionFlags {
		cmd.Flags().AddFlag(all.Lookup(name))
	}
	all.Lookup("account").Usage = "print that of the account with this `NAME` or NAME:KEY1[:KEY2] (default: the first); " +
		"with keys it is an account as in \"tablerock serve\""
	return cmd
}

// connectionString prints a connection string without a frame, unless the command line has
// --output.
func (a *app) connectionString(cmd *cobra.Command, c serve.Config) error {
	one, err := c.Find(cmd.Context(), a.isTyped, a.note)
	if usage := (*serve.UsageError)(nil); errors.As(err, &usage) {
		return usagef("%v", usage)
	}
	if err == nil && a.isTyped("output") {
		return a.printer().Record(output.Record{{"account", one.Account}, {"connection_string", one.ConnectionString}})
	}
	if err == nil {
		_, err = fmt.Fprintln(a.stdout, one.ConnectionString)
	}
	return err
}
