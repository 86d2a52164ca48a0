package upkeep

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/datadir"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
)

// Checkpoint returns "checkpoint".
func (e *Env) Checkpoint() *cobra.Command {
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
file system they are copied, and a copy is compared with the hash of its file. After an
interruption or an error, remove DEST before the next try.`,
		Args: e.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := datadir.Outside(args[0]); err != nil {
				return e.Usage("checkpoint to %s: %v; name a directory elsewhere", args[0], err)
			}
			err := e.Write(engine.Options{SegmentBytes: smallLog}, func(db *engine.DB) error { return e.checkpoint(cmd.Context(), db, args[0]) })
			if errors.Is(err, store.ErrLocked) {
				err = fmt.Errorf("a checkpoint needs exclusive use of the database: %w", err)
				return hint.With(err, `"tablerock backup create" works beside a server`)
			}
			if errors.Is(err, fs.ErrExist) {
				return hint.With(err, "name a directory that is empty or does not exist")
			}
			if err == nil {
				e.Note("copied %s to %s", e.Dir(), args[0])
			}
			return err
		},
	}
}

func (e *Env) checkpoint(ctx context.Context, db *engine.DB, dest string) error {
	s, err := db.Stats()
	if err != nil {
		return err
	}
	before := bytesIn(dest) // an error of Checkpoint if there is any
	end := e.Bytes("checkpoint", s.SSTableBytes+s.WALBytes).Watch(func() (rows, bytes int64) { return 0, bytesIn(dest) })
	err = db.Checkpoint(ctx, filepath.ToSlash(dest))
	end()
	state := "nothing is copied"
	if bytesIn(dest) > before {
		state = dest + " is unfinished and not a database: remove it before the next try"
		if err != nil && !errors.Is(err, context.Canceled) {
			e.Note("%s", state)
		}
	}
	return hint.Interrupted(err, state)
}

// bytesIn returns the bytes of the files in a directory.
func bytesIn(dir string) (n int64) {
	entries, _ := os.ReadDir(dir) // Checkpoint has not made it yet
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			n += info.Size()
		}
	}
	return n
}
