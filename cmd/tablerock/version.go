package main

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/output"
)

// The linker sets version and commit in a release.
var version, commit = "", ""

func init() { commands = append(commands, newVersion) }

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  arguments(0, 0),
		RunE: func(*cobra.Command, []string) error {
			name, revision := build()
			return a.printer().Record(output.Record{
				{"version", name},
				{"revision", revision},
				{"go", runtime.Version()},
				{"platform", runtime.GOOS + "/" + runtime.GOARCH},
			})
		},
	}
}

// build returns the version and the commit of the program. They come from the build, which
// may not know them.
func build() (name, revision string) {
	name, revision = version, commit
	if info, ok := debug.ReadBuildInfo(); ok {
		name = cmp.Or(name, info.Main.Version)
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = cmp.Or(revision, s.Value)
			}
		}
	}
	return name, cmp.Or(revision, "unknown")
}
