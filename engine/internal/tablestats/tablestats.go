// Package tablestats counts the entities and bytes of a table from the records of files, the
// indexes of files and the memtables. It reads at most two groups of a file.
package tablestats

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/engine/internal/catalog"
	"github.com/tablerock-db/tablerock/engine/internal/readstate"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/internal/memtable"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/store"
)

// counter counts the rows with user keys in [lower, upper).
type counter struct {
	lower, upper []byte
	seq          uint64
	rows         int64 // of files, tombstones included
	tombstones   int64 // of files, an estimate
	bytes        int64
	run          run // of the files
	files        int
	several      bool // the files belong to several runs
	uncertain    bool // rows can have tombstones or several versions
}

// run identifies a run of files.
type run struct {
	tier   uint32
	number uint64
}

// Of returns the figures of the tables of a catalog, as a snapshot at seq sees them.
func Of(ctx context.Context, s *readstate.State, seq uint64, tables *catalog.Catalog) ([]store.TableStats, error) {
	var list []store.TableStats
	for _, t := range tables.List("", 0) {
		one, err := ofTable(ctx, s, seq, tables.Lookup(t.Name).ID)
		if err != nil {
			return nil, fmt.Errorf("figures of table %s: %w", t.Name, err)
		}
		one.Name = t.Name
		list = append(list, one)
	}
	return list, nil
}

// ofTable returns the figures of the table with that id, without its name.
func ofTable(ctx context.Context, s *readstate.State, seq uint64, table uint32) (store.TableStats, error) {
	c := counter{lower: codec.AppendTable(nil, table), upper: codec.AppendTable(nil, table+1), seq: seq}
	var failed error
	s.Version.Visit(c.lower, c.upper, func(f *manifest.File, open func() (*sstable.Reader, error)) {
		if failed == nil {
			failed = ctx.Err()
		}
		if failed == nil {
			failed = c.file(f, open)
		}
	})
	if failed != nil {
		return store.TableStats{}, failed
	}
	var puts, deletes int64
	for _, seg := range s.Mems {
		if seg.Empty() {
			continue
		}
		p, d, err := c.memtable(ctx, seg.Table)
		if err != nil {
			return store.TableStats{}, err
		}
		puts, deletes = puts+p, deletes+d
		if n := int64(seg.Table.Len()); n > 0 {
			c.bytes += (seg.Table.Bytes() + seg.Tail()) * min(p+d, n) / n
		}
	}
	out := store.TableStats{Bytes: c.bytes, Entities: puts, Exact: true}
	if inFiles := c.files > 0; inFiles || !c.single(s) {
		// Tombstones hide rows of files or of other memtables.
		out.Entities = max(0, c.rows-2*c.tombstones+puts-deletes)
		out.Exact = inFiles && puts+deletes == 0 && !c.several && !c.uncertain
		return out, nil
	}
	return out, nil
}

// single reports whether at most one memtable has rows of the table.
func (c *counter) single(s *readstate.State) bool {
	n := 0
	for _, seg := range s.Mems {
		if !seg.Empty() {
			it := seg.Table.NewIterator(memtable.IterOptions{Lower: c.lower, Upper: c.upper, Snapshot: c.seq})
			if it.SeekGE(c.lower) {
				n++
			}
			_ = it.Close() // an iterator of memory has no error
		}
	}
	return n <= 1
}

// memtable counts the rows and tombstones of a memtable.
func (c *counter) memtable(ctx context.Context, t *memtable.Table) (puts, deletes int64, err error) {
	it := t.NewIterator(memtable.IterOptions{Lower: c.lower, Upper: c.upper, Snapshot: c.seq})
	for ok := it.SeekGE(c.lower); ok; ok = it.Next() {
		if it.Row() == nil {
			deletes++
		} else {
			puts++
		}
		if (puts+deletes)%4096 == 0 && ctx.Err() != nil {
			break
		}
	}
	_ = it.Close()
	return puts, deletes, ctx.Err()
}

// file counts the rows of a file that has keys within the bounds.
func (c *counter) file(f *manifest.File, open func() (*sstable.Reader, error)) error {
	lo, first := splitBound(f.Smallest)
	hi, last := splitBound(f.Largest)
	end := append(bytes.Clone(hi), 0) // the least key above hi
	r := run{f.Tier, f.Run}
	c.several = c.several || c.files > 0 && r != c.run
	c.run, c.files = r, c.files+1
	// Two versions of a key have different sequence numbers, and a file of Load has one
	// version of each.
	c.uncertain = c.uncertain || f.Tombstones > 0 || f.MaxSeq > 0 && f.Stamp == 0
	clipped := first == 0 || last == ^uint64(0)
	if !clipped && bytes.Compare(lo, c.lower) >= 0 && bytes.Compare(end, c.upper) <= 0 {
		c.rows += int64(f.Entries)
		c.tombstones += int64(f.Tombstones)
		c.bytes += f.Size
		return nil
	}
	reader, err := open()
	if err != nil {
		return err
	}
	rows, err := c.part(reader, later(lo, c.lower), earlier(end, c.upper))
	if err != nil || f.Entries == 0 {
		return err
	}
	share := min(1, float64(rows)/float64(f.Entries))
	c.rows += rows
	c.tombstones += int64(share * float64(f.Tombstones))
	c.bytes += int64(share * float64(f.Size))
	return nil
}

// part counts the rows of a file within bounds: those of the groups at the bounds one by
// one, the others by the index.
func (c *counter) part(r *sstable.Reader, lower, upper []byte) (rows int64, err error) {
	it := r.NewIterator(sstable.IterOptions{Lower: lower, Upper: upper, Snapshot: c.seq})
	span, ok := it.SpanGE(lower)
	for first := true; ok; first = false {
		next, more := it.SpanAfter(&span)
		switch {
		case !first && more:
			rows += int64(span.Rows)
		case !span.Selectable():
			rows += int64(span.Rows)
			c.uncertain = true
		default:
			n, _, err := it.Select(&span, &sstable.Window{Lower: lower, Upper: upper}, nil)
			if err != nil {
				_ = it.Close()
				return 0, err
			}
			rows += int64(n)
		}
		span, ok = next, more
	}
	return rows, it.Close()
}

func splitBound(internal []byte) (user []byte, trailer uint64) {
	n := len(internal) - codec.TrailerLen
	return internal[:n:n], binary.BigEndian.Uint64(internal[n:])
}

func later(a, b []byte) []byte {
	if bytes.Compare(a, b) < 0 {
		return b
	}
	return a
}

func earlier(a, b []byte) []byte {
	if bytes.Compare(a, b) > 0 {
		return b
	}
	return a
}
