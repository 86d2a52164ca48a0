package pgbackend

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/output"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/progress"
	"github.com/tablerock-db/tablerock/store/postgres"
)

// Env is what the commands take from the program.
type Env struct {
	Group   func(use, short string) *cobra.Command
	Usage   func(format string, args ...any) error
	Note    func(format string, args ...any)
	Printer func() *output.Printer
	Bar     func(name string, total int64) *progress.Bar
	Flags   *Flags
	Failed  error // after a report with findings
}

// Command returns "backend".
func (e *Env) Command() *cobra.Command {
	cmd := e.Group("backend", "Prepare and check a database of PostgreSQL for --backend")
	cmd.Long = `Prepare and check a database of PostgreSQL, in which "tablerock serve --backend URL" and
other commands keep their data. URL is as psql has it; without it --backend or
TABLEROCK_BACKEND is used. Keep the password in PGPASSFILE (~/.pgpass) or a service file.

  createdb tablerock
  tablerock backend init postgres://db1/tablerock`
	cmd.AddCommand(
		e.command("init", "Create the tables of Tablerock in a database, or upgrade them",
			`Create the tables of Tablerock in a database that exists, or upgrade those of an older
program. On tables of this version the command changes nothing.

It refuses a server that has no synchronous standby, because a failover to another one
loses writes that clients know as stored. With --allow-async it accepts the server. That
is right if the loss of the server's disk may cost the newest writes, as in a test, and if
the disk below PostgreSQL is replicated where it cannot see that: in most managed
services, YugabyteDB and CockroachDB.`, e.init),
		e.command("check", "Check the settings of a database",
			`Check the version of the tables, and the settings of the server on which the promises to
clients depend. The exit code is 1 if one is not OK; with --allow-async a missing standby
does not count. The command changes nothing.`, e.check),
		e.command("sweep", "Remove the entities of dropped tables",
			`Remove the entities of dropped tables now. "tablerock serve" does this in the background;
the command is for a database that no server uses. After an interruption the same command
goes on.`, e.sweep),
	)
	return cmd
}

// command returns a command with one argument, a URL. No message repeats the argument.
func (e *Env) command(name, short, long string, run func(ctx context.Context, u *URL) error) *cobra.Command {
	return &cobra.Command{
		Use:   name + " [URL]",
		Short: short,
		Long:  long,
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			text := e.Flags.URL
			switch {
			case len(args) > 1:
				return e.Usage("backend %s takes one URL: %s", name, cmd.UseLine())
			case len(args) == 1:
				text = args[0]
			case text == "":
				return e.Usage("the URL of the database is missing: %s", cmd.UseLine())
			}
			u, err := Parse(text)
			if err != nil {
				return e.Usage("backend %s: %v", name, err)
			}
			if len(args) == 1 {
				u.WarnPassword(e.Note)
			}
			return run(cmd.Context(), u)
		},
	}
}

func (e *Env) init(ctx context.Context, u *URL) error {
	ctx, cancel := context.WithTimeoutCause(ctx, connectTime, errSilent)
	defer cancel()
	if err := postgres.Init(ctx, u.connection, &postgres.Options{AllowAsync: e.Flags.AllowAsync}); err != nil {
		return explain(ctx, u, err)
	}
	flag := ""
	if e.Flags.AllowAsync {
		flag = " --allow-async"
	}
	e.Note("%s is ready; serve it by: tablerock serve --backend '%s'%s", u, u, flag)
	return nil
}
