package lsm

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/bound"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestOutputLimit compacts on a disk with little space. A compaction whose output does not
// fit writes nothing, and a reclaim cuts its output, so that it needs little more than a
// file of each run.
func TestOutputLimit(t *testing.T) {
	limit := int64(math.MaxInt64)
	o := smallOptions()
	o.FileBytes = 256 << 10
	o.OutputLimit = func() int64 { return limit }
	disk := vfs.NewMem()
	h := newHarness(t, disk, o, 7)
	for round := range 4 {
		for n := range 3000 {
			if round == 0 || n%2 == 0 {
				h.put(n, 100)
			}
		}
		h.flush()
	}
	for n := 1; n < 3000; n += 4 {
		h.write(testKey(n), "")
	}
	h.flush()
	before := disk.Used()

	limit = 10_000
	if err := runErr(h.tree.NewFullCompaction()); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("compaction with space for %d bytes: %v, want ENOSPC", limit, err)
	}
	if disk.Used() != before {
		t.Errorf("it left %d bytes", disk.Used()-before)
	}

	limit = 150_000
	need := h.tree.current.Load().CompactionSpace() + limit
	most := int64(0)
	job := h.tree.NewReclaim()
	for done := false; !done; {
		var err error
		done, err = job.Step(t.Context())
		must(t, err)
		most = max(most, disk.Used())
	}
	if most > before+need {
		t.Errorf("the disk grew by %d bytes, want at most %d", most-before, need)
	}
	if after := disk.Used(); after > before/2 {
		t.Errorf("%d bytes are left of %d", after, before)
	}
	h.check()

	written := h.tree.Counters().CompactedBytes
	finishJob(t, h.tree.NewReclaim())
	if n := h.tree.Counters().CompactedBytes - written; n != 0 {
		t.Errorf("a second reclaim wrote %d bytes", n)
	}
	h.drop(16)
	finishJob(t, h.tree.NewReclaim())
	if after := disk.Used(); after > before/3 {
		t.Errorf("%d bytes are left after a drop of a table", after)
	}
	h.check()
	h.finish()
}

// TestReclaimOfFewRuns reclaims the space of deleted rows that are in many runs, of which each has a file that is consumed in
// part, on a disk with space for two of these files. The reclaim compacts the oldest runs first, unless all together have
// little output.
func TestReclaimOfFewRuns(t *testing.T) {
	race.SkipOneGoroutine(t)
	for _, c := range []struct {
		runs, deleted int // of these rows
		few           bool
	}{{3, 10, false}, {12, 10, true}, {12, 1, false}} {
		full, most := false, int64(0)
		o := smallOptions()
		o.FileBytes, o.TierRuns = 256<<10, 0
		disk := vfs.NewMem()
		o.OutputLimit = func() int64 {
			if full {
				return most - disk.Used()
			}
			return math.MaxInt64
		}
		h := newHarness(t, disk, o, 16)
		const rows = 500 // of a run
		for i := range c.runs - 1 {
			for n := range rows {
				h.put(n*c.runs+i, 1400)
			}
			h.flush()
		}
		deleted := 0
		for n := range rows * c.runs {
			if n%c.deleted == 0 {
				h.write(testKey(n), "")
				deleted++
			}
		}
		h.flush()
		before, version := disk.Used(), h.tree.Version()
		least, need := version.runs.OldestWithin(0).CompactionSpace(), version.CompactionSpace()
		version.Unref()
		least += 150 << 10
		if c.runs > 3 && need < 2*least {
			t.Fatalf("%+v: all runs need %d bytes, two of them %d", c, need, least)
		}
		full, most = true, before+least
		written := h.tree.Counters().CompactedBytes
		job := h.tree.NewReclaim()
		for done := false; !done; {
			var err error
			if done, err = job.Step(t.Context()); err != nil {
				t.Fatalf("%+v: %v", c, err)
			}
			if n := disk.Used(); n > most {
				t.Fatalf("%+v: the disk grew by %d bytes, it had %d", c, n-before, least)
			}
		}
		written = h.tree.Counters().CompactedBytes - written
		keys, _ := h.expect(h.seq)
		if s := h.tree.Stats(); len(s.Tiers) > 1 || s.Entries != uint64(len(keys)) || disk.Used() > before-int64(deleted)*800 {
			t.Errorf("%+v: %d entries in %d tiers and %d bytes are left of %d", c, s.Entries, len(s.Tiers), disk.Used(), before)
		}
		if few := written > 2*before; few != c.few {
			t.Errorf("%+v: the reclaim wrote %d bytes, the files had %d", c, written, before)
		}
		h.check()
		h.finish()
	}
}

// TestOutputLimitIsExact has a disk without space for the output of a compaction. A flush, a move and a drop of files need
// none. A compaction needs the bytes of its inputs beside the files that are consumed in part, and one file of a full
// compaction needs a quarter more than its least target.
func TestOutputLimitIsExact(t *testing.T) {
	limit := int64(0)
	o := smallOptions()
	o.FileBytes, o.TierRuns = 256<<10, 0
	o.OutputLimit = func() int64 { return limit }
	h := newHarness(t, vfs.NewMem(), o, 12)
	write := func(table uint32) {
		for n := range 120 { // one file, which is large enough to be moved
			h.write(codec.AppendKey(nil, table, "p", fmt.Sprintf("r%03d", n)), h.text(n, 200))
		}
		h.flush()
	}
	write(16)
	write(17)
	h.compactAll()
	write(18)
	h.compactAll()
	for _, c := range []struct {
		table uint32
		free  func()
	}{{17, h.compactAll}, {18, func() { finishJob(t, h.tree.NewReclaim()) }}} {
		h.drop(c.table)
		c.free()
		if n := h.rowsOf(c.table); n > 0 {
			t.Errorf("%d rows of table %d are left", n, c.table)
		}
	}
	if c := h.tree.Counters(); c.MovedFiles == 0 || c.DroppedFiles < 2 || c.Compactions > 0 {
		t.Fatalf("want files moved and dropped, and none compacted: %+v", c)
	}
	for _, c := range []struct {
		name string
		job  func() *Job
		need func() int64
	}{
		{"compaction (garbage)", h.tree.PickCompaction, func() int64 { return h.tree.Stats().Bytes + h.tree.current.Load().CompactionSpace() }},
		{"full compaction", h.tree.NewFullCompaction, func() int64 { return o.FileBytes/8 + o.FileBytes/32 }},
	} {
		write(16)
		need := c.need()
		for _, limit = range []int64{need - 1, need} {
			before := h.tree.Counters()
			job := c.job()
			if job == nil || job.What != c.name {
				t.Fatalf("got %+v, want a %s", job, c.name)
			}
			err := runErr(job)
			if full := limit < need; errors.Is(err, syscall.ENOSPC) != full || !full && err != nil {
				t.Errorf("%s with space for %d of %d bytes: %v", c.name, limit, need, err)
			} else if full && h.tree.Counters() != before {
				t.Errorf("%s without space did something", c.name)
			}
		}
		h.check()
	}
	h.finish()
}

// TestReclaimAfterSnapshot overwrites all rows while a snapshot reads the old ones, and takes both to the bottom: by a
// compaction, or by a move of their files. A reclaim after the end of the snapshot drops the old ones.
func TestReclaimAfterSnapshot(t *testing.T) {
	for _, moved := range []bool{false, true} {
		h := newHarness(t, vfs.NewMem(), smallOptions(), 8)
		for range 2 {
			for n := range 600 {
				h.put(n, 100)
			}
			if !moved {
				h.flush()
			}
			h.snaps = []uint64{h.seq}
		}
		h.snaps = []uint64{600}
		if h.flush(); moved {
			h.compactAll()
		} else {
			finishJob(t, h.tree.NewFullCompaction())
		}
		before := h.tree.Stats()
		h.snaps = nil
		finishJob(t, h.tree.NewReclaim())
		if after := h.tree.Stats(); before.Bottom().Entries != 1200 || after.Entries != 600 {
			t.Errorf("moved=%t: %d entries in the bottom before, %d after, want 1200 and 600", moved, before.Bottom().Entries, after.Entries)
		}
		h.check()
		h.finish()
	}
}

// TestMovedVersionsAreCompacted flushes three versions of each row for snapshots. Their files are moved to the bottom, and
// compacted there after the end of the snapshots.
func TestMovedVersionsAreCompacted(t *testing.T) {
	o := smallOptions()
	o.FileBytes = 64 << 10
	h := newHarness(t, vfs.NewMem(), o, 8)
	for range 3 {
		for n := range 600 {
			h.put(n, 100)
		}
		h.snaps = append(h.snaps, h.seq)
	}
	h.flush()
	h.compactAll()
	before := h.tree.Stats()
	h.snaps = nil
	h.compactAll()
	if after := h.tree.Stats(); before.Bottom().Entries < 1700 || after.Entries > 900 {
		t.Errorf("%d entries in the bottom before, %d after, want nearly all of 1800, and about 600", before.Bottom().Entries, after.Entries)
	}
	h.check()
	h.finish()
}

// TestCompactsOnce compacts small tables of which some were dropped. Their ids are still between those of others, but a
// second compaction, or a reclaim, has nothing to do.
func TestCompactsOnce(t *testing.T) {
	for _, tables := range []int{3, 600} { // fewer, and more, than are looked at one by one
		o := smallOptions()
		o.FileBytes = 256 << 10
		h := newHarness(t, vfs.NewMem(), o, 9)
		for n := range tables {
			for row := range 3 {
				h.write(codec.AppendKey(nil, uint32(16+n), "p", fmt.Sprint(row)), h.text(n, 30))
			}
		}
		h.flush()
		h.drop(17)
		finishJob(t, h.tree.NewFullCompaction())
		if s := h.tree.Stats(); s.Entries != uint64(3*(tables-1)) {
			t.Errorf("%d tables: %d entries are left, want those of all but one", tables, s.Entries)
		}
		written := h.tree.Counters().CompactedBytes
		finishJob(t, h.tree.NewFullCompaction())
		finishJob(t, h.tree.NewReclaim())
		if n := h.tree.Counters().CompactedBytes - written; n != 0 {
			t.Errorf("%d tables: a second compaction and a reclaim wrote %d bytes", tables, n)
		}
		h.drop(16)
		finishJob(t, h.tree.NewReclaim())
		if s := h.tree.Stats(); s.Entries != uint64(3*(tables-2)) {
			t.Errorf("%d tables: %d entries are left after another drop", tables, s.Entries)
		}
		h.drop(18)
		finishJob(t, h.tree.NewFullCompaction())
		if s := h.tree.Stats(); s.Entries != uint64(3*(tables-3)) {
			t.Errorf("%d tables: %d entries are left after a drop and a full compaction", tables, s.Entries)
		}
		h.check()
		h.finish()
	}
}

// TestReclaimUnderSnapshot reclaims the space of deleted rows while a snapshot reads them. Nothing can be freed, so that
// only the first reclaim writes.
func TestReclaimUnderSnapshot(t *testing.T) {
	h := newHarness(t, vfs.NewMem(), smallOptions(), 10)
	for n := range 600 {
		h.put(n, 100)
	}
	h.flush()
	h.snaps = []uint64{h.seq}
	for n := range 600 {
		if n%5 > 0 {
			h.write(testKey(n), "")
		}
	}
	h.flush()
	finishJob(t, h.tree.NewReclaim())
	written := h.tree.Counters().CompactedBytes
	for range 3 {
		finishJob(t, h.tree.NewReclaim())
	}
	if n := h.tree.Counters().CompactedBytes - written; n != 0 {
		t.Errorf("reclaims that cannot free anything wrote %d bytes", n)
	}
	h.check()
	h.snaps = []uint64{h.seq}
	finishJob(t, h.tree.NewReclaim())
	if s := h.tree.Stats(); s.Entries != 120 {
		t.Errorf("%d entries are left after the snapshot, want 120", s.Entries)
	}
	h.check()
	h.finish()
}

// TestDroppedSmallTables drops most of many small tables, so that each file of the bottom has rows of some that are left.
// The files must take at most 2.1 times the live rows and one file more.
func TestDroppedSmallTables(t *testing.T) {
	race.SkipOneGoroutine(t)
	for _, reopen := range []bool{false, true} {
		t.Run(fmt.Sprintf("reopen=%t", reopen), func(t *testing.T) { testDroppedSmallTables(t, reopen) })
	}
}

func testDroppedSmallTables(t *testing.T, reopen bool) {
	const tables, rows = 1000, 5
	o := smallOptions()
	o.FileBytes = 64 << 10
	h := newHarness(t, vfs.NewMem(), o, 11)
	for n := range tables {
		for row := range rows {
			h.write(codec.AppendKey(nil, uint32(16+n), "p", fmt.Sprint(row)), h.text(n, 100))
		}
	}
	h.flush()
	finishJob(t, h.tree.NewFullCompaction())
	before := h.tree.Stats().Bytes
	h.seq++
	for n := range tables {
		if n%10 > 0 {
			h.dropped[uint32(16+n)] = h.seq
		}
	}
	h.flush()
	if reopen {
		h.close()
		h.open()
	}
	for range before / o.FileBytes { // one file for each pick
		h.compactAll()
	}
	if got, bound := h.tree.Stats().Bytes, before/10*21/10+o.FileBytes; got > bound {
		t.Errorf("%d bytes are left of %d, want at most %d", got, before, bound)
	}
	h.check()
	h.finish()
}

// TestDroppedLargeTable drops a table that has most of the rows of a file. A compaction removes them.
func TestDroppedLargeTable(t *testing.T) {
	o := smallOptions()
	o.FileBytes = 256 << 10
	h := newHarness(t, vfs.NewMem(), o, 13)
	const small = 20
	for n := range small {
		h.write(codec.AppendKey(nil, uint32(16+n), "p", "r"), "text")
	}
	for n := range 200 {
		h.write(codec.AppendKey(nil, 16+small, "p", fmt.Sprint(n)), h.text(n, 100))
	}
	h.flush()
	finishJob(t, h.tree.NewFullCompaction())
	before := h.files()
	h.drop(16 + small)
	h.compactAll()
	if s := h.tree.Stats(); len(before) != 1 || s.Entries != small {
		t.Errorf("%d entries of %d files are left, want %d of one", s.Entries, len(before), small)
	}
	h.check()
	h.finish()
}

// TestReclaimOfTombstones compacts tombstones that a snapshot keeps, and what they hid is gone. A reclaim after the end of the
// snapshot drops them.
func TestReclaimOfTombstones(t *testing.T) {
	h := newHarness(t, vfs.NewMem(), smallOptions(), 14)
	h.put(1000, 10)
	h.snaps = []uint64{h.seq}
	for _, value := range []string{"text", ""} {
		for n := range 300 {
			h.write(testKey(n), value)
		}
	}
	h.flush()
	finishJob(t, h.tree.NewFullCompaction())
	if s := h.tree.Stats(); s.Entries != 301 || s.Tombstones != 300 {
		t.Errorf("%d entries, %d tombstones, want 300 and a row", s.Entries, s.Tombstones)
	}
	h.snaps = nil
	finishJob(t, h.tree.NewReclaim())
	if s := h.tree.Stats(); s.Entries != 1 {
		t.Errorf("%d entries are left, want a row", s.Entries)
	}
	h.check()
	h.finish()
}

// TestReclaimBeginsAtConsumedFile reclaims the space of a tree in which most of one file has been consumed. This file is
// removed first, and the keys before it are compacted too.
func TestReclaimBeginsAtConsumedFile(t *testing.T) {
	o := smallOptions()
	o.FileBytes = 16 << 10
	h := newHarness(t, vfs.NewMem(), o, 15)
	const rows = 1000
	for n := range rows {
		h.write(orderedKey(n), h.text(n, 100))
	}
	h.flush()
	finishJob(t, h.tree.NewFullCompaction())
	const from, to = 755, 795 // in a file
	for n := from; n < to; n++ {
		h.write(orderedKey(n), "")
	}
	h.flush()
	for !h.tree.FoundDeleted(orderedKey(from), orderedKey(to), 1<<20) {
	}
	job := h.tree.PickCompaction()
	if job == nil || job.What != "compaction (deleted)" {
		t.Fatalf("picked %+v, want the deleted range", job)
	}
	finishJob(t, job)
	for n := range rows / 5 {
		h.write(orderedKey(n), "")
	}
	h.flush()
	first, start := uint64(0), []byte(nil)
	v := h.tree.Version()
	for _, s := range v.runs.SSTs() {
		if s.Clipped && (start == nil || bytes.Compare(s.Lo, start) < 0) {
			first, start = s.Number, s.Lo
		}
	}
	v.Unref()
	if start == nil {
		t.Fatal("no file was consumed in part")
	}
	before := h.tree.Counters().Compactions
	job = h.tree.NewReclaim()
	for h.tree.Counters().Compactions == before {
		done, err := job.Step(t.Context())
		must(t, err)
		if done {
			t.Fatal("the reclaim did nothing")
		}
	}
	for _, f := range h.files() {
		if user, _ := bound.Split(f.Smallest); f.Number == first && bytes.Equal(user, start) {
			t.Errorf("file %d, which was consumed in part, is not compacted first", first)
		}
	}
	finishJob(t, job)
	if s := h.tree.Stats(); s.Tombstones != 0 || s.Entries != rows-rows/5-(to-from) {
		t.Errorf("%d entries with %d tombstones are left, want %d rows", s.Entries, s.Tombstones, rows-rows/5-(to-from))
	}
	h.check()
	h.finish()
}
