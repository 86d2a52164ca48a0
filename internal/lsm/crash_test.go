package lsm

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// prepare brings w to a state in which a flush and several kinds of compaction
// are due, with a snapshot and a dropped table.
func (w *world) prepare() {
	w.t.Helper()
	for i := range 300 {
		w.put(i, 60)
	}
	w.flush()
	w.settle()
	for range 3 {
		for range 40 {
			w.put(w.rng.IntN(300), 60)
			w.write(testKey(w.rng.IntN(300)), "")
		}
		w.flush()
		w.snaps = []uint64{w.seq}
	}
	w.drop(17)
	for range 150 {
		w.put(w.rng.IntN(300), 60)
	}
}

// on returns a world that looks at another disk with w's model.
func (w *world) on(t testing.TB, fsys vfs.FS) *world {
	c := *w
	c.t, c.fs, c.merge = t, fsys, nil
	c.snaps = slices.Clone(w.snaps)
	return &c
}

// TestCrash cuts the power before, within and after every operation of a flush
// and of the compactions that follow. What is read from the disk afterwards is
// the state before or after, and the tree goes on from there.
func TestCrash(t *testing.T) {
	mem := vfs.NewCrashMem()
	w := newWorld(t, mem, smallOptions(), 11)
	w.prepare()
	before, after := w.flushed, w.seq
	var disks []*vfs.Mem
	var names []string
	n := uint64(0)
	mem.OnOp(func(op vfs.Op) {
		for _, mode := range vfs.CrashModes {
			n++
			disks = append(disks, mem.Crash(vfs.CrashOptions{Mode: mode, Seed: n}))
			names = append(names, fmt.Sprintf("%v at %v", mode, op))
		}
	})
	w.flush()
	w.settle()
	finishJob(t, w.tree.NewFullCompaction())
	mem.OnOp(nil)
	t.Logf("%d disks", len(disks))
	old, fresh := 0, 0
	stride := 1
	if testing.Short() {
		stride = 5 // shares no factor with the number of modes
	}
	for i := 0; i < len(disks); i += stride {
		disk := disks[i]
		m, err := manifest.Read(disk, testDir)
		if err != nil {
			t.Fatalf("%s: %v", names[i], err)
		}
		c := w.on(t, disk)
		switch m.LastSeq {
		case before:
			old++
		case after:
			fresh++
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
			// Leftovers stand in the way of no job.
			if i%2 == 0 {
				_, err := c.tree.RemoveLeftovers()
				must(t, err)
			}
			if c.flushed == before {
				c.mem = w.replay(before)
				c.flush()
			}
			c.settle()
			c.check()
			c.close()
		})
		if !ok {
			return
		}
	}
	if old == 0 || fresh == 0 {
		t.Fatalf("%d disks with the state before, %d with the one after: want some of each", old, fresh)
	}
}

// replay returns a memtable of the writes after a sequence.
func (w *world) replay(from uint64) *memory {
	type write struct {
		key string
		version
	}
	var writes []write
	for key, versions := range w.model {
		for _, v := range versions {
			if v.seq > from {
				writes = append(writes, write{key, v})
			}
		}
	}
	slices.SortFunc(writes, func(a, b write) int { return int(a.seq) - int(b.seq) })
	m := newMemory(1 << 20)
	for _, x := range writes {
		m.add([]byte(x.key), x.value, x.seq, ^uint64(0))
	}
	return m
}

// TestLeftoversAreRemoved cuts the power in the middle of a flush, beside files
// that are not ours.
func TestLeftoversAreRemoved(t *testing.T) {
	mem := vfs.NewCrashMem()
	w := newWorld(t, mem, smallOptions(), 12)
	w.prepare()
	var disk *vfs.Mem
	mem.OnOp(func(op vfs.Op) {
		if op.Kind == vfs.OpSyncDir && disk == nil {
			disk = mem.Crash(vfs.CrashOptions{Mode: vfs.CrashMax})
		}
	})
	w.flush()
	mem.OnOp(nil)
	strangers := []string{"000900.sst", "000901.sst", "9.sst", "notes.txt"}
	for _, name := range strangers {
		f, err := disk.Create(testDir + "/" + name)
		must(t, err)
		if name == "000901.sst" {
			_, err = f.WriteAt(make([]byte, 4096), 0)
			must(t, err)
		}
		must(t, f.Close())
	}
	c := w.on(t, disk)
	c.flushed = 0
	c.open()
	removed, err := c.tree.RemoveLeftovers()
	must(t, err)
	if len(removed) == 0 {
		t.Fatal("nothing was removed")
	}
	must(t, c.tree.Close())
	for _, name := range strangers {
		must(t, disk.Remove(testDir+"/"+name))
	}
	c.checkFiles()
}

// TestErrors lets each operation of a flush and of the compactions after it
// fail once: nothing is lost, and the tree goes on.
func TestErrors(t *testing.T) {
	base := newWorld(t, vfs.NewCrashMem(), smallOptions(), 13)
	base.prepare()
	base.close()
	cases := []struct {
		name  string
		match func(op vfs.Op) bool
		fault errorfs.Fault
	}{
		{"any", func(vfs.Op) bool { return true }, errorfs.Fault{Err: syscall.EIO}},
		{"forgotten sync", func(op vfs.Op) bool { return op.Kind == vfs.OpSync }, errorfs.Fault{Err: syscall.EIO, Sync: errorfs.SyncForgets}},
		// A file that may or may not have been created is left alone.
		{"lost answer", func(op vfs.Op) bool { return op.Kind.Changes() && op.Kind != vfs.OpCreate }, errorfs.Fault{Err: syscall.EIO, Applied: true}},
	}
	stride := uint64(1)
	if testing.Short() {
		stride = 7
	}
	for _, c := range cases {
		doubts, failures := 0, 0
		for n := uint64(1); ; n += stride {
			disk := base.fs.(*vfs.Mem).Clone()
			injected := errorfs.Wrap(disk, nil)
			w := base.on(t, injected)
			w.open()
			hits := uint64(0)
			injected.SetRule(func(op vfs.Op) *errorfs.Fault {
				if !c.match(op) {
					return nil
				}
				if hits++; hits != n {
					return nil
				}
				return &c.fault
			})
			t.Run(fmt.Sprintf("%s/%d", c.name, n), func(t *testing.T) {
				w.t = t
				doubt, failed := w.workOn(disk)
				if doubt {
					doubts++
				}
				if failed {
					failures++
				}
				injected.SetRule(nil)
				w.afterError(disk, doubt, n)
			})
			if t.Failed() {
				return
			}
			if hits < n {
				t.Logf("%s: %d operations, %d failures, %d of them in doubt", c.name, n-1, failures, doubts)
				if failures == 0 {
					t.Fatal("nothing failed")
				}
				break
			}
		}
	}
}

// workOn flushes and compacts; a job that failed is tried again, and a power cut
// right after the failure finds everything that its manifest lists.
func (w *world) workOn(disk *vfs.Mem) (doubt, failed bool) {
	w.t.Helper()
	note := func(err error) bool {
		if err == nil {
			return true
		}
		failed = true
		doubt = doubt || errors.Is(err, ErrInDoubt)
		if !errors.Is(err, syscall.EIO) {
			w.t.Fatalf("got %v, want an error that wraps EIO", err)
		}
		for _, mode := range []vfs.CrashMode{vfs.CrashMin, vfs.CrashMax} {
			c := w.on(w.t, disk.Crash(vfs.CrashOptions{Mode: mode}))
			c.open()
			must(w.t, c.tree.Close())
		}
		return false
	}
	for !doubt && w.flushed != w.seq {
		if note(runErr(w.newFlush())) {
			w.flushed = w.seq
			w.mem = newMemory(1 << 20)
		}
	}
	for !doubt {
		j := w.tree.PickCompaction()
		if j == nil {
			break
		}
		note(runErr(j))
	}
	if !doubt {
		note(runErr(w.tree.NewFullCompaction()))
	}
	return doubt, failed
}

// afterError checks the state that the process sees, then that of the disk.
func (w *world) afterError(mem *vfs.Mem, doubt bool, n uint64) {
	w.t.Helper()
	w.check()
	if doubt {
		if err := w.tree.RecordLogs(); !errors.Is(err, ErrInDoubt) {
			w.t.Fatalf("update after doubt: %v, want ErrInDoubt", err)
		}
		if j := w.tree.PickCompaction(); j != nil {
			w.t.Fatal("a compaction after doubt")
		}
	} else {
		must(w.t, w.tree.RecordLogs())
		w.settle()
		w.check()
	}
	w.close()
	if !doubt {
		w.checkFiles()
	}
	for _, mode := range []vfs.CrashMode{vfs.CrashMin, vfs.CrashMax} {
		if !doubt && n%4 != 0 {
			continue
		}
		disk := mem.Crash(vfs.CrashOptions{Mode: mode})
		m, err := manifest.Read(disk, testDir)
		must(w.t, err)
		c := w.on(w.t, disk)
		c.flushed = m.LastSeq
		c.open()
		c.check()
		_, err = c.tree.RemoveLeftovers()
		must(w.t, err)
		must(w.t, c.tree.Close())
		if mode == vfs.CrashMax {
			c.checkFiles()
		}
	}
}

// TestNoSpace lets the disk run full at every few hundred bytes.
func TestNoSpace(t *testing.T) {
	failures := 0
	for extra := int64(0); ; extra += 700 {
		mem := vfs.NewMem()
		w := newWorld(t, mem, smallOptions(), 14)
		w.prepare()
		mem.SetCapacity(mem.Used() + extra)
		err := runErr(w.newFlush())
		if err == nil {
			w.flushed = w.seq
			for err == nil {
				j := w.tree.PickCompaction()
				if j == nil {
					break
				}
				err = runErr(j)
			}
		}
		if err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("%d bytes: got %v, want ENOSPC", extra, err)
		}
		w.check()
		mem.SetCapacity(0)
		if w.flushed != w.seq {
			w.flush()
		}
		w.settle()
		w.check()
		w.finish()
		if err == nil {
			break
		}
		failures++
	}
	if failures == 0 {
		t.Fatal("space never ran out")
	}
}
