package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
)

func init() { commands = append(commands, newCheckpoint) }

func newCheckpoint(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "checkpoint DEST",
		Short: "Copy the database, with hard links where the file system has them",
		Long: `Copy the account's database to the directory DEST, which must be empty or not exist.
No other process may have the database open for writing. To use the copy, put it in
the place of the account's directory, or in another data directory under the name of
the account:

  tablerock checkpoint backup/devstoreaccount1
  tablerock table list --data backup

Files are linked without being read: "tablerock verify" finds damage in them. On another
file system they are copied, and a copy is compared with the hash of its file.`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := a.write(engine.Options{SegmentBytes: smallLog}, func(db *engine.DB) error {
				return db.Checkpoint(cmd.Context(), filepath.ToSlash(args[0]))
			})
			switch {
			case errors.Is(err, store.ErrLocked):
				err = fmt.Errorf("a checkpoint needs exclusive use of the database: %w", err)
				return hint.With(err, `"tablerock backup create" works beside a server`)
			case err == nil:
				a.note("copied %s to %s", a.dir(), args[0])
			}
			return err
		},
	}
}
