package upkeep

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/quantity"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/serve"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// Compact returns "compact".
func (e *Env) Compact() *cobra.Command {
	var compression string
	cmd := &cobra.Command{
		Use:   "compact",
		Short: "Compact all files into one sorted run, without deleted entities",
		Long: `Compact all files into one sorted run, without deleted entities. It reads the entities
that it keeps and verifies the files that need no rewrite, and exits 5 if it finds damage
there. What was overwritten or deleted is dropped unread, so damage of it is removed and
not reported: "tablerock verify" reports it before.

With --compression small the command rewrites the files that are not compressed with
Zstandard yet.

After an interruption the files that were finished stay compacted, and the same command
goes on.`,
		Args: e.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			method, err := serve.ParseCompression(compression)
			if err != nil {
				return e.Usage("%v", err)
			}
			return e.Write(engine.Options{SegmentBytes: smallLog, Compression: method}, func(db *engine.DB) error {
				err := e.compact(cmd.Context(), db)
				if errors.Is(err, store.ErrCorrupt) {
					return hint.With(err, `"tablerock verify" lists all damage; `+hint.Restore)
				}
				return err
			})
		},
	}
	cmd.Flags().StringVar(&compression, "compression", "fast",
		"`method` for the files: fast (s2), or small (Zstandard), a seventh to a fifth smaller for several times the CPU time")
	return cmd
}

func (e *Env) compact(ctx context.Context, db *engine.DB) error {
	before, err := db.Stats()
	if err != nil {
		return err
	}
	old, err := e.sstables()
	if err != nil {
		return err
	}
	end := e.Bytes("compact", before.SSTableBytes+before.WALBytes).Watch(func() (rows, bytes int64) {
		s, _ := db.Stats() // it fails only if db is closed
		return 0, s.CompactionBytesRead - before.CompactionBytesRead
	})
	err = db.Compact(ctx)
	end()
	if err != nil {
		return hint.Interrupted(err, "the files that were finished stay compacted, and the same command goes on")
	}
	kept, err := e.verifyKept(ctx, db, old)
	if err != nil {
		return hint.Interrupted(err, "the database is compacted, and the files that needed no rewrite are not all verified")
	}
	after, err := db.Stats()
	if err != nil {
		return err
	}
	verified := ""
	if kept > 0 {
		verified = "; verified " + quantity.Plural(int64(kept), "file") + " that needed no rewrite"
	}
	e.Note("%s in %s and the log, now %s in %s%s",
		quantity.Bytes(before.SSTableBytes+before.WALBytes), quantity.Plural(int64(before.SSTables), "file"),
		quantity.Bytes(after.SSTableBytes), quantity.Plural(int64(after.SSTables), "file"), verified)
	return nil
}

// verifyKept verifies the database if a compaction did not read some of the old files,
// because they need no rewrite. It returns their number.
func (e *Env) verifyKept(ctx context.Context, db *engine.DB, old map[uint64]bool) (kept int, err error) {
	now, err := e.sstables()
	if err != nil {
		return 0, err
	}
	for number := range now {
		if old[number] {
			kept++
		}
	}
	if kept == 0 {
		return 0, nil
	}
	report, err := e.check(ctx, db)
	if err != nil {
		return 0, err
	}
	if len(report.Findings) > 0 {
		f := report.Findings[0]
		return 0, &store.CorruptError{File: f.File, Offset: f.Offset, What: f.What}
	}
	return kept, nil
}

// sstables returns the numbers of the sstables of the database.
func (e *Env) sstables() (map[uint64]bool, error) {
	m, err := manifest.Read(vfs.OS(), filepath.ToSlash(e.Dir()))
	if err != nil {
		return nil, err
	}
	numbers := make(map[uint64]bool)
	for _, f := range m.Files {
		numbers[f.Number] = true
	}
	return numbers, nil
}
