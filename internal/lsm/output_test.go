package lsm

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestFileSizes loads or flushes rows of equal size and checks where the files end.
func TestFileSizes(t *testing.T) {
	const (
		small = 64 << 10
		large = 4 << 20 // a file of a table has an eighth, and one of a partition can have a sixteenth
	)
	for _, c := range []struct {
		name                         string
		fileBytes                    int64
		value                        int
		rows, perTable, perPartition int
		older                        int  // an older run has the rows from this one on
		flush                        bool // and not a load
		// Without want, all files but the last have at least the target size, at most a quarter more, and
		// a multiple of whole rows.
		want  string
		whole int
	}{
		{"tables too small for a file", large, 10 << 10, 60, 30, 10, 60, false, "[60]", 0},
		{"large tables", large, 10 << 10, 120, 60, 10, 120, false, "[60 60]", 0},
		{"one partition", small, 1 << 10, 300, 300, 300, 300, false, "", 1},
		{"partitions", small, 1 << 10, 300, 300, 9, 300, false, "", 9},
		{"rows above an older run", small, 1 << 10, 99, 99, 1, 0, false, "[10 10 10 10 10 10 10 10 10 9]", 0},
		{"a flush above an older run", small, 1 << 10, 99, 99, 1, 0, true, "[10 10 10 10 10 10 10 10 10 9]", 0},
		{"a partition above an older run", small, 1 << 10, 99, 99, 99, 0, false, "[12 12 12 12 12 12 12 12 3]", 0},
		{"rows behind the first above an older run", small, 1 << 10, 99, 99, 1, 50, false, "[50 10 10 10 10 9]", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := smallOptions()
			o.FileBytes = c.fileBytes
			h := newHarness(t, vfs.NewMem(), o, 61)
			var rows []loadRow
			for n := range c.rows {
				key := codec.AppendKey(nil, uint32(16+n/c.perTable), fmt.Sprintf("p%03d", n/c.perPartition), fmt.Sprintf("r%03d", n))
				rows = append(rows, loadRow{key, h.text(n, c.value)})
				if n >= c.older {
					h.write(key, h.text(n, 6*c.value)) // a tenth of them is no file of so many rows
				}
			}
			h.flush()
			older := h.seq
			if c.flush {
				for _, r := range rows {
					h.write(r.key, r.value)
				}
				h.flush()
			} else {
				h.load(rows)
			}
			var files []manifest.File
			for _, f := range h.files() {
				if f.MinSeq > older {
					files = append(files, f)
				}
			}
			var entries []uint64
			for i, f := range files {
				entries = append(entries, f.Entries)
				whole := c.want != "" || i == len(files)-1 || f.Size >= c.fileBytes && f.Size <= c.fileBytes*5/4+4<<10 && f.Entries%uint64(c.whole) == 0
				if !whole {
					t.Errorf("file %d has %d bytes and %d entries, want %d to %d bytes, and %d entries or a multiple",
						i, f.Size, f.Entries, c.fileBytes, c.fileBytes*5/4, c.whole)
				}
			}
			if got := fmt.Sprint(entries); c.want != "" && got != c.want || c.want == "" && len(files) < 3 {
				t.Errorf("files of %s entries, want %s", got, c.want)
			}
			h.check()
			h.finish()
		})
	}
}

// TestCountersOfJobs flushes files and compacts all of them, with and without a goroutine that finishes files.
func TestCountersOfJobs(t *testing.T) {
	for _, serial := range []bool{true, false} {
		h := newHarness(t, vfs.NewMem(), serialOptions(serial), 62)
		sizes := func() (n int64) {
			for _, f := range h.files() {
				n += f.Size
			}
			return n
		}
		for range 2 {
			for n := range 300 {
				h.put(n, 60)
			}
			h.flush()
		}
		h.write(testKey(300), "")
		h.flush()
		flushed := uint64(len(h.files()))
		want := Counters{
			Flushes: 3, FlushedBytes: sizes(), FlushedFiles: flushed,
			EntriesIn: 601, EntriesOut: 600, ElidedTombstones: 1,
		}
		if got := h.tree.Counters(); got != want {
			t.Errorf("serial=%t, flushes: %+v, want %+v", serial, got, want)
		}
		want.ReadBytes = want.FlushedBytes
		finishJob(t, h.tree.NewFullCompaction())
		got := h.tree.Counters()
		want.CompactedBytes, want.CompactedFiles = sizes(), uint64(len(h.files()))
		want.EntriesIn, want.EntriesOut, want.Shadowed = 1201, 900, 300
		want.Compactions, want.ReadFiles = got.Compactions, got.ReadFiles // those that are read in part count each time
		if got != want || got.Compactions < 3 || got.ReadFiles < flushed {
			t.Errorf("serial=%t, compaction: %+v, want %+v", serial, got, want)
		}
		h.finish()
	}
}

// TestNewKeysOfFiles flushes a file of keys that the tree has, and one of others.
func TestNewKeysOfFiles(t *testing.T) {
	h := newHarness(t, vfs.NewMem(), smallOptions(), 63)
	for n := range 400 {
		h.write(orderedKey(n), h.text(n, 60))
	}
	h.flush()
	h.compactAll()
	for n := range 800 {
		h.write(orderedKey(n), h.text(n, 60))
	}
	h.flush()
	old, fresh := 0, 0
	for _, f := range h.files() {
		user, _, _ := codec.SplitTrailer(f.Smallest)
		last, _, _ := codec.SplitTrailer(f.Largest)
		share := float64(f.NewKeys) / manifest.AllNewKeys
		switch middle := orderedKey(400); {
		case f.Tier == manifest.BottomTier:
		case bytes.Compare(last, middle) < 0:
			if old++; share > 0.1 {
				t.Errorf("%.2f of the keys from %q to %q are new, want none", share, user, last)
			}
		case bytes.Compare(user, middle) >= 0:
			if fresh++; share < 1 {
				t.Errorf("%.2f of the keys from %q to %q are new, want all", share, user, last)
			}
		}
	}
	if old == 0 || fresh == 0 {
		t.Errorf("%d files of old keys and %d of new ones, want some of each", old, fresh)
	}
	h.finish()
}
