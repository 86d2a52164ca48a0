package main

import (
	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/engine"
)

func init() { commands = append(commands, newCompact) }

func newCompact(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "compact",
		Short: "Compact all files into one sorted run, without deleted entities",
		Args:  arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.write(func(db *engine.DB) error {
				before, err := db.Stats()
				if err != nil {
					return err
				}
				if err := db.Compact(cmd.Context()); err != nil {
					return err
				}
				after, err := db.Stats()
				if err == nil {
					a.note("%s in %s and the log, now %s in %s",
						formatSize(before.SSTableBytes+before.WALBytes), formatPlural(int64(before.SSTables), "file"),
						formatSize(after.SSTableBytes), formatPlural(int64(after.SSTables), "file"))
				}
				return err
			})
		},
	}
}
