package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// crashImage is the capacity of a segment with the records of a crashRun.
const crashImage = 10 << 10

// crashRun writes a log to a file system whose power a hook can cut.
type crashRun struct {
	mem     *vfs.Mem
	records []logRecord
	acked   int  // records whose sync has returned
	ready   bool // the directory was synced: the segment must exist
}

// run creates a segment and appends groups with a seal between them.
func (c *crashRun) run(prepared string) error {
	s, err := create(c.mem, testName, testHeader(), make([]byte, crashImage), CreateOptions{Prepared: prepared})
	if err != nil {
		return err
	}
	if err := c.mem.SyncDir("db"); err != nil {
		return err
	}
	c.ready = true
	for group, sizes := range [][]int{{40, 600}, {5}, {900, 10, 1000}, {0}} {
		for _, n := range sizes {
			i := len(c.records)
			r := logRecord{FirstSeq: 100 + uint64(i), Count: 1, Payload: testPayload(i, n)}
			if _, ok := appendRecord(s, Record{FirstSeq: r.FirstSeq, Count: 1}, []byte(r.Payload)); !ok {
				return errors.New("segment is full")
			}
			r.End = s.Tail()
			c.records = append(c.records, r)
		}
		if err := s.Sync(s.Tail()); err != nil {
			return err
		}
		c.acked = len(c.records)
		if group == 1 {
			if err := s.Seal(); err != nil {
				return err
			}
		}
	}
	return s.Close()
}

// crashPoint is a disk after a power cut and what it must hold.
type crashPoint struct {
	disk    *vfs.Mem
	what    string
	written []logRecord
	acked   int
	ready   bool
}

// crashPoints calls each with the disks that a power cut at every operation of a run
// can leave, and with those of a killed process, which have unsynced changes.
func crashPoints(t *testing.T, prepared bool, each func(crashPoint)) {
	t.Helper()
	mem := vfs.NewCrashMem()
	if err := errors.Join(mem.MkdirAll("db"), mem.SyncDir("/")); err != nil {
		t.Fatal(err)
	}
	c := &crashRun{mem: mem}
	spare := ""
	if prepared {
		old := testHeader()
		old.Number = 5
		spare = "db/000005.wal"
		writeFile(t, mem, spare, makeLog(t, old, []step{{n: 700}, {n: 3000}, {sync: true}, {n: 200}}).data)
		if err := mem.SyncDir("db"); err != nil {
			t.Fatal(err)
		}
	}
	mem.OnOp(func(op vfs.Op) {
		each(crashPoint{
			disk: mem.Clone(), what: fmt.Sprintf("%v, killed", op), written: c.records, acked: c.acked, ready: c.ready,
		})
		for _, mode := range vfs.CrashModes {
			for seed := range 1 + op.Index%2 {
				each(crashPoint{
					disk: mem.Crash(vfs.CrashOptions{Mode: mode, Seed: seed}), what: fmt.Sprintf("%v, mode %v, seed %d", op, mode, seed),
					written: c.records, acked: c.acked, ready: c.ready,
				})
			}
		}
	})
	if err := c.run(spare); err != nil {
		t.Fatal(err)
	}
	mem.OnOp(nil)
}

// TestCrashAnywhere cuts the power at every operation, recovers, and cuts it again
// at every operation of the recovery, three levels deep.
func TestCrashAnywhere(t *testing.T) {
	race.SkipOneGoroutine(t)
	for _, prepared := range []bool{false, true} {
		t.Run(fmt.Sprintf("prepared=%v", prepared), func(t *testing.T) {
			states, stride := 0, 1
			if testing.Short() {
				stride = 7 // no divisor of the number of modes
			}
			crashPoints(t, prepared, func(p crashPoint) {
				if states++; states%stride != 0 {
					return
				}
				recoverLog(t, p, 0)
			})
			t.Logf("%d power cuts", states)
		})
	}
}

// recoverLog replays and repairs a log like the engine, with power cuts during the
// repair.
func recoverLog(t *testing.T, p crashPoint, depth int) {
	t.Helper()
	if _, err := p.disk.Stat(testName); errors.Is(err, fs.ErrNotExist) {
		if p.ready {
			t.Fatalf("%s: the segment does not exist", p.what)
		}
		return
	}
	r := replayFS(p.disk, testName, testOptions(), crashImage)
	if errors.Is(r.err, ErrUnfinished) {
		if p.ready {
			t.Fatalf("%s: %v", p.what, r.err)
		}
		return
	}
	if r.err != nil {
		t.Fatalf("%s: %v", p.what, r.err)
	}
	if !isPrefix(r.records, p.written) || len(r.records) < p.acked {
		t.Fatalf("%s: got %d records, want a prefix of %d, at least %d", p.what, len(r.records), len(p.written), p.acked)
	}
	if depth < 2 {
		seed := uint64(0)
		p.disk.OnOp(func(op vfs.Op) {
			modes := vfs.CrashModes
			if depth > 0 {
				modes = modes[int(op.Index)%len(modes):][:1]
			}
			for _, mode := range modes {
				seed++
				again := p
				again.disk = p.disk.Crash(vfs.CrashOptions{Mode: mode, Seed: seed})
				again.what = fmt.Sprintf("%s; then %v, mode %v, seed %d", p.what, op, mode, seed)
				recoverLog(t, again, depth+1)
			}
		})
	}
	if err := errors.Join(Repair(p.disk, testName, r.image, r.end), p.disk.SyncDir("db")); err != nil {
		t.Fatalf("%s: repair: %v", p.what, err)
	}
	p.disk.OnOp(nil)
	// No later crash changes the log.
	o := testOptions()
	o.Sealed = r.end.Offset
	after := replayFS(p.disk.Crash(vfs.CrashOptions{Mode: "min"}), testName, o, crashImage)
	if after.err != nil || len(after.records) != len(r.records) || !isPrefix(after.records, r.records) {
		t.Fatalf("%s: after the repair %d records and %v, want %d", p.what, len(after.records), after.err, len(r.records))
	}
}

// TestLyingDevice loses the effect of syncs that returned nil. If a record proves
// that synced bytes are lost, Replay must report it.
func TestLyingDevice(t *testing.T) {
	damaged, accepted := 0, 0
	mem := vfs.NewCrashMem()
	if err := errors.Join(mem.MkdirAll("db"), mem.SyncDir("/")); err != nil {
		t.Fatal(err)
	}
	c := &crashRun{mem: mem}
	mem.OnOp(func(op vfs.Op) {
		for seed := range uint64(30) {
			disk := mem.Crash(vfs.CrashOptions{Mode: "lying", Seed: seed, File: testName})
			if _, err := disk.Stat(testName); err != nil {
				continue
			}
			data := readFile(t, disk, testName)
			r := replay(data, testOptions())
			if !isPrefix(r.records, c.records) {
				t.Fatalf("%v, seed %d: got %+v", op, seed, r.records)
			}
			if r.err != nil {
				if !errors.Is(r.err, corrupt.ErrCorrupt) {
					t.Fatalf("%v, seed %d: %v", op, seed, r.err)
				}
				damaged++
				continue
			}
			accepted++
			if proven := refProven(data, HeaderLen, testOptions()); proven > r.end.Offset {
				t.Fatalf("%v, seed %d: log ends at %d, but %d was synced", op, seed, r.end.Offset, proven)
			}
		}
	})
	if err := c.run(""); err != nil {
		t.Fatal(err)
	}
	if damaged == 0 || accepted == 0 {
		t.Fatalf("%d states damaged, %d accepted, want some of both", damaged, accepted)
	}
	t.Logf("%d states damaged, %d accepted", damaged, accepted)
}

// TestRepairAfterFailedSync fails a sync that leaves its pages clean in the cache:
// readers see them, and no later sync writes them.
func TestRepairAfterFailedSync(t *testing.T) {
	mem := vfs.NewCrashMem()
	if err := errors.Join(mem.MkdirAll("db"), mem.SyncDir("/")); err != nil {
		t.Fatal(err)
	}
	syncs := 0
	fsys := errorfs.Wrap(mem, func(op vfs.Op) *errorfs.Fault {
		if op.Kind != "sync" {
			return nil
		}
		if syncs++; syncs < 4 {
			return nil
		}
		return &errorfs.Fault{Err: syscall.EIO, Sync: errorfs.SyncForgets}
	})
	s, err := create(fsys, testName, testHeader(), make([]byte, crashImage), CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	seq := uint64(100)
	for s.Sync(s.Tail()) == nil {
		appendRecord(s, Record{FirstSeq: seq, Count: 1}, []byte(testPayload(int(seq), 700)))
		seq++
	}
	if err := errors.Join(s.Close(), mem.SyncDir("db")); err != nil || seq != 103 {
		t.Fatalf("%d records, %v, want 3", seq-100, err)
	}
	r := replayFS(mem, testName, testOptions(), crashImage)
	if r.err != nil || len(r.records) != 3 {
		t.Fatalf("from the cache: %d records, %v, want 3", len(r.records), r.err)
	}
	lost := replayFS(mem.Crash(vfs.CrashOptions{Mode: "max"}), testName, testOptions(), crashImage)
	if lost.err != nil || len(lost.records) != 2 {
		t.Fatalf("from the disk: %d records, %v, want 2", len(lost.records), lost.err)
	}
	if err := Repair(mem, testName, r.image, r.end); err != nil {
		t.Fatal(err)
	}
	o := testOptions()
	o.Sealed = r.end.Offset
	after := replayFS(mem.Crash(vfs.CrashOptions{Mode: "min"}), testName, o, crashImage)
	if after.err != nil || len(after.records) != 3 {
		t.Fatalf("after the repair: %d records, %v, want 3", len(after.records), after.err)
	}
}

func TestRepairErrors(t *testing.T) {
	l := makeLog(t, testHeader(), smallSteps)
	mem := newMem(t)
	writeFile(t, mem, testName, l.data)
	r := replayFS(mem, testName, testOptions(), len(l.data))
	if r.err != nil || r.end.Proven >= r.end.Offset {
		t.Fatalf("nothing to repair: %+v, %v", r.end, r.err)
	}
	boom := errors.New("boom")
	for _, kind := range []string{"open-rw", "write", "sync", "close"} {
		fsys := failing(mem, func(o vfs.Op) error {
			if o.Kind == kind {
				return boom
			}
			return nil
		})
		if err := Repair(fsys, testName, r.image, r.end); !errors.Is(err, boom) {
			t.Fatalf("%v failed: got %v", kind, err)
		}
	}
	if err := Repair(mem, "db/none", r.image, r.end); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("without a file: %v", err)
	}
	r.end.Proven = r.end.Offset
	if err := Repair(mem, "db/none", r.image, r.end); err != nil {
		t.Fatalf("with nothing to repair: %v", err)
	}
}
