package lsm

import (
	"errors"
	"math"
	"syscall"
	"testing"

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
