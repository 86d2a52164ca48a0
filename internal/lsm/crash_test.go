package lsm

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// prepare writes rows so that a flush and several kinds of compaction have work, with a
// snapshot and a dropped table.
func (h *harness) prepare() {
	h.t.Helper()
	for i := range 300 {
		h.put(i, 60)
	}
	h.flush()
	h.compactAll()
	for range 3 {
		for range 40 {
			h.put(h.rng.IntN(300), 60)
			h.write(testKey(h.rng.IntN(300)), "")
		}
		h.flush()
		h.snaps = []uint64{h.seq}
	}
	h.drop(17)
	for range 150 {
		h.put(h.rng.IntN(300), 60)
	}
}

// withFS returns a harness with the same model and another file system.
func (h *harness) withFS(t testing.TB, fsys vfs.FS) *harness {
	c := *h
	c.t, c.fs, c.job = t, fsys, nil
	c.snaps = slices.Clone(h.snaps)
	return &c
}

// TestCrash cuts the power before, during and after operations of compactions, of a flush and of the
// following compactions. The disk then has the state before or after the flush, and the
// tree can continue from it. It checks a sample of some 7,000 disks, of all modes:
// cmd/torture checks 65,000 in CI.
func TestCrash(t *testing.T) {
	for _, serial := range []bool{true, false} {
		t.Run(fmt.Sprintf("serial=%t", serial), func(t *testing.T) { testCrash(t, serial) })
	}
}

func testCrash(t *testing.T, serial bool) {
	if serial {
		race.SkipOneGoroutine(t)
	}
	mem := vfs.NewCrashMem()
	h := newHarness(t, mem, serialOptions(serial), 11)
	h.prepare()
	before, after := h.flushed, h.seq
	stride := uint64(5) // no divisor of the number of modes, or some would be left out
	if !serial {
		stride = 11
	}
	if testing.Short() {
		stride *= 19
	}
	var disks []*vfs.Mem
	var names []string
	n := uint64(0)
	var mu sync.Mutex
	mem.OnOp(func(op vfs.Op) {
		mu.Lock()
		defer mu.Unlock()
		for _, mode := range vfs.CrashModes {
			if n++; n%stride != 0 {
				continue
			}
			disks = append(disks, mem.Crash(vfs.CrashOptions{Mode: mode, Seed: n}))
			names = append(names, fmt.Sprintf("%v at %v", mode, op))
		}
	})
	for !h.tree.FoundDeleted(testKey(0), testKey(150), 1<<20) { // as if queries had passed only tombstones there
	}
	if job := h.tree.PickCompaction(); job.What != "compaction (deleted)" {
		t.Fatalf("picked %s, want the deleted range", job.What)
	} else {
		finishJob(t, job)
	}
	h.compactAll()
	h.flush()
	h.compactAll()
	finishJob(t, h.tree.NewFullCompaction())
	mem.OnOp(nil)
	t.Logf("%d of %d disks", len(disks), n)
	old, current := 0, 0
	for i, disk := range disks {
		m, err := manifest.Read(disk, testDir)
		if err != nil {
			t.Fatalf("%s: %v", names[i], err)
		}
		c := h.withFS(t, disk)
		switch m.LastSeq {
		case before:
			old++
		case after:
			current++
		default:
			t.Fatalf("%s: last sequence %d, want %d or %d", names[i], m.LastSeq, before, after)
		}
		c.flushed = m.LastSeq
		ok := t.Run(names[i], func(t *testing.T) {
			c.t = t
			c.open()
			c.check()
			if i%7 != 0 {
				must(t, c.tree.Close())
				return
			}
			// Leftovers must not disturb a job.
			if i%2 == 0 {
				_, err := c.tree.RemoveLeftovers()
				must(t, err)
			}
			if c.flushed == before {
				c.mem = h.replay(before)
				c.flush()
			}
			c.compactAll()
			c.check()
			c.close()
		})
		if !ok {
			return
		}
	}
	if old == 0 || current == 0 {
		t.Fatalf("%d disks with the state before, %d with the state after: want some of each", old, current)
	}
}

// replay returns a memtable of the writes after a sequence.
func (h *harness) replay(from uint64) *testMemtable {
	type write struct {
		key string
		version
	}
	var writes []write
	for key, versions := range h.model {
		for _, v := range versions {
			if v.seq > from {
				writes = append(writes, write{key, v})
			}
		}
	}
	slices.SortFunc(writes, func(a, b write) int { return int(a.seq) - int(b.seq) })
	m := newTestMemtable(1 << 20)
	for _, x := range writes {
		m.add([]byte(x.key), x.value, x.seq, ^uint64(0))
	}
	return m
}

// TestLeftoversAreRemoved cuts the power during a flush, in a directory with foreign
// files.
func TestLeftoversAreRemoved(t *testing.T) {
	mem := vfs.NewCrashMem()
	h := newHarness(t, mem, smallOptions(), 12)
	h.prepare()
	var disk *vfs.Mem
	mem.OnOp(func(op vfs.Op) {
		if op.Kind == "sync-dir" && disk == nil {
			disk = mem.Crash(vfs.CrashOptions{Mode: "max"})
		}
	})
	h.flush()
	mem.OnOp(nil)
	foreign := []string{"000900.sst", "000901.sst", "9.sst", "notes.txt"}
	for _, name := range foreign {
		f, err := disk.Create(testDir + "/" + name)
		must(t, err)
		if name == "000901.sst" {
			_, err = f.WriteAt(make([]byte, 4096), 0)
			must(t, err)
		}
		must(t, f.Close())
	}
	c := h.withFS(t, disk)
	c.flushed = 0
	c.open()
	removed, err := c.tree.RemoveLeftovers()
	must(t, err)
	if len(removed) == 0 {
		t.Fatal("nothing was removed")
	}
	must(t, c.tree.Close())
	for _, name := range foreign {
		must(t, disk.Remove(testDir+"/"+name))
	}
	c.checkFiles()
}

// TestErrors fails operations of a flush and of the following compactions, one in each
// run. Nothing is lost, and the tree continues. The compactions write some 60 sstables
// with the same operations each, so it fails a sample of each kind of operation.
// cmd/torture fails every tenth operation of whole databases in CI.
func TestErrors(t *testing.T) {
	for _, serial := range []bool{true, false} {
		t.Run(fmt.Sprintf("serial=%t", serial), func(t *testing.T) { testErrors(t, serial) })
	}
}

func testErrors(t *testing.T, serial bool) {
	if serial {
		race.SkipOneGoroutine(t)
	}
	base := newHarness(t, vfs.NewCrashMem(), serialOptions(serial), 13)
	base.prepare()
	base.close()
	changing := map[string]bool{
		"rename": true, "link": true, "remove": true, "mkdir": true, "sync-dir": true,
		"lock": true, "write": true, "sync": true, "preallocate": true,
	}
	cases := []struct {
		name  string
		match func(op vfs.Op) bool
		fault errorfs.Fault
	}{
		{"any", func(vfs.Op) bool { return true }, errorfs.Fault{Err: syscall.EIO}},
		{"forgotten sync", func(op vfs.Op) bool { return op.Kind == "sync" }, errorfs.Fault{Err: syscall.EIO, Sync: errorfs.SyncForgets}},
		// Without create: the tree does not remove a file that may exist.
		{"lost answer", func(op vfs.Op) bool { return changing[op.Kind] }, errorfs.Fault{Err: syscall.EIO, Applied: true}},
	}
	samples := 24 // of each kind
	if !serial {
		samples = 12
	}
	if testing.Short() {
		samples = 1
	}
	inDoubt := 0
	for _, c := range cases {
		doubts, failures, runs := 0, 0, 0
		// work fails the n-th operation of a kind and returns how many there are of each.
		work := func(kind string, n int) map[string]int {
			disk := base.fs.(*vfs.Mem).Clone()
			counted := &countedFS{FS: disk}
			injected := errorfs.Wrap(counted, nil)
			h := base.withFS(t, injected)
			h.open()
			var mu sync.Mutex
			hits := make(map[string]int)
			injected.SetRule(func(op vfs.Op) *errorfs.Fault {
				if !c.match(op) {
					return nil
				}
				mu.Lock()
				defer mu.Unlock()
				if hits[op.Kind]++; op.Kind != kind || hits[kind] != n {
					return nil
				}
				return &c.fault
			})
			t.Run(fmt.Sprintf("%s/%s/%d", c.name, kind, n), func(t *testing.T) {
				h.t = t
				doubt, failed := h.workOn(disk)
				if doubt {
					doubts++
				}
				if failed {
					failures++
				}
				injected.SetRule(nil)
				h.afterError(disk, doubt, runs%4 == 0)
				if n := counted.open.Load(); n != 0 {
					t.Errorf("%d files are open", n)
				}
			})
			runs++
			return hits
		}
		counts := work("", 0)
		for _, kind := range slices.Sorted(maps.Keys(counts)) {
			all := base.rng.Perm(counts[kind])
			for _, i := range all[:min(samples, len(all))] {
				if work(kind, i+1); t.Failed() {
					return
				}
			}
		}
		t.Logf("%s: %d runs, %d failures, %d of them in doubt", c.name, runs, failures, doubts)
		if failures == 0 {
			t.Fatal("nothing failed")
		}
		inDoubt += doubts
	}
	if inDoubt == 0 {
		t.Fatal("nothing was in doubt")
	}
}

// TestCreateFails cannot create files any more. A job must not try the next number again and again.
func TestCreateFails(t *testing.T) {
	fsys := errorfs.Wrap(vfs.NewMem(), nil)
	h := newHarness(t, fsys, smallOptions(), 15)
	h.put(1, 60)
	failed := 0
	fsys.SetRule(func(op vfs.Op) *errorfs.Fault {
		if failed++; op.Kind != "create" || failed > 10 {
			return nil
		}
		return &errorfs.Fault{Err: syscall.EROFS}
	})
	if err := runErr(h.newFlush()); !errors.Is(err, syscall.EROFS) {
		t.Errorf("got %v, want EROFS", err)
	}
	fsys.SetRule(nil)
	h.flush()
	h.check()
	h.finish()
}

// countedFS counts the files that are open.
type countedFS struct {
	vfs.FS
	open atomic.Int64
}

func (c *countedFS) Create(name string) (vfs.File, error) { return c.count(c.FS.Create(name)) }
func (c *countedFS) Open(name string) (vfs.File, error)   { return c.count(c.FS.Open(name)) }

func (c *countedFS) count(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	c.open.Add(1)
	return &countedFile{f, c}, nil
}

type countedFile struct {
	vfs.File
	fs *countedFS
}

func (f *countedFile) Close() error {
	f.fs.open.Add(-1)
	return f.File.Close()
}

// LoseUnsynced is that of a file of a vfs.Mem, for errorfs.
func (f *countedFile) LoseUnsynced(revert bool) {
	f.File.(interface{ LoseUnsynced(revert bool) }).LoseUnsynced(revert)
}

// workOn flushes and compacts, and retries a job that failed. After each failure it
// checks that a power cut leaves every file that the manifest lists.
func (h *harness) workOn(disk *vfs.Mem) (doubt, failed bool) {
	h.t.Helper()
	note := func(err error) bool {
		if err == nil {
			return true
		}
		failed = true
		doubt = doubt || errors.Is(err, ErrInDoubt)
		if !errors.Is(err, syscall.EIO) {
			h.t.Fatalf("got %v, want an error that wraps EIO", err)
		}
		for _, mode := range []string{"min", "max"} {
			c := h.withFS(h.t, disk.Crash(vfs.CrashOptions{Mode: mode}))
			c.open()
			must(h.t, c.tree.Close())
		}
		return false
	}
	for !doubt && h.flushed != h.seq {
		if note(runErr(h.newFlush())) {
			h.flushed = h.seq
			h.mem = newTestMemtable(1 << 20)
		}
	}
	for !doubt {
		j := h.tree.PickCompaction()
		if j == nil {
			break
		}
		note(runErr(j))
	}
	if !doubt {
		note(runErr(h.tree.NewFullCompaction()))
	}
	return doubt, failed
}

// afterError checks the state in the process, then the state of the disk: after a crash
// only in doubt or if crash is set.
func (h *harness) afterError(mem *vfs.Mem, doubt, crash bool) {
	h.t.Helper()
	h.check()
	if doubt {
		if err := h.tree.RecordLogs(); !errors.Is(err, ErrInDoubt) {
			h.t.Fatalf("update after doubt: %v, want ErrInDoubt", err)
		}
		if j := h.tree.PickCompaction(); j != nil {
			h.t.Fatal("a compaction after doubt")
		}
	} else {
		must(h.t, h.tree.RecordLogs())
		h.compactAll()
		h.check()
	}
	h.close()
	if !doubt {
		h.checkFiles()
	}
	for _, mode := range []string{"min", "max"} {
		if !doubt && !crash {
			continue
		}
		disk := mem.Crash(vfs.CrashOptions{Mode: mode})
		m, err := manifest.Read(disk, testDir)
		must(h.t, err)
		c := h.withFS(h.t, disk)
		c.flushed = m.LastSeq
		c.open()
		c.check()
		_, err = c.tree.RemoveLeftovers()
		must(h.t, err)
		must(h.t, c.tree.Close())
		if mode == "max" {
			c.checkFiles()
		}
	}
}

// TestNoSpace fills the disk after every few hundred bytes.
func TestNoSpace(t *testing.T) {
	race.SkipOneGoroutine(t)
	failures := 0
	step := int64(700)
	if testing.Short() {
		step = 14_000
	}
	for extra := int64(0); ; extra += step {
		mem := vfs.NewMem()
		h := newHarness(t, mem, smallOptions(), 14)
		h.prepare()
		mem.SetCapacity(mem.Used() + extra)
		err := runErr(h.newFlush())
		if err == nil {
			h.flushed = h.seq
			for err == nil {
				j := h.tree.PickCompaction()
				if j == nil {
					break
				}
				err = runErr(j)
			}
		}
		if err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("%d bytes: got %v, want ENOSPC", extra, err)
		}
		h.check()
		mem.SetCapacity(0)
		if h.flushed != h.seq {
			h.flush()
		}
		h.compactAll()
		h.check()
		h.finish()
		if err == nil {
			break
		}
		failures++
	}
	if failures == 0 {
		t.Fatal("the disk was never full")
	}
}
