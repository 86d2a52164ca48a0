package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/summary"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/feature"
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
	if base != filename.Manifest && kind == "" {
		return usagef("%s: not the name of a database file, which is MANIFEST or a number with .wal or .sst", name)
	}
	m, err := manifest.Read(fsys, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: the %s of its database is not in its directory: %w", name, filename.Manifest, fs.ErrNotExist)
	}
	if err != nil {
		return err
	}
	var found summary.Record
	switch kind {
	case filename.WAL:
		found, err = summary.Log(fsys, name, number, m)
	case filename.SSTable:
		found, err = summary.Table(ctx, fsys, name, number, m)
	default:
		return a.inspectManifest(m)
	}
	if errors.Is(err, store.ErrCorrupt) && !summary.Lists(m, kind, number) {
		return fmt.Errorf("the %s does not list the file, so it is not part of the database and may be incomplete: %v", filename.Manifest, err)
	}
	if err != nil {
		return err
	}
	var r record
	for _, f := range found {
		r = append(r, field{f.Name, f.Value})
	}
	return a.printRecord(r)
}

func (a *app) inspectManifest(m *manifest.Manifest) error {
	logs, files := []record{}, []record{}
	for _, l := range m.Logs {
		logs = append(logs, record{{"number", l.Number}, {"sealed", l.Sealed}, {"proven", l.Proven}})
	}
	for i := range m.Files {
		f := &m.Files[i]
		tier := strconv.FormatUint(uint64(f.Tier), 10)
		if f.Tier == manifest.BottomTier {
			tier = "bottom"
		}
		r := record{
			{"number", f.Number},
			{"tier", tier},
			{"run", f.Run},
			{"bytes", f.Size},
			{"entries", f.Entries},
			{"tombstones", f.Tombstones},
			{"new_keys", float64(f.NewKeys) / manifest.AllNewKeys},
			{"min_sequence", f.MinSeq},
			{"max_sequence", f.MaxSeq},
			{"smallest", summary.ShowKey(f.Smallest)},
			{"largest", summary.ShowKey(f.Largest)},
			{"origin", hex.EncodeToString(f.Origin[:])},
		}
		if f.Stamp != 0 {
			r = append(r, field{"loaded_at", edm.Ticks(f.Stamp).String()})
		}
		files = append(files, r)
	}
	r := record{
		{"kind", "manifest"},
		{"version", m.Version},
		{"database", hex.EncodeToString(m.DBID[:])},
		{"format", m.Format()},
		{"next_file", m.NextFile},
		{"high_water", edm.Ticks(m.HighWater).String()},
		{"last_sequence", m.LastSeq},
		{"epoch", m.Epoch},
		{"required_features", feature.Names(m.Extensions, m.Required)},
		{"optional_features", fmt.Sprintf("%#x", m.Optional)},
		{"extension_bytes", len(m.Extensions)},
	}
	if a.output != formatTable {
		return a.printRecord(append(r, field{"logs", logs}, field{"files", files}))
	}
	err := a.printRecord(append(r, field{"logs", len(logs)}, field{"files", len(files)}))
	for _, list := range [][]record{logs, files} {
		if err != nil || len(list) == 0 {
			continue
		}
		if _, err = fmt.Fprintln(a.stdout); err == nil {
			err = a.printList(names(list[0]), list)
		}
	}
	return err
}
