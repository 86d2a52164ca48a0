package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"syscall"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// hand is a clock whose timers the test fires.
type hand struct{ calls chan func() }

func (hand) Now() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func (h hand) AfterFunc(_ time.Duration, f func()) func() bool {
	h.calls <- f
	return func() bool { return true }
}

// newestLog returns the name of the newest segment that a manifest lists.
func newestLog(t *testing.T, disk *vfs.Mem) (name string, size int64) {
	t.Helper()
	m, err := manifest.Read(disk, "db")
	check(t, "read manifest", err)
	if len(m.Logs) == 0 {
		t.Fatal("the manifest lists no log")
	}
	name = path.Join("db", filename.Make(filename.WAL, m.Logs[len(m.Logs)-1].Number))
	info, err := disk.Stat(name)
	check(t, "stat", err)
	return name, info.Size
}

// removeLog removes the newest segment, or its end, in several ways. Open must notice,
// also for reading.
func removeLog(t *testing.T, disk *vfs.Mem) {
	t.Helper()
	name, size := newestLog(t, disk)
	gone := func(what string, do func(d *vfs.Mem) error) {
		t.Helper()
		for _, readOnly := range []bool{false, true} {
			d := disk.Clone()
			check(t, what, do(d))
			o := manual(d)
			o.ReadOnly = readOnly
			db, err := engine.Open("db", o)
			if err == nil {
				_ = db.Close()
			}
			var damage *store.CorruptError
			if !errors.As(err, &damage) || damage.File != path.Base(name) {
				t.Errorf("%s %s (of %d bytes), for reading %v: Open: %v, want damage of it", name, what, size, readOnly, err)
			}
		}
	}
	gone("deleted", func(d *vfs.Mem) error { return d.Remove(name) })
	gone("replaced by zeros", func(d *vfs.Mem) error { return d.Patch(name, 0, make([]byte, size)) })
	for at := int64(0); at < size; at += 8 {
		gone(fmt.Sprintf("cut to %d bytes", at), func(d *vfs.Mem) error {
			b := readFile(t, d, name)
			check(t, "Remove", d.Remove(name))
			writeFile(t, d, name, b[:at])
			return nil
		})
	}
}

// TestMissingLogAfterClose removes the newest segment of a closed database.
func TestMissingLogAfterClose(t *testing.T) {
	race.SkipOneGoroutine(t)
	for _, noSync := range []bool{false, true} {
		disk := vfs.NewMem()
		o := manual(disk)
		o.NoSync = noSync
		db := mustCreate(t, o)
		fill(t, db, "p", 3, 10)
		check(t, "Close", closeAtOnce(db))
		removeLog(t, disk)
		db = mustOpen(t, "db", o)
		fill(t, db, "q", 3, 10)
		check(t, "Close", closeAtOnce(db))
		removeLog(t, disk)
	}
}

// TestMissingLogAfterIdle removes the newest segment of a database that was idle when
// its process was killed.
func TestMissingLogAfterIdle(t *testing.T) {
	disk := vfs.NewMem()
	clock := hand{make(chan func(), 16)}
	o := small(disk)
	o.Testing.Clock = clock
	db := mustCreate(t, o)
	fill(t, db, "p", 3, 10)
	for range 2 { // notices writes, seals
		(<-clock.calls)()
	}
	again := <-clock.calls
	fill(t, db, "q", 3, 10)
	again() // there were writes since
	if m, err := manifest.Read(disk, "db"); err != nil || m.Logs[len(m.Logs)-1].Proven != 0 {
		t.Errorf("the manifest of a log in use: %+v, %v", m, err)
	}
	for range 3 {
		(<-clock.calls)()
	}
	killed := disk.Clone()
	removeLog(t, killed)

	// Open lists the end of a segment that was only sealed.
	db = mustOpen(t, "db", manual(killed))
	check(t, "Close", closeAtOnce(db))
	if m, err := manifest.Read(killed, "db"); err != nil || m.Logs[0].Sealed == 0 {
		t.Errorf("the manifest after another open: %+v, %v", m, err)
	}
	removeLog(t, killed)
}

// TestMissingLogOfCopy removes the log of a copy whose manifest lists none, because everything was
// flushed before the copy.
func TestMissingLogOfCopy(t *testing.T) {
	disk := vfs.NewMem()
	db := mustCreate(t, manual(disk))
	check(t, "Flush", db.Flush(t.Context()))
	check(t, "Checkpoint", db.Checkpoint(t.Context(), "copy"))
	check(t, "Close", db.Close())
	clock := hand{make(chan func(), 16)}
	o := small(disk)
	o.Testing.Clock = clock
	c := mustOpen(t, "copy", o)
	fill(t, c, "p", 3, 10)
	for range 3 { // notices writes, seals, lists the end
		(<-clock.calls)()
	}
	killed := disk.Clone()
	names := files(t, killed, "copy", ".wal")
	check(t, "Remove", killed.Remove("copy/"+names[0]))
	if _, err := engine.Open("copy", manual(killed)); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("Open without %v: %v, want %v", names, err, store.ErrCorrupt)
	}
	check(t, "Close", closeAtOnce(c))
}

// TestFlushProvesLog flushes. Each manifest must list how far the active segment is
// durable.
func TestFlushProvesLog(t *testing.T) {
	disk := vfs.NewMem()
	db := mustCreate(t, manual(disk))
	fill(t, db, "p", 40, 2000)
	worked, err := db.Step(t.Context())
	check(t, "Step", err)
	m, err := manifest.Read(disk, "db")
	check(t, "read manifest", err)
	if !worked || len(m.Logs) != 1 || m.Logs[0].Proven == 0 {
		t.Fatalf("worked %v, logs %+v", worked, m.Logs)
	}
	killed := disk.Clone()
	name, _ := newestLog(t, killed)
	check(t, "Remove", killed.Remove(name))
	if _, err := engine.Open("db", manual(killed)); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("Open without the log: %v, want damage", err)
	}
}

// TestTornBeforeEmptySegment damages a segment that an empty one follows, which has no file, and
// then one with a record. Open must find that, although the header of the last one states the end
// of the empty one.
func TestTornBeforeEmptySegment(t *testing.T) {
	disk := vfs.NewMem()
	o := manual(disk)
	o.SegmentBytes = 64 << 10
	db := mustCreate(t, o)
	check(t, "Flush", db.Flush(t.Context()))
	fill(t, db, "p", 5, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := db.Flush(ctx); !errors.Is(err, context.Canceled) { // it has frozen the segment
		t.Fatal(err)
	}
	var ops []store.Op
	for i := range 100 {
		ops = append(ops, store.Insert(entity("q", fmt.Sprintf("%06d", i), int64(i), 1000)))
	}
	apply(t, db, ops...) // does not fit a segment of the usual size
	after := disk.Clone()
	name := "db/" + files(t, after, "db", ".wal")[0]
	image, err := vfs.ReadFile(after, name, 1<<20)
	check(t, "ReadFile", err)
	last := len(bytes.TrimRight(image, "\x00")) - 1 // of the last record
	check(t, "Patch", after.Patch(name, int64(last), []byte{image[last] ^ 1}))
	if _, err := engine.Open("db", manual(after)); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("Open: %v, want %v", err, store.ErrCorrupt)
	}
	check(t, "Close", closeAtOnce(db))
}

// TestManifestProvesOnlySyncedRecords writes a manifest while records of the active segment
// are in the page cache and not synced. It must not state that they are durable: after a
// power cut the database must open, with everything acknowledged.
func TestManifestProvesOnlySyncedRecords(t *testing.T) {
	for _, noSync := range []bool{false, true} {
		t.Run(fmt.Sprint("noSync=", noSync), func(t *testing.T) {
			disk := vfs.NewCrashMem()
			broken := errorfs.Wrap(disk, nil)
			o := manual(broken)
			o.NoSync, o.SegmentBytes = noSync, 4<<20
			db := mustCreate(t, o)
			const rows = 600
			fill(t, db, "p", 260, 20_000)
			drain(t, db)
			fill(t, db, "q", 260, 20_000)
			worked, err := db.Step(t.Context()) // a flush; two runs are to be compacted
			check(t, "Step", err)
			before := len(files(t, disk, "db", ".sst"))
			fill(t, db, "r", rows-520, 20_000) // more than NoSync mode gathers before it writes
			held, release := make(chan struct{}, 1), make(chan struct{})
			done := make(chan error, 1)
			close(done)
			if !noSync {
				broken.SetRule(func(op vfs.Op) *errorfs.Fault {
					if op.Kind == "sync" && path.Ext(op.Name) == ".wal" {
						held <- struct{}{}
						<-release
					}
					return nil
				})
				done = make(chan error, 1)
				go func() {
					_, err := db.Apply(t.Context(), table, store.InsertOrReplace(entity("s", "r", 0, 10)))
					done <- err
				}()
				<-held // written, not synced
			}
			drain(t, db)
			m, err := manifest.Read(disk, "db")
			check(t, "read manifest", err)
			after := disk.Crash(vfs.CrashOptions{Mode: "min"})
			broken.SetRule(nil)
			close(release)
			check(t, "Apply", <-done)
			check(t, "Close", closeAtOnce(db))
			if !worked || len(m.Files) == before || len(m.Logs) != 1 {
				t.Fatalf("flushed %v, %d files after %d, logs %+v", worked, len(m.Files), before, m.Logs)
			}
			if noSync != (m.Logs[0].Proven == 0) {
				t.Errorf("the manifest states that %+v is durable", m.Logs[0])
			}
			again, err := engine.Open("db", manual(after))
			check(t, "Open after a power cut", err)
			defer again.Close()
			if n := len(dump(t, again, store.Query{})); !noSync && n != rows {
				t.Errorf("%d of %d acknowledged rows are left", n, rows)
			}
		})
	}
}

// TestOpenWithoutRepair opens a database whose last records no sync is known to have covered, while its log cannot be written or
// synced. Open must fail: a power cut could take back the records that readers had seen.
func TestOpenWithoutRepair(t *testing.T) {
	disk := vfs.NewMem()
	db := mustCreate(t, manual(disk))
	fill(t, db, "p", 3, 100)
	for _, kind := range []string{"write", "sync"} {
		failing := errorfs.Wrap(disk.Clone(), func(op vfs.Op) *errorfs.Fault {
			if op.Kind == kind && path.Ext(op.Name) == ".wal" {
				return &errorfs.Fault{Err: syscall.EIO}
			}
			return nil
		})
		db, err := engine.Open("db", manual(failing))
		if !errors.Is(err, syscall.EIO) {
			t.Errorf("Open without a %s: %v, want %v", kind, err, syscall.EIO)
		}
		if err == nil {
			check(t, "Close", closeAtOnce(db))
		}
	}
}
