package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/feature"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/wal"
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
	switch kind {
	case filename.WAL:
		err = a.inspectLog(fsys, name, number, m)
	case filename.SSTable:
		err = a.inspectTable(ctx, fsys, name, number, m)
	default:
		return a.inspectManifest(m)
	}
	if errors.Is(err, store.ErrCorrupt) && !lists(m, kind, number) {
		return fmt.Errorf("the %s does not list the file, so it is not part of the database and may be incomplete: %v", filename.Manifest, err)
	}
	return err
}

// lists reports whether m lists the segment or sstable with that number.
func lists(m *manifest.Manifest, kind filename.Kind, number uint64) bool {
	if kind == filename.WAL {
		return slices.ContainsFunc(m.Logs, func(l manifest.Log) bool { return l.Number == number })
	}
	return slices.ContainsFunc(m.Files, func(f manifest.File) bool { return f.Number == number })
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
			{"smallest", showKey(f.Smallest)},
			{"largest", showKey(f.Largest)},
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

// showKey returns an internal key in readable form.
func showKey(internal []byte) string {
	if len(internal) < codec.TrailerLen {
		return hex.EncodeToString(internal)
	}
	user, _, _ := codec.SplitTrailer(internal)
	table, partition, row, ok := codec.SplitKey(user)
	if !ok {
		return hex.EncodeToString(internal)
	}
	return fmt.Sprintf("%d/%q/%q", table, codec.AppendUTF8(nil, partition), codec.AppendUTF8(nil, row))
}

// logSummary counts the entries of a segment.
type logSummary struct {
	puts, deletes, shapes int64
	bytes                 int64
	lastStamp             edm.Ticks
}

func (s *logSummary) add(r wal.RecordView) error {
	s.bytes += int64(len(r.Payload))
	for p := r.Payload; len(p) > 0; {
		e, n, err := codec.DecodeEntry(p)
		if err != nil {
			return fmt.Errorf("record at offset %d: %w", r.PayloadOff, err)
		}
		switch e.Kind {
		case codec.KindPut:
			s.puts++
		case codec.KindDelete:
			s.deletes++
		case codec.KindShape:
			s.shapes++
		}
		s.lastStamp = max(s.lastStamp, e.Timestamp)
		p = p[n:]
	}
	return nil
}

func (a *app) inspectLog(fsys vfs.FS, name string, number uint64, m *manifest.Manifest) error {
	o := wal.ReplayOptions{DBID: m.DBID, Number: number}
	for _, l := range m.Logs {
		if l.Number == number {
			o.Sealed, o.Proven = l.Sealed, l.Proven
		}
	}
	info, err := wal.Inspect(fsys, name, m.DBID, number)
	if err != nil {
		return err
	}
	var s logSummary
	o.Image = make([]byte, info.Bytes)
	end, err := wal.Replay(fsys, name, o, s.add)
	if err != nil {
		return err
	}
	return a.printRecord(record{
		{"kind", "log segment"},
		{"number", info.Header.Number},
		{"listed", lists(m, filename.WAL, number)},
		{"bytes", info.Bytes},
		{"end", end.Offset},
		{"sealed", end.Sealed || o.Sealed != 0},
		{"torn", end.Torn},
		{"records", end.Records},
		{"record_bytes", s.bytes},
		{"puts", s.puts},
		{"deletes", s.deletes},
		{"shapes", s.shapes},
		{"first_sequence", info.Header.FirstSeq},
		{"last_sequence", end.LastSeq},
		{"last_timestamp", s.lastStamp.String()},
		{"high_water", edm.Ticks(info.Header.HighWater).String()},
		{"previous_end", info.Header.PrevEnd},
	})
}

func (a *app) inspectTable(ctx context.Context, fsys vfs.FS, name string, number uint64, m *manifest.Manifest) error {
	f, err := fsys.Open(name)
	if err != nil {
		return err
	}
	origin := m.DBID
	for i := range m.Files {
		if m.Files[i].Number == number {
			origin = m.Files[i].Origin
		}
	}
	r, err := sstable.Open(f, sstable.ReaderOptions{DBID: origin, Number: number, Name: path.Base(name)})
	if err != nil {
		return errors.Join(err, f.Close())
	}
	summary, err := summarize(ctx, r)
	if err == nil {
		err = r.Verify(ctx)
	}
	bytes, sizeErr := f.Size()
	if err = errors.Join(err, sizeErr, r.Close()); err != nil {
		return err
	}
	return a.printRecord(append(record{
		{"kind", "sstable"},
		{"number", number},
		{"listed", lists(m, filename.SSTable, number)},
		{"bytes", bytes},
	}, append(summary, field{"origin", hex.EncodeToString(origin[:])})...))
}

// summarize counts the entries of an sstable.
func summarize(ctx context.Context, r *sstable.Reader) (record, error) {
	var entries, tombstones, tables, partitions int64
	var minSeq, maxSeq uint64
	var first, last, partition []byte
	table := uint32(0)
	it := r.NewIterator(sstable.IterOptions{AllVersions: true})
	for ok := it.SeekGE(nil); ok; ok = it.Next() {
		if entries%1024 == 0 && ctx.Err() != nil {
			return nil, errors.Join(ctx.Err(), it.Close())
		}
		key := it.Key()
		user, seq, kind := codec.SplitTrailer(key)
		if entries == 0 {
			first, minSeq = append(first, key...), seq
		}
		last = append(last[:0], key...)
		minSeq, maxSeq = min(minSeq, seq), max(maxSeq, seq)
		if kind == codec.KindDelete {
			tombstones++
		}
		if p := user[:codec.PartitionLen(user)]; entries == 0 || string(p) != string(partition) {
			partitions++
			partition = append(partition[:0], p...)
		}
		if id, _, _, ok := codec.SplitKey(user); ok && (entries == 0 || id != table) {
			tables++
			table = id
		}
		entries++
	}
	return record{
		{"entries", entries},
		{"tombstones", tombstones},
		{"tables", tables},
		{"partitions", partitions},
		{"min_sequence", minSeq},
		{"max_sequence", maxSeq},
		{"smallest", showKey(first)},
		{"largest", showKey(last)},
	}, errors.Join(it.Err(), it.Close())
}
