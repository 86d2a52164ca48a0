package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/local"
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
none runs there, or with --listen, --accounts-file or --self-signed, print that of "tablerock
serve" with these flags.

  export AZURE_STORAGE_CONNECTION_STRING="$(tablerock connection-string --account shop)"`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Quiet, c.Stderr = a.quiet, a.stderr
			return a.connectionString(cmd, c)
		},
	}
	all := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	c.Flags(all)
	for _, name := range serverFlags {
		cmd.Flags().AddFlag(all.Lookup(name))
	}
	all.Lookup("account").Usage = "print that of the account with this `NAME` (default: the first); NAME:KEY1[:KEY2] is an account as in \"tablerock serve\""
	return cmd
}

// serverFlags are the flags of serve on which a connection string depends.
var serverFlags = []string{"account", "listen", "accounts-file", "insecure-dev-key", "cert", "key", "self-signed"}

// connectionString prints a connection string without a frame, unless the command line has
// --output.
func (a *app) connectionString(cmd *cobra.Command, c serve.Config) error {
	wanted := ""
	var accounts []string
	for _, text := range c.Accounts {
		if strings.Contains(text, ":") {
			accounts = append(accounts, text)
			continue
		}
		if wanted != "" {
			return usagef("--account: name one account")
		}
		wanted = text
	}
	c.Accounts = accounts
	described := len(accounts) > 0 && a.isTyped("account")
	for _, name := range serverFlags[1:] {
		described = described || a.isTyped(name)
	}
	var list []local.Connection
	err := error(nil)
	if !described {
		list, err = local.Connections(cmd.Context(), a.data)
	}
	if described || err != nil {
		if list, err = c.Connections(); err != nil {
			if usage := (*serve.UsageError)(nil); errors.As(err, &usage) {
				return usagef("%v", usage)
			}
			return err
		}
		if !described {
			a.note("no server answers in %s; this is for \"tablerock serve\" with the same flags", a.data)
		}
	}
	var names []string
	for _, one := range list {
		names = append(names, one.Account)
		if wanted == "" || one.Account == wanted {
			if !a.isTyped("output") {
				_, err := fmt.Fprintln(a.stdout, one.ConnectionString)
				return err
			}
			return a.printer().Record(output.Record{{"account", one.Account}, {"connection_string", one.ConnectionString}})
		}
	}
	if !a.isTyped("account") {
		return fmt.Errorf("the account of environment variable TABLEROCK_ACCOUNT: %w; there are: %s", fs.ErrNotExist, strings.Join(names, ", "))
	}
	return fmt.Errorf("account %q: %w; there are: %s", wanted, fs.ErrNotExist, strings.Join(names, ", "))
}
