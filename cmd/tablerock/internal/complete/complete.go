// Package complete completes arguments and values of flags in a shell.
package complete

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// values has the values of the flags that accept a few words, by the name of the flag.
var values = map[string][]string{
	"output":      {"table", "json", "jsonl", "csv"},
	"mode":        {"replace", "merge", "insert"},
	"log-format":  {"text", "json"},
	"oauth":       {"basic"},
	"compression": {"fast", "small"},
	"ui":          {"on", "off"},
	"shape":       {"grid", "singles", "whole"},
}

// directories has the flags and the arguments that name a directory.
var directories = []string{"data", "dir", "backup-dir", "from", "to", "DEST", "SRC", "WHERE"}

// Names finds names in the data that the flags of a command select. It returns none if it
// cannot read the data.
type Names func(cmd *cobra.Command) []string

// Sources has the names that this package does not know.
type Sources struct {
	Tables, Accounts Names
	Formats          Names // of files of entities, from no data
}

// Add adds completions to all commands below root: for flags by their name, and for
// arguments by their name in cobra.Command.Use. NAME is a table that exists, unless the
// command creates it.
func Add(root *cobra.Command, s Sources) {
	each(root, func(cmd *cobra.Command) {
		add := func(f *pflag.Flag) { addFlag(cmd, f, s) }
		cmd.PersistentFlags().VisitAll(add)
		cmd.Flags().VisitAll(add)
		if cmd.ValidArgsFunction == nil && !cmd.HasSubCommands() {
			cmd.ValidArgsFunction = arguments(cmd, s.Tables)
		}
	})
}

// each calls f for cmd and all commands below it.
func each(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, c := range cmd.Commands() {
		each(c, f)
	}
}

func addFlag(cmd *cobra.Command, f *pflag.Flag, s Sources) {
	var complete cobra.CompletionFunc
	switch fixed := values[f.Name]; {
	case fixed != nil:
		complete = words(func(*cobra.Command) []string { return fixed })
	case f.Name == "format":
		complete = words(s.Formats)
	case f.Name == "account" && f.Value.Type() == "string":
		complete = words(s.Accounts)
	case slices.Contains(directories, f.Name):
		complete = directory
	case strings.Contains(f.Usage, "`file`"):
		return // the shell completes names of files
	default:
		complete = cobra.NoFileCompletions
	}
	// The function of a flag that a parent shares is there already.
	_ = cmd.RegisterFlagCompletionFunc(f.Name, complete)
}

// arguments returns the completion of the arguments that cmd.Use names.
func arguments(cmd *cobra.Command, tables Names) cobra.CompletionFunc {
	names := strings.Fields(cmd.Use)[1:]
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(names) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		switch name := strings.Trim(names[len(args)], "[]"); {
		case name == "TABLE", name == "NAME" && cmd.Name() != "create":
			return words(tables)(cmd, args, typed)
		case slices.Contains(directories, name):
			return directory(cmd, args, typed)
		case strings.HasPrefix(name, "FILE"):
			return nil, cobra.ShellCompDirectiveDefault
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

func words(names Names) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		var found []string
		for _, n := range names(cmd) {
			if strings.HasPrefix(n, typed) {
				found = append(found, n)
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

func directory(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}
