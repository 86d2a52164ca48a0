package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/complete"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/manual"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/output"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/pgbackend"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/progress"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/quantity"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/where"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
)

// app is one run of the program.
type app struct {
	ctx            context.Context // of the run
	stdin          io.Reader
	stdout, stderr io.Writer

	data    string
	account string
	named   bool // account is that of --account, or of its variable without keys
	output  string
	quiet   bool

	where  where.Flags
	server *where.Server // of the data; nil for the directory
	typed  []string      // flags of the command line

	dirFlag  string   // that names the directory data, for messages
	dirFlags string   // that name the directory of the account, for messages
	tables   []string // names of the tables, after one was not found
}

// commands has the constructors of the subcommands. Each file adds its own in init.
var commands []func(*app) *cobra.Command

// helpWidth is the width at which the help texts of flags wrap.
const helpWidth = 100

// run runs a command line and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{ctx: ctx, stdin: stdin, stdout: stdout, stderr: stderr, dirFlag: "--data", dirFlags: "--data and --account"}
	root := newRoot(a)
	root.SetArgs(args)
	root.SetIn(stdin)
	help := &helpWriter{w: stdout}
	root.SetOut(help)
	root.SetErr(stderr)
	err := checkArguments(root, args)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	if err == nil {
		err = help.err
	}
	if err == nil {
		return exitOK
	}
	if text := message(err); text != "" {
		fmt.Fprintln(stderr, "tablerock: "+pgbackend.Redact(text))
	}
	return exitCode(err)
}

// helpWriter keeps the error of a write to w: package cobra drops it when it prints help.
type helpWriter struct {
	w   io.Writer
	err error
}

func (h *helpWriter) Write(p []byte) (int, error) {
	n, err := h.w.Write(p)
	h.err = cmp.Or(h.err, err)
	return n, err
}

// checkArguments checks the arguments before cobra parses them.
func checkArguments(root *cobra.Command, args []string) error {
	cmd, rest, err := root.Find(args)
	if err != nil {
		return nil // cobra says so
	}
	if err := hint.NextFlag(cmd, rest); err != nil {
		return usagef("%v", err)
	}
	return nil
}

func newRoot(a *app) *cobra.Command {
	root := group("tablerock", "Store Azure tables on this machine")
	root.Long = `Tablerock stores Azure tables in a directory of this machine.

Every flag has an environment variable: TABLEROCK_DATA sets --data.`
	root.Version, _ = build()
	root.SetVersionTemplate("tablerock {{.Version}}\n")
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", helpWidth)))
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		cmd.Flags().Visit(func(f *pflag.Flag) { a.typed = append(a.typed, f.Name) })
		if name := emptyFlag(cmd.Flags()); name != "" {
			return usagef("--%s is empty: give its value, or omit it", name)
		}
		if err := setFromEnvironment(cmd.Flags()); err != nil {
			return err
		}
		if err := a.checkFlags(cmd.Flags().Changed("account")); err != nil {
			return err
		}
		if a.isTyped("output") && slices.Contains([]string{"clear", "copy", "import"}, cmd.Name()) {
			return usagef("--output %s: %s prints no data, and its summary is text on standard error", a.output, cmd.Name())
		}
		if err := cmp.Or(hint.Path("--data", a.data), hint.Arguments(cmd, args)); err != nil {
			return usagef("%v", err)
		}
		return a.choose(cmd, args)
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usagef("%s", hint.Flag(cmd, err)) })
	f := root.PersistentFlags()
	f.StringVar(&a.data, "data", "tablerock-data", "`directory` of the data")
	f.StringVar(&a.account, "account", "devstoreaccount1", "`name` of the storage account, 3 to 24 lower-case letters and digits")
	f.StringVarP(&a.output, "output", "o", "", "`format` of the output: table, json, jsonl or csv (default: table on a terminal, else jsonl)")
	f.BoolVarP(&a.quiet, "quiet", "q", false, "print neither progress nor summaries")
	a.where.Backend.Add(f)
	for _, make := range commands {
		root.AddCommand(make(a))
	}
	root.AddCommand(manual.Command(arguments(1, 1)))
	root.AddCommand(manual.Topics()...)
	root.SetHelpCommand(newHelp())
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Args, c.RunE = cobra.ArbitraryArgs, runGroup
		}
	}
	complete.Add(root, complete.Sources{Tables: a.tableNames, Accounts: a.accountNames, Formats: formatsOf})
	return root
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usagef("no help on %q%s", strings.Join(args, " "), suggestCommand(about, rest[0]))
			}
			return about.Help()
		},
	}
}

// group returns a command that has only subcommands.
func group(use, short string) *cobra.Command {
	return &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.ArbitraryArgs,
		RunE:  runGroup,
	}
}

// runGroup runs a group without one of its subcommands: it prints the help or an error.
func runGroup(cmd *cobra.Command, args []string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	list := strings.Join(names, ", ")
	switch {
	case len(args) > 0 && !cmd.HasParent():
		return usagef("there is no command %q%s; there are: %s", args[0], suggestCommand(cmd, args[0]), list)
	case len(args) > 0:
		return usagef("%s has no command %q%s; there are: %s", cmd.Name(), args[0], suggestCommand(cmd, args[0]), list)
	case cmd.HasParent():
		return usagef("%s needs a command; there are: %s", cmd.Name(), list)
	}
	return cmd.Help()
}

// suggestCommand suggests commands for a name that group does not have: the commands of
// that name in its subgroups or, if there are none, those that cobra finds similar.
func suggestCommand(group *cobra.Command, typed string) string {
	var names []string
	for _, sub := range group.Commands() {
		for _, c := range sub.Commands() {
			if c.Name() == typed && sub.IsAvailableCommand() && c.IsAvailableCommand() {
				names = append(names, sub.Name()+" "+typed)
			}
		}
	}
	if len(names) == 0 {
		group.SuggestionsMinimumDistance = 2
		names = group.SuggestionsFor(typed)
	}
	return hint.DidYouMean(names)
}

// arguments returns a check for at least lower and at most upper arguments.
func arguments(lower, upper int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < lower:
			return usagef("an argument is missing: %s", cmd.UseLine())
		case len(args) > upper:
			return usagef("%q is one argument too many: %s", args[upper], cmd.UseLine())
		}
		return nil
	}
}

// variable is the annotation of a flag whose environment variable has another name than the
// flag.
const variable = "variable"

// setFromEnvironment sets the flags that the command line lacks from their environment
// variables.
func setFromEnvironment(flags *pflag.FlagSet) error {
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "help" || f.Name == "version" || err != nil {
			return
		}
		name := "TABLEROCK_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if own := f.Annotations[variable]; len(own) > 0 {
			name = own[0]
		}
		if value := os.Getenv(name); value != "" {
			if setErr := flags.Set(f.Name, value); setErr != nil {
				err = usagef("environment variable %s is %q, which is not a value of --%s%s", name, value, f.Name, hint.Value(setErr))
			}
		}
	})
	return err
}

// emptyFlag returns the name of a flag that the command line gives as empty, or "". A variable
// of the shell that is not set is no request for the default. A key can be empty.
func emptyFlag(flags *pflag.FlagSet) (name string) {
	flags.Visit(func(f *pflag.Flag) {
		if name == "" && f.Value.Type() == "string" && f.Value.String() == "" && f.Name != "from-partition" && f.Name != "from-row" {
			name = f.Name
		}
	})
	return name
}

// checkFlags checks the flags that every command has. given reports whether the command line
// or the environment has an account.
func (a *app) checkFlags(given bool) error {
	a.named = given
	if !a.isTyped("account") {
		var isServer bool // TABLEROCK_ACCOUNT of a server has a key
		a.account, _, isServer = strings.Cut(a.account, ":")
		a.named = given && !isServer
		if !sharedkey.IsAccountName(a.account) {
			return usagef("environment variable TABLEROCK_ACCOUNT: a storage account's name is 3 to 24 lower-case letters and digits")
		}
	}
	if !sharedkey.IsAccountName(a.account) {
		name, _, _ := strings.Cut(a.account, ":")
		return usagef("--account %q: a storage account's name is 3 to 24 lower-case letters and digits", name)
	}
	if a.output == "" {
		a.output = output.JSONL
		if progress.IsTerminal(a.stdout) {
			a.output = output.Table
		}
	}
	if !slices.Contains([]string{output.Table, output.JSON, output.JSONL, output.CSV}, a.output) {
		return usagef("--output %q: must be table, json, jsonl or csv", a.output)
	}
	return nil
}

// isTyped reports whether a flag is on the command line.
func (a *app) isTyped(flag string) bool { return slices.Contains(a.typed, flag) }

// choose sets a.server to the server that the command uses, if it can use one.
func (a *app) choose(cmd *cobra.Command, args []string) error {
	server, err := a.where.Of(cmd, a.location(cmd), args)
	if err != nil {
		return usagef("%v", err)
	}
	a.server = server
	return nil
}

// location returns what the command line of cmd says beside the flags of a server.
func (a *app) location(cmd *cobra.Command) where.Command {
	return where.Command{Typed: a.isTyped, Set: cmd.Flags().Changed, Account: a.account, Data: a.data, Dir: a.dir(), Note: a.note}
}

// printer returns a Printer for the results.
func (a *app) printer() *output.Printer { return output.NewPrinter(a.stdout, a.output) }

// note prints a line to standard error unless --quiet is set.
func (a *app) note(format string, args ...any) {
	if !a.quiet {
		fmt.Fprintf(a.stderr, format+"\n", args...)
	}
}

// newByteBar returns a progress bar of bytes, nil if --quiet is set or standard error is no
// terminal.
func (a *app) newByteBar(name string, total int64) *progress.Bar {
	if a.quiet {
		return nil
	}
	return progress.New(a.stderr, name, total, nil)
}

// newBar returns a progress bar, nil if --quiet is set or standard error is no terminal.
func (a *app) newBar(name string, total int64) *progress.Bar {
	if a.quiet {
		return nil
	}
	return progress.New(a.stderr, name, total, quantity.Count)
}
