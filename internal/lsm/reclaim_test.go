package lsm

import (
	"errors"
	"fmt"
	"math"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
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

// TestOutputLimitIsExact has a disk without space for the output of a compaction. A flush, a move and a drop of files need
// none. A compaction needs the bytes of its inputs beside the files that are consumed in part, and one file of a full
// compaction needs a quarter more than its least target.
func TestOutputLimitIsExact(t *testing.T) {
	limit := int64(0)
	o := smallOptions()
	o.FileBytes = 256 << 10
	o.OutputLimit = func() int64 { return limit }
	h := newHarness(t, vfs.NewMem(), o, 12)
	write := func(table uint32) {
		for n := range 400 {
			h.write(codec.AppendKey(nil, table, fmt.Sprintf("p%03d", n), "r"), h.text(n, 200))
		}
		h.flush()
	}
	write(16)
	write(17)
	h.compactAll()
	h.drop(17)
	h.compactAll()
	if c := h.tree.Counters(); c.MovedFiles == 0 || c.DroppedFiles == 0 || c.Compactions > 0 {
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
