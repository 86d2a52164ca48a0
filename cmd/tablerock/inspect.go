package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/output"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/summary"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

func init() { commands = append(commands, newInspect) }

func newInspect(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "inspect FILE",
		Short: "Print a summary of a database file",
		Long: `Print a summary of a MANIFEST, a log segment (.wal) or an sstable (.sst). A segment or
sstable must be in the directory of the MANIFEST of its database, because its checksums
depend on it. The command changes nothing.`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.inspect(cmd.Context(), filepath.ToSlash(args[0]))
		},
	}
}

func (a *app) inspect(ctx context.Context, name string) error {
	fsys := vfs.OS()
	if _, err := fsys.Stat(name); err != nil {
		return err
	}
	dir, base := path.Dir(name), path.Base(name)
	kind, number := filename.Parse(base)
	if base != filename.Manifest && kind != filename.WAL && kind != filename.SSTable {
		return usagef("%s: not the name of a database file, which is MANIFEST or a number with .wal or .sst", name)
	}
	m, err := manifest.Read(fsys, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: the %s of its database is not in its directory: %w", name, filename.Manifest, fs.ErrNotExist)
	}
	if err != nil {
		return err
	}
	var found output.Record
	switch kind {
	case filename.WAL:
		found, err = summary.Log(fsys, name, number, m)
	case filename.SSTable:
		found, err = summary.Table(ctx, fsys, name, number, m)
	default:
		return a.inspectManifest(m)
	}
	if errors.Is(err, store.ErrCorrupt) && summary.Leftover(m, kind, number, err) {
		return fmt.Errorf("the %s does not list the file, so it is not part of the database and may be incomplete: %v", filename.Manifest, err)
	}
	if err != nil {
		return err
	}
	return a.printer().Record(found)
}

// inspectManifest prints a manifest: in a table the logs and files are lists below it.
func (a *app) inspectManifest(m *manifest.Manifest) error {
	r, logs, files := summary.Manifest(m)
	if a.output != output.Table {
		return a.printer().Record(append(r, output.Field{Name: "logs", Value: logs}, output.Field{Name: "files", Value: files}))
	}
	err := a.printer().Record(append(r, output.Field{Name: "logs", Value: len(logs)}, output.Field{Name: "files", Value: len(files)}))
	for _, list := range [][]output.Record{logs, files} {
		if err != nil || len(list) == 0 {
			continue
		}
		if _, err = fmt.Fprintln(a.stdout); err == nil {
			err = a.printer().List(list[0].Names(), list)
		}
	}
	return err
}
