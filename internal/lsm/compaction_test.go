package lsm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestLostEntryStopsCompaction simulates a source that returned an entry which was
// neither written nor dropped.
func TestLostEntryStopsCompaction(t *testing.T) {
	h := newHarness(t, vfs.NewMem(), smallOptions(), 41)
	for n := range 300 {
		h.put(n, 60)
	}
	h.flush()
	before := h.files()
	v := h.tree.Version()
	k := h.tree.picker(v, nil)
	p := k.Full(nil, k.FullyCompacted)
	p.OneFile, p.Upper = false, nil
	r := h.tree.newCompaction(v, nil, p)
	j := &Job{t: h.tree, What: "compaction", step: r.step, abort: r.abort}
	_, err := j.Step(context.Background())
	must(t, err)
	r.in.Add(testKey(1))
	if err := runErr(j); err == nil || !strings.Contains(err.Error(), "301 entries") {
		t.Fatalf("got %v, want an error about 301 entries", err)
	}
	if after := h.files(); len(after) != len(before) || after[0].Number != before[0].Number {
		t.Fatalf("the files changed from %v to %v", before, after)
	}
	h.check()
	h.finish()
}

// TestRestWithoutTombstones has the flush of a queue: it deletes rows at the start, and inserts at the
// end. Once queries have had the deleted ones compacted, the rest of its file has no tombstones, and
// is not worth a compaction for them.
func TestRestWithoutTombstones(t *testing.T) {
	o := smallOptions()
	o.FileBytes = 64 << 10
	h := newHarness(t, vfs.NewMem(), o, 43)
	const deleted, inserted = 2000, 100
	for n := range deleted {
		h.write(orderedKey(n), "text")
	}
	h.flush()
	h.compactAll()
	for n := range deleted - inserted {
		h.write(orderedKey(n), "")
	}
	for n := range inserted {
		h.write(orderedKey(deleted+n), "text")
	}
	h.flush()
	for !h.tree.FoundDeleted(orderedKey(0), orderedKey(deleted-inserted), deleted-inserted) {
	}
	job := h.tree.PickCompaction()
	if job == nil || job.What != "compaction (deleted)" {
		t.Fatalf("picked %+v, want the deleted range", job)
	}
	finishJob(t, job)
	if n := h.tree.Stats().Tombstones; n != 0 {
		t.Errorf("%d tombstones, want none", n)
	}
	// The files of so few rows take more space than twice theirs.
	if job := h.tree.PickCompaction(); job != nil {
		if job.What != "compaction (garbage)" {
			t.Errorf("picked %s, want nothing but garbage", job.What)
		}
		job.Abort()
	}
	h.check()
	h.finish()
}

// TestDeletedRangeNeedsLittleSpace compacts a range in which queries found only deleted rows, and
// which is larger than the space of the disk. The compaction writes nothing, or one file if rows
// were inserted there again.
func TestDeletedRangeNeedsLittleSpace(t *testing.T) {
	race.SkipOneGoroutine(t)
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprintf("again=%t", again), func(t *testing.T) {
			h := newHarness(t, vfs.NewMem(), smallOptions(), 44)
			const rows = 3000
			for n := range rows {
				h.write(orderedKey(n), h.text(n, 60))
			}
			h.flush()
			h.compactAll()
			for n := range rows {
				value := ""
				if again && n%2 > 0 {
					value = h.text(n, 60)
				}
				h.write(orderedKey(n), value)
			}
			h.flush()
			limit := 10 * h.opts.FileBytes
			if n := h.tree.Stats().Bytes; n < 4*limit {
				t.Fatalf("%d bytes are too few", n)
			}
			h.tree.o.OutputLimit = func() int64 { return limit }
			for !h.tree.FoundDeleted(orderedKey(0), orderedKey(rows), rows) {
			}
			before := h.tree.Counters().CompactedFiles
			job := h.tree.PickCompaction()
			if job == nil || job.What != "compaction (deleted)" {
				t.Fatalf("picked %+v, want the deleted range", job)
			}
			finishJob(t, job)
			want := uint64(0)
			if again {
				want = 1
			}
			if n := h.tree.Counters().CompactedFiles - before; n != want {
				t.Errorf("%d files are written, want %d", n, want)
			}
			h.check()
			h.finish()
		})
	}
}

// TestDeletedRangesLeaveFewFiles compacts many deleted ranges of one file of the bottom.
func TestDeletedRangesLeaveFewFiles(t *testing.T) {
	race.SkipOneGoroutine(t)
	o := smallOptions()
	o.FileBytes = 1 << 20
	h := newHarness(t, vfs.NewMem(), o, 45)
	const rows, every = 4000, 20
	for n := range rows {
		h.write(orderedKey(n), h.text(n, 60))
	}
	h.flush()
	h.compactAll()
	for n := 0; n < rows; n += every {
		h.write(orderedKey(n), "")
	}
	h.flush()
	most := 0
	for n := 0; n < rows; n += every {
		for !h.tree.FoundDeleted(orderedKey(n), orderedKey(n+1), 1<<20) {
		}
		h.compactAll()
		v := h.tree.Version()
		most = max(most, len(v.Files()))
		v.Unref()
	}
	if most < 20 || most > 40 {
		t.Errorf("up to %d virtual sstables, want 20 to 40", most)
	}
	h.check()
	h.finish()
}

// TestConsumedFileAfterOpen opens a tree in which the middle of a file was consumed, and consumes the start. The end remains.
func TestConsumedFileAfterOpen(t *testing.T) {
	o := smallOptions()
	o.FileBytes = 1 << 20
	h := newHarness(t, vfs.NewMem(), o, 48)
	const rows, from, to = 1000, 400, 410
	for n := range rows {
		h.write(orderedKey(n), h.text(n, 60))
	}
	h.flush()
	finishJob(t, h.tree.NewFullCompaction())
	for _, c := range []struct{ from, to, files int }{{from, to, 2}, {0, from, 1}} {
		for n := c.from; n < c.to; n++ {
			h.write(orderedKey(n), "")
		}
		h.flush()
		for !h.tree.FoundDeleted(orderedKey(c.from), orderedKey(c.to), 1<<20) {
		}
		job := h.tree.PickCompaction()
		if job == nil || job.What != "compaction (deleted)" {
			t.Fatalf("picked %+v, want the deleted range", job)
		}
		finishJob(t, job)
		if n := len(h.files()); n != c.files {
			t.Errorf("%d virtual sstables from %d on, want %d", n, c.from, c.files)
		}
		h.close()
		h.checkFiles()
		h.open()
		h.check()
	}
	h.finish()
}

// TestWrongCountStopsCompaction increments the number of entries in the manifest.
func TestWrongCountStopsCompaction(t *testing.T) {
	h := newHarness(t, vfs.NewMem(), smallOptions(), 42)
	for range 2 {
		for n := range 300 {
			h.put(n, 60)
		}
		h.flush()
	}
	h.close()
	m := mustRead(t, h.fs)
	m.Files[3].Entries++
	must(t, manifest.Write(h.fs, testDir, m))
	h.open()
	var c *corrupt.Error
	if err := runErr(h.tree.NewFullCompaction()); !errors.As(err, &c) || c.File != filename.Make(filename.SSTable, m.Files[3].Number) {
		t.Fatalf("got %v, want damage of %s", err, filename.Make(filename.SSTable, m.Files[3].Number))
	}
}

// TestStepIsBounded flushes and compacts large rows. A step writes about a megabyte, so that a more urgent job soon runs.
func TestStepIsBounded(t *testing.T) {
	race.SkipOneGoroutine(t)
	o := smallOptions()
	o.FileBytes, o.GroupBytes = 0, 0 // the defaults
	h := newHarness(t, vfs.NewMem(), o, 46)
	h.mem = newTestMemtable(8 << 20)
	for n := range 60 {
		h.put(n, 100<<10)
	}
	for _, job := range []func() *Job{h.newFlush, h.tree.NewFullCompaction} {
		j := job()
		steps := int64(0)
		for done := false; !done; steps++ {
			var err error
			done, err = j.Step(t.Context())
			must(t, err)
		}
		if n := h.tree.Stats().Bytes / stepBytes; n < 4 || steps < n+3 || steps > n+10 {
			t.Errorf("%s: %d steps for %d MiB", j.What, steps, n)
		}
		h.flushed = h.seq
	}
	h.mem = newTestMemtable(1 << 20)
	h.check()
	h.finish()
}

// TestJobReleasesBlocks ends compactions while their inputs are read: by Abort, and at the end of a file.
func TestJobReleasesBlocks(t *testing.T) {
	race.SkipOneGoroutine(t)
	for _, abort := range []bool{true, false} {
		h := newHarness(t, vfs.NewMem(), smallOptions(), 47)
		for range 2 {
			for n := range 2000 {
				h.put(n, 60)
			}
			h.flush()
		}
		h.check() // the gets fill the cache, which the job uses
		job := h.tree.NewFullCompaction()
		for h.tree.Counters().Compactions < 2 {
			_, err := job.Step(t.Context())
			must(t, err)
		}
		if abort {
			for range 2 { // at rows of the next file
				_, err := job.Step(t.Context())
				must(t, err)
			}
		}
		job.Abort()
		if n := h.tree.o.Cache.Close(); n > 0 {
			t.Errorf("abort=%t: %d blocks are pinned at the end of the job", abort, n)
		}
		h.finish()
	}
}

// TestGetDoesNotAllocate reads cached rows, and keys that no run contains.
func TestGetDoesNotAllocate(t *testing.T) {
	h := newHarness(t, vfs.NewMem(), smallOptions(), 45)
	for range 3 {
		for n := range 300 {
			h.put(n, 60)
		}
		h.flush()
	}
	v := h.tree.Version()
	var row sstable.Row
	hit, miss := testKey(7), testKey(1000)
	for _, key := range [][]byte{hit, miss} {
		hash := codec.KeyHash(key)
		got := testing.AllocsPerRun(100, func() {
			if _, _, ok, err := v.Get(key, hash, h.seq, &row); err != nil || ok != bytes.Equal(key, hit) {
				t.Fatalf("get %q: %v, %v", key, ok, err)
			}
			row.Release()
		})
		if got != 0 {
			t.Errorf("get %q: %v allocations, want none", key, got)
		}
	}
	v.Unref()
	h.finish()
}
