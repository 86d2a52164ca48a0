// Package summary reads files of a database and says what they contain.
package summary

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/output"
	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/wal"
)

// Lists reports whether m lists the segment or sstable with that number.
func Lists(m *manifest.Manifest, kind filename.Kind, number uint64) bool {
	if kind == filename.WAL {
		return slices.ContainsFunc(m.Logs, func(l manifest.Log) bool { return l.Number == number })
	}
	return slices.ContainsFunc(m.Files, func(f manifest.File) bool { return f.Number == number })
}

// Leftover reports whether a damaged segment or sstable is not part of the database with the
// manifest m: m does not list it, and it is no segment after those that m lists.
func Leftover(m *manifest.Manifest, kind filename.Kind, number uint64, damage error) bool {
	if Lists(m, kind, number) {
		return false
	}
	after := kind == filename.WAL && (len(m.Logs) == 0 || number > m.Logs[0].Number)
	return !after || errors.Is(damage, wal.ErrUnfinished)
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

// Log returns the summary of a log segment of the database with the manifest m.
func Log(fsys vfs.FS, name string, number uint64, m *manifest.Manifest) (output.Record, error) {
	o := wal.ReplayOptions{DBID: m.DBID, Number: number}
	for _, l := range m.Logs {
		if l.Number == number {
			o.Sealed, o.Proven = l.Sealed, l.Proven
		}
	}
	info, err := wal.Inspect(fsys, name, m.DBID, number)
	if err != nil {
		return nil, err
	}
	var s logSummary
	o.Image = make([]byte, info.Bytes)
	end, err := wal.Replay(fsys, name, o, s.add)
	if err != nil {
		return nil, err
	}
	return output.Record{
		{"kind", "log segment"},
		{"number", info.Header.Number},
		{"listed", Lists(m, filename.WAL, number)},
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
	}, nil
}

// Table returns the summary of an sstable of the database with the manifest m.
func Table(ctx context.Context, fsys vfs.FS, name string, number uint64, m *manifest.Manifest) (output.Record, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	origin := m.DBID
	for i := range m.Files {
		if m.Files[i].Number == number {
			origin = m.Files[i].Origin
		}
	}
	r, err := sstable.Open(f, sstable.ReaderOptions{DBID: origin, Number: number, Name: path.Base(name)})
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	summary, err := summarize(ctx, r)
	if err == nil {
		err = r.Verify(ctx)
	}
	bytes, sizeErr := f.Size()
	if err = errors.Join(err, sizeErr, r.Close()); err != nil {
		return nil, err
	}
	return append(output.Record{
		{"kind", "sstable"},
		{"number", number},
		{"listed", Lists(m, filename.SSTable, number)},
		{"bytes", bytes},
	}, append(summary, output.Field{Name: "origin", Value: hex.EncodeToString(origin[:])})...), nil
}

// summarize counts the entries of an sstable.
func summarize(ctx context.Context, r *sstable.Reader) (output.Record, error) {
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
	return output.Record{
		{"entries", entries},
		{"tombstones", tombstones},
		{"tables", tables},
		{"partitions", partitions},
		{"min_sequence", minSeq},
		{"max_sequence", maxSeq},
		{"smallest", showKey(first)},
		{"largest", showKey(last)},
	}, it.Close()
}
