package engine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// fullDisk is a database on a disk of limited size, and the entities that it must have.
type fullDisk struct {
	*testing.T
	disk *vfs.Mem
	o    engine.Options
	db   *engine.DB
	r    *rand.Rand
	rows map[string]edm.Entity
	next int
	size int // of an entity
}

func newFullDisk(t *testing.T, capacity int64, segment int64, size int, background bool) *fullDisk {
	t.Helper()
	f := &fullDisk{T: t, disk: vfs.NewMem(), r: rand.New(rand.NewPCG(uint64(capacity), uint64(size))), rows: map[string]edm.Entity{}, size: size}
	f.disk.SetCapacity(capacity)
	f.o = manual(f.disk)
	f.o.SegmentBytes = segment
	f.o.Testing.Manual = !background
	f.db = mustCreate(t, f.o)
	return f
}

// insert inserts one entity of random bytes under a random key.
func (f *fullDisk) insert() error {
	f.next++
	e := big(f.r, fmt.Sprintf("%08x%06d", f.r.Uint32(), f.next), "A", f.size)
	results, err := f.db.Apply(f.Context(), table, store.Insert(e))
	if err == nil {
		e.Timestamp = results[0].Timestamp
		f.rows[e.Key.Row] = e
	}
	return err
}

// fill inserts until the disk is full, also after the background work has had its time to
// reclaim space, and returns the number of entities.
func (f *fullDisk) fill() (n int) {
	f.Helper()
	for f.retry() == nil {
		n++
	}
	f.check()
	return n
}

// retry inserts. If the disk is full it lets the background work reclaim space and tries
// again.
func (f *fullDisk) retry() error { return f.retryCall(f.insert) }

func (f *fullDisk) retryCall(call func() error) (err error) {
	f.Helper()
	for range 200 {
		if err = call(); err == nil {
			return nil
		}
		if !errors.Is(err, store.ErrNoSpace) {
			f.Fatalf("write on a full disk: %v, want %v", err, store.ErrNoSpace)
		}
		if worked := f.work(); !worked && f.o.Testing.Manual {
			break
		}
	}
	return err
}

// work does the background work and reports whether there was any.
func (f *fullDisk) work() (worked bool) {
	f.Helper()
	for {
		more, err := f.db.Step(f.Context())
		check(f.T, "Step", err)
		if !more {
			return worked
		}
		worked = true
	}
}

// check compares the database with rows, and fails if the log has failed.
func (f *fullDisk) check() {
	f.Helper()
	if err := f.db.Failure(); err != nil {
		f.Fatalf("the database has failed: %v", err)
	}
	n := 0
	for e, err := range store.Entities(f.db.Query(f.Context(), table, store.Query{})) {
		check(f.T, "Query", err)
		if want, ok := f.rows[e.Key.Row]; !ok || want.Timestamp != e.Timestamp || string(want.Properties[0].Value.Bytes()) != string(e.Properties[0].Value.Bytes()) {
			f.Fatalf("row %v: found with %v, want %t with %v", e.Key, e.Timestamp, ok, want.Timestamp)
		}
		n++
	}
	if n != len(f.rows) {
		f.Fatalf("%d rows, want %d", n, len(f.rows))
	}
}

func (f *fullDisk) reopen() {
	f.Helper()
	check(f.T, "Close", f.db.Close())
	f.db = mustOpen(f.T, "db", f.o)
	f.check()
}

// kill opens the database as it is now.
func (f *fullDisk) kill() {
	f.Helper()
	f.disk = f.disk.Clone()
	f.o.FS = f.disk
	f.db = mustOpen(f.T, "db", f.o)
	f.check()
}

// deleteHalf deletes every other row, in random order.
func (f *fullDisk) deleteHalf() { f.deleteSome(2) }

// deleteSome deletes one of each rows, in random order.
func (f *fullDisk) deleteSome(each int) {
	f.Helper()
	n := 0
	rows := slices.Sorted(maps.Keys(f.rows))
	f.r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	for _, row := range rows {
		if n++; n%each == 0 {
			if _, err := f.db.Apply(f.Context(), table, store.Delete(edm.Key{Partition: "big", Row: row}, store.Any)); err != nil {
				f.Fatalf("delete %d on a full disk: %v; %d bytes free", n/each, err, f.free())
			}
			delete(f.rows, row)
		}
	}
}

func (f *fullDisk) free() int64 {
	s, err := f.disk.Space("db")
	check(f.T, "Space", err)
	return s.Free
}

// TestDeletesOnFullDisk fills a disk, opens the database again, and deletes half of the
// rows. About as many rows as were deleted must fit again.
func TestDeletesOnFullDisk(t *testing.T) {
	for _, c := range []struct {
		capacity, segment int64
		size              int
		background        bool
	}{
		{2 << 20, 64 << 10, 1000, false},
		{4 << 20, 64 << 20, 9000, false},
		{8 << 20, 256 << 10, 1000, true},
		{24 << 20, 64 << 20, 20_000, false},
		{24 << 20, 64 << 20, 1000, true},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			if !c.background {
				race.SkipOneGoroutine(t)
			}
			if testing.Short() && c.capacity > 4<<20 {
				t.Skip("the smaller disks take the same paths")
			}
			f := newFullDisk(t, c.capacity, c.segment, c.size, c.background)
			n := f.fill()
			stats, err := f.db.Stats()
			check(t, "Stats", err)
			used := f.disk.Used() - stats.ReserveBytes
			t.Logf("%d rows, %d bytes used beside the reserve, %.3f of the volume", n, used, float64(used)/float64(c.capacity))
			if used < c.capacity*4/5 && c.capacity >= 4<<20 {
				t.Errorf("refused at %d of %d bytes", used, c.capacity)
			}
			f.reopen()
			f.kill()
			f.deleteHalf()
			f.check()
			again := f.fill()
			t.Logf("%d rows after the deletes", again)
			if again < n/4 {
				t.Errorf("%d rows fit after %d of %d were deleted", again, n/2, n)
			}
			f.kill()
			f.deleteHalf()
			if f.fill() < n/4 {
				t.Error("no rows fit after the second deletes")
			}
			check(t, "Close", f.db.Close())
		})
	}
}

// TestScatteredCompactionsOnFullDisk fills a small disk, deletes half of the rows and fills
// it again, in orders in which compactions of ranges here and there took the space that a
// compaction of everything needs.
func TestScatteredCompactionsOnFullDisk(t *testing.T) {
	race.SkipOneGoroutine(t)
	for i, seed := range []uint64{24, 216, 221, 285} {
		if i%stride(4) != 0 {
			continue
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			f := newFullDisk(t, 4<<20, 64<<20, 9000, false)
			f.r = rand.New(rand.NewPCG(seed, 1))
			n := f.fill()
			f.reopen()
			f.kill()
			for range 2 {
				f.deleteHalf()
				f.check()
				if again := f.fill(); again < n/4 {
					t.Errorf("%d rows fit after %d of %d were deleted", again, n/2, n)
				}
				f.kill()
			}
			check(t, "Close", f.db.Close())
		})
	}
}

// TestDropOnFullDisk fills a disk with rows of two tables and drops one.
func TestDropOnFullDisk(t *testing.T) {
	for _, background := range []bool{true, false}[:2/stride(2)] {
		f := newFullDisk(t, 4<<20, 64<<10, 1000, background)
		check(t, "CreateTable", f.db.CreateTable(t.Context(), "Other"))
		others := 0
		for i := 0; f.insert() == nil; i++ {
			e := big(f.r, fmt.Sprint(i), "A", f.size)
			if _, err := f.db.Apply(t.Context(), "Other", store.Insert(e)); err == nil {
				others++
			}
		}
		f.kill()
		if err := f.db.CreateTable(t.Context(), "Third"); err != nil && !errors.Is(err, store.ErrNoSpace) {
			t.Errorf("CreateTable: %v", err)
		}
		check(t, "DeleteTable", f.db.DeleteTable(t.Context(), "Other"))
		if n := f.fill(); n < others*3/4 {
			t.Errorf("%d rows fit after %d were dropped", n, others)
		}
		f.reopen()
	}
}

// otherFile fills the disk with another file until free bytes are left.
func (f *fullDisk) otherFile(name string, free int64) {
	f.Helper()
	file, err := f.disk.Create(name)
	check(f.T, "Create", err)
	if n := f.free() - free; n > 0 {
		if _, err = file.WriteAt(make([]byte, n), 0); !errors.Is(err, syscall.ENOSPC) { // the database writes, too
			check(f.T, "WriteAt", err)
		}
	}
	check(f.T, "Close", file.Close())
}

// TestFilledByOtherFile fills a disk to its last byte with a file that is not the
// database's.
func TestFilledByOtherFile(t *testing.T) {
	for _, background := range []bool{true, false}[:2/stride(2)] {
		f := newFullDisk(t, 8<<20, 64<<10, 500, background)
		for range 1500 {
			check(t, "insert", f.insert())
		}
		f.work() // the end of a compaction under way would make space
		f.otherFile("other", 0)
		refused := 0
		for range 1000 {
			if err := f.insert(); errors.Is(err, store.ErrNoSpace) {
				refused++
			} else {
				check(t, "insert", err)
			}
		}
		if refused == 0 {
			t.Error("no insert is refused")
		}
		f.reopen()
		f.kill()
		f.work() // which uses the reserve and fills it again
		f.otherFile("other2", 0)
		f.deleteHalf()
		if n := f.fill(); n < 300 {
			t.Errorf("%d rows fit after half of 1500 were deleted", n)
		}
		check(t, "Remove", f.disk.Remove("other"))
		if n := f.fill(); n < 1000 {
			t.Errorf("%d rows fit after the other file was removed", n)
		}
		f.reopen()
	}
}

// TestCompactionAfterRefill uses the reserve for a flush while a compaction is due, and
// another file takes the space that the flush makes free. When there is space again, the next step must fill the reserve and the compaction must
// follow: a stalled writer waits for it, and nothing else wakes the worker.
func TestCompactionAfterRefill(t *testing.T) {
	f := newFullDisk(t, 32<<20, 1<<20, 500, false)
	flush := func(rows int) {
		t.Helper()
		for range rows {
			check(t, "insert", f.insert())
		}
		check(t, "Flush", f.db.Flush(t.Context()))
	}
	for range 8 {
		flush(200)
	}
	for range 200 {
		check(t, "insert", f.insert())
	}
	f.otherFile("other", 8<<10)
	f.disk.OnOp(func(op vfs.Op) {
		if op.Kind == "create" && strings.HasSuffix(op.Name, ".reserve") {
			f.disk.SetCapacity(f.disk.Used() + 8<<10)
		}
	})
	flush(0)
	f.disk.OnOp(nil)
	f.disk.SetCapacity(32 << 20)
	check(t, "Remove", f.disk.Remove("other"))
	before, err := f.db.Stats()
	check(t, "Stats", err)
	if full := int64(32<<20) / 16; before.ReserveBytes >= full || before.DiskFull {
		t.Fatalf("the reserve has %d bytes of %d, disk full %t: the flush did not use it", before.ReserveBytes, full, before.DiskFull)
	}
	f.work()
	after, err := f.db.Stats()
	check(t, "Stats", err)
	if after.RunsMax >= before.RunsMax {
		t.Errorf("%d runs, before the compaction %d", after.RunsMax, before.RunsMax)
	}
	f.check()
}

// TestNoReserve opens a database without a reserve on a disk without a free byte.
func TestNoReserve(t *testing.T) {
	for _, background := range []bool{true, false}[:2/stride(2)] {
		f := newFullDisk(t, 16<<20, 64<<10, 500, background)
		for range 3000 {
			check(t, "insert", f.insert())
		}
		check(t, "CreateTable", f.db.CreateTable(t.Context(), "Other"))
		f.work()              // Open would make space by the removal of unfinished files
		old := f.disk.Clone() // as after a kill
		names, err := old.List("db")
		check(t, "List", err)
		for _, name := range names {
			if strings.HasSuffix(name, ".reserve") {
				check(t, "Remove", old.Remove("db/"+name))
			}
		}
		f.disk, f.o.FS = old, old
		f.otherFile("other", 1<<20)
		f.otherFile("last", 0)
		f.db = mustOpen(t, "db", f.o)
		f.check()
		if err := f.insert(); !errors.Is(err, store.ErrNoSpace) {
			t.Errorf("insert: %v, want %v", err, store.ErrNoSpace)
		}
		if err := f.db.DeleteTable(t.Context(), "Other"); err != nil && !errors.Is(err, store.ErrNoSpace) {
			t.Errorf("DeleteTable without space: %v", err)
		}
		check(t, "Remove", f.disk.Remove("last")) // 1 MiB
		if err := f.db.DeleteTable(t.Context(), table); err != nil {
			t.Errorf("DeleteTable with 1 MiB free: %v", err)
		}
		f.rows = map[string]edm.Entity{}
		check(t, "CreateTable", f.retryCall(func() error { return f.db.CreateTable(t.Context(), table) }))
		check(t, "insert", f.retry())
		f.reopen()
	}
}

// TestDropAfterReclaim frees a little more than one file of the reserve on a disk that had
// no free byte, and lets the background work and another file use the rest. The drop of a
// table must still be accepted.
func TestDropAfterReclaim(t *testing.T) {
	const capacity = 16 << 20
	f := newFullDisk(t, capacity, 64<<10, 500, false)
	check(t, "CreateTable", f.db.CreateTable(t.Context(), "Other"))
	for range 3000 {
		check(t, "insert", f.insert())
	}
	f.disk = f.disk.Clone() // as after a kill
	f.o.FS = f.disk
	names, err := f.disk.List("db")
	check(t, "List", err)
	for _, name := range names {
		if strings.HasSuffix(name, ".reserve") {
			check(t, "Remove", f.disk.Remove("db/"+name))
		}
	}
	f.otherFile("other", capacity/16/8*5/4)
	f.db = mustOpen(t, "db", f.o)
	for range 20 {
		if _, err := f.db.Step(t.Context()); !errors.Is(err, syscall.ENOSPC) {
			check(t, "Step", err)
		}
	}
	f.otherFile("rest", 0)
	if err := f.db.DeleteTable(t.Context(), "Other"); err != nil {
		t.Errorf("DeleteTable after the background work: %v", err)
	}
	if err := f.db.DeleteTable(t.Context(), table); err != nil {
		t.Errorf("DeleteTable after the background work: %v", err)
	}
	f.rows = map[string]edm.Entity{}
	check(t, "CreateTable", f.retryCall(func() error { return f.db.CreateTable(t.Context(), table) }))
	f.reopen()
}

// TestSnapshotOnFullDisk deletes rows of a full disk while a snapshot needs them, and the
// background work keeps them. When the snapshot is closed, their space must become free
// without another delete.
func TestSnapshotOnFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("fills 8 MiB twice in one goroutine")
	}
	f := newFullDisk(t, 8<<20, 64<<10, 1000, false)
	n := f.fill()
	f.work()
	snap, err := f.db.Snapshot()
	check(t, "Snapshot", err)
	for i, row := range slices.Sorted(maps.Keys(f.rows)) {
		if i == n/32 {
			break
		}
		_, err := f.db.Apply(t.Context(), table, store.Delete(edm.Key{Partition: "big", Row: row}, store.Any))
		check(t, "Apply", err)
		delete(f.rows, row)
	}
	f.work()
	check(t, "Close", snap.Close())
	if again := f.fill(); again < n/64 {
		t.Errorf("%d rows fit after %d were deleted", again, n/32)
	}
}

// TestLargeRecordsOnFullDisk writes a record much larger than a segment to a disk that has
// space for it and not for its flush. If it were accepted, no delete could make room again.
func TestLargeRecordsOnFullDisk(t *testing.T) {
	race.SkipOneGoroutine(t)
	for i, free := range []int64{4 << 20, 5 << 20, 6 << 20, 8 << 20, 10 << 20} {
		if i%stride(5) != 0 {
			continue
		}
		f := newFullDisk(t, 24<<20, 64<<10, 9000, false)
		for f.free() > 12<<20 {
			check(t, "insert", f.insert())
		}
		check(t, "Compact", f.db.Compact(t.Context()))
		f.otherFile("other", free)
		var ops []store.Op
		for k := range 4 {
			ops = append(ops, store.Insert(big(f.r, fmt.Sprint("large", k), "A", 900_000)))
		}
		results, err := f.db.Apply(t.Context(), table, ops...)
		for k := range results {
			e := ops[k].Entity
			e.Timestamp = results[k].Timestamp
			f.rows[e.Key.Row] = e
		}
		if err != nil && !errors.Is(err, store.ErrNoSpace) || err == nil && free < 6<<20 {
			t.Errorf("with %d bytes free: %v, want %v", free, err, store.ErrNoSpace)
		}
		if err := f.db.Flush(t.Context()); err != nil {
			t.Errorf("with %d bytes free: Flush: %v", free, err)
		}
		f.deleteHalf()
		if n := f.fill(); n < 200 {
			t.Errorf("with %d bytes free: %d rows fit after half of the rows were deleted", free, n)
		}
		f.reopen()
	}
}

// TestSpaceForSmallRecords refuses a large record. The disk counts as full until everything is
// reclaimed, and no longer, because it has space for small records.
func TestSpaceForSmallRecords(t *testing.T) {
	race.SkipOneGoroutine(t)
	f := newFullDisk(t, 24<<20, 64<<10, 9000, false)
	for range 200 {
		check(t, "insert", f.insert())
	}
	check(t, "Compact", f.db.Compact(t.Context()))
	f.otherFile("other", 4<<20)
	full := func() bool {
		s, err := f.db.Stats()
		check(t, "Stats", err)
		return s.DiskFull
	}
	for range 2 {
		var large []store.Op
		for k := range 4 {
			large = append(large, store.Insert(big(f.r, fmt.Sprint("large", k), "A", 900_000)))
		}
		if _, err := f.db.Apply(t.Context(), table, large...); !errors.Is(err, store.ErrNoSpace) || !full() {
			t.Fatalf("large record: %v, want %v, and a full disk: %t", err, store.ErrNoSpace, full())
		}
		check(t, "insert", f.insert())
		if f.work(); full() {
			t.Error("the disk counts as full after everything is reclaimed")
		}
	}
	f.fill()
	if f.work(); !full() {
		t.Error("the disk does not count as full, and small records are refused")
	}
	f.reopen()
}

// TestStallOnFullDisk refuses a large record and goes on with small ones, which the disk
// has space for, and flushes each. The writers must not wait for a compaction that nobody
// starts.
func TestStallOnFullDisk(t *testing.T) {
	for _, background := range []bool{false, true} {
		f := newFullDisk(t, 24<<20, 64<<10, 9000, background)
		for range 200 {
			check(t, "insert", f.insert())
		}
		check(t, "Compact", f.db.Compact(t.Context()))
		f.otherFile("other", 4<<20)
		var large []store.Op
		for k := range 4 {
			large = append(large, store.Insert(big(f.r, fmt.Sprint("large", k), "A", 900_000)))
		}
		if _, err := f.db.Apply(t.Context(), table, large...); !errors.Is(err, store.ErrNoSpace) {
			t.Fatalf("large record: %v, want %v", err, store.ErrNoSpace)
		}
		for i := range 60 {
			first, last := big(f.r, fmt.Sprint("!", i), "A", 100), big(f.r, fmt.Sprint("~", i), "A", 100)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			_, err := f.db.Apply(ctx, table, store.Insert(first), store.Insert(last))
			cancel()
			check(t, "small record", err)
			check(t, "Flush", f.db.Flush(t.Context()))
		}
		stats, err := f.db.Stats()
		check(t, "Stats", err)
		if stats.RunsMax > 25 {
			t.Errorf("%d runs overlap", stats.RunsMax)
		}
	}
}

// countedSpace counts the calls of Space.
type countedSpace struct {
	vfs.FS
	calls atomic.Int64
}

func (c *countedSpace) Space(dir string) (vfs.Space, error) {
	c.calls.Add(1)
	return c.FS.Space(dir)
}

// TestSpaceCalls writes and deletes on a disk with space. The system must not be asked for
// the free space at each record.
func TestSpaceCalls(t *testing.T) {
	disk := vfs.NewMem()
	disk.SetCapacity(256 << 20)
	counted := &countedSpace{FS: disk}
	o := manual(counted)
	o.SegmentBytes = 4 << 20
	db := mustCreate(t, o)
	before := counted.calls.Load()
	for _, op := range []func(edm.Entity) store.Op{store.Insert, func(e edm.Entity) store.Op { return store.Delete(e.Key, store.Any) }} {
		for i := range 1000 {
			_, err := db.Apply(t.Context(), table, op(edm.Entity{Key: edm.Key{Partition: "p", Row: fmt.Sprintf("%0300d", i)}}))
			check(t, "Apply", err)
		}
	}
	if n := counted.calls.Load() - before; n > 20 {
		t.Errorf("%d calls for 2000 records", n)
	}
}

// TestReclaimAfterAbort deletes rows of a full disk, and ends the reclaim after some steps by a
// Compact that is stopped. The reclaim must begin again: nothing else tells the worker to.
func TestReclaimAfterAbort(t *testing.T) {
	race.SkipOneGoroutine(t)
	for _, steps := range []int{3, 10, 25} {
		f := newFullDisk(t, 4<<20, 64<<20, 9000, false)
		f.fill()
		f.deleteSome(8)
		for range steps {
			_, err := f.db.Step(t.Context())
			check(t, "Step", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		f.disk.OnOp(func(op vfs.Op) {
			if op.Kind == "create" && strings.HasSuffix(op.Name, ".sst") {
				cancel()
			}
		})
		if err := f.db.Compact(ctx); !errors.Is(err, context.Canceled) {
			t.Fatalf("after %d steps: Compact: %v, want it to be stopped", steps, err)
		}
		cancel()
		f.disk.OnOp(nil)
		f.work()
		stats, err := f.db.Stats()
		check(t, "Stats", err)
		if stats.DiskFull {
			t.Errorf("after %d steps: the disk counts as full, with %d bytes free, and nothing is left to do", steps, f.free())
		}
		f.check()
		check(t, "Close", f.db.Close())
	}
}
