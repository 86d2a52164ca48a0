package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
)

func init() { commands = append(commands, newCheckpoint) }

func newCheckpoint(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "checkpoint DEST",
		Short: "Copy the database as it is now, sharing files where the disk can",
		Long: `Make the directory DEST, which must not exist or be empty, a copy of the account's
database as it is now. No other process may be writing to the database. To read it, put it in place of the account's directory, or
into another data directory under the account's name:

  tablerock checkpoint backup/devstoreaccount1
  tablerock table list --data backup`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := a.write(func(db *engine.DB) error {
				return db.Checkpoint(cmd.Context(), filepath.ToSlash(args[0]))
			})
			switch {
			case errors.Is(err, store.ErrLocked):
				return fmt.Errorf("a checkpoint needs the database for itself: %w", err)
			case err == nil:
				a.note("copied %s to %s", a.dir(), args[0])
			}
			return err
		},
	}
}
