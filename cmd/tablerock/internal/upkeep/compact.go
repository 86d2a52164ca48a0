package main

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/serve"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

func init() { commands = append(commands, newCompact) }

func newCompact(a *app) *cobra.Command {
	var compression string
	cmd := &cobra.Command{
		Use:   "compact",
		Short: "Compact all files into one sorted run, without deleted entities",
		Long: `Compact all files into one sorted run, without deleted entities. The command reads every
file: it verifies those that need no rewrite. The exit code is 5 if it finds damage.
With --compression small it rewrites the files that are not compressed with Zstandard yet.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			method, err := serve.ParseCompression(compression)
			if err != nil {
				return usagef("%v", err)
			}
			return a.write(engine.Options{SegmentBytes: smallLog, Compression: method}, func(db *engine.DB) error { return a.compact(cmd.Context(), db) })
		},
	}
	cmd.Flags().StringVar(&compression, "compression", "fast",
		"`method` for the files: fast (s2), or small (Zstandard), a seventh to a fifth smaller for several times the CPU time")
	return cmd
}

func (a *app) compact(ctx context.Context, db *engine.DB) error {
	before, err := db.Stats()
	if err != nil {
		return err
	}
	old, err := a.sstables()
	if err != nil {
		return err
	}
	if err := db.Compact(ctx); err != nil {
		return err
	}
	kept, err := a.verifyKept(ctx, db, old)
	if err != nil {
		return err
	}
	after, err := db.Stats()
	if err != nil {
		return err
	}
	verified := ""
	if kept > 0 {
		verified = "; verified " + formatPlural(int64(kept), "file") + " that needed no rewrite"
	}
	a.note("%s in %s and the log, now %s in %s%s",
		formatSize(before.SSTableBytes+before.WALBytes), formatPlural(int64(before.SSTables), "file"),
		formatSize(after.SSTableBytes), formatPlural(int64(after.SSTables), "file"), verified)
	return nil
}

// verifyKept verifies the database if a compaction did not read some of the old files,
// because they need no rewrite. It returns their number.
func (a *app) verifyKept(ctx context.Context, db *engine.DB, old map[uint64]bool) (kept int, err error) {
	now, err := a.sstables()
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
	report, err := db.Verify(ctx)
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
func (a *app) sstables() (map[uint64]bool, error) {
	m, err := manifest.Read(vfs.OS(), filepath.ToSlash(a.dir()))
	if err != nil {
		return nil, err
	}
	numbers := make(map[uint64]bool)
	for _, f := range m.Files {
		numbers[f.Number] = true
	}
	return numbers, nil
}
