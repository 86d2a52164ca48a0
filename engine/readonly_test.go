package engine_test

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

func readOnly(fsys vfs.FS) engine.Options {
	o := manual(fsys)
	o.ReadOnly = true
	return o
}

// TestReadOnlyAfterKill opens the database of a killed process for reading. Every
// acknowledged write must be there, and no byte may change.
func TestReadOnlyAfterKill(t *testing.T) {
	disk := vfs.NewCrashMem()
	db := mustCreate(t, manual(disk))
	for i := range 8 {
		fill(t, db, fmt.Sprint("p", i), 15, 1000)
		if i == 2 {
			check(t, "Flush", db.Flush(t.Context()))
		}
		want := dump(t, db, store.Query{})
		for _, after := range []*vfs.Mem{disk.Clone(), disk.Crash(vfs.CrashOptions{Mode: "min"}), disk.Crash(vfs.CrashOptions{Mode: "max"})} {
			before := treeOf(t, after, "/")
			view := mustOpen(t, "db", readOnly(after))
			if got := dump(t, view, store.Query{}); !slices.Equal(got, want) {
				t.Errorf("step %d: %d rows, want %d", i, len(got), len(want))
			}
			if r, err := view.Verify(t.Context()); err != nil || len(r.Findings)+len(r.Unknown) > 0 {
				t.Errorf("step %d: Verify: %+v, %v", i, r, err)
			}
			check(t, "Close", view.Close())
			if now := treeOf(t, after, "/"); now != before {
				t.Errorf("step %d: the disk was\n%s and is\n%s", i, before, now)
			}
		}
	}
}

// TestReadOnlyAfterKillIsDurable opens a database for reading after a kill of a writer that does not sync. A power cut must
// not take back what the reader has shown.
func TestReadOnlyAfterKillIsDurable(t *testing.T) {
	disk := vfs.NewCrashMem()
	o := manual(disk)
	o.NoSync, o.SegmentBytes = true, 4<<20
	db := mustCreate(t, o)
	fill(t, db, "p", 300, 10_000)
	killed := disk.Clone()
	view := mustOpen(t, "db", readOnly(killed))
	want := dump(t, view, store.Query{})
	after := killed.Crash(vfs.CrashOptions{Mode: "min"})
	check(t, "Close", view.Close())
	if len(want) == 0 {
		t.Fatal("the kill has lost all rows")
	}
	view = mustOpen(t, "db", readOnly(after))
	if got := dump(t, view, store.Query{}); !slices.Equal(got, want) {
		t.Errorf("after the power cut there are %d rows, the reader has shown %d", len(got), len(want))
	}
	check(t, "Close", view.Close())
}

// TestReadOnlyBesideSilentWriter opens a database for reading whose writer does not prove its
// newest write, as after a failure of its log. The log of the reader says that it may be missing,
// and says nothing once the writer has proven it.
func TestReadOnlyBesideSilentWriter(t *testing.T) {
	disk := vfs.NewMem()
	db := mustCreate(t, manual(disk)) // never seals its log
	fill(t, db, "p", 3, 10)
	for _, proven := range []bool{false, true} {
		if proven {
			check(t, "Flush", db.Flush(t.Context()))
		}
		var log strings.Builder
		o := readOnly(disk)
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		view := mustOpen(t, "db", o)
		if n := len(dump(t, view, store.Query{})); (n == 3) != proven {
			t.Errorf("proven %t: the reader shows %d rows of 3", proven, n)
		}
		if warned := strings.Contains(log.String(), "the newest writes may be missing"); warned == proven {
			t.Errorf("proven %t: the log is %q", proven, log.String())
		}
		check(t, "Close", view.Close())
	}
}

// TestReadOnlyRefusesWrites calls every method that would write.
func TestReadOnlyRefusesWrites(t *testing.T) {
	disk := vfs.NewMem()
	db := mustCreate(t, manual(disk))
	fill(t, db, "p", 3, 10)
	check(t, "Close", closeAtOnce(db))
	before := treeOf(t, disk, "/")
	o := readOnly(disk)
	o.Testing.Manual = false
	view := mustOpen(t, "db", o)
	mustOpen(t, "db", o) // a second one, because no lock is taken
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"Apply":          func() error { _, err := view.Apply(ctx, table, store.Insert(entity("p", "r", 1, 1))); return err },
		"CreateTable":    func() error { return view.CreateTable(ctx, "More") },
		"DeleteTable":    func() error { return view.DeleteTable(ctx, table) },
		"SetTableMeta":   func() error { return view.SetTableMeta(ctx, table, []byte("m")) },
		"SetAccountMeta": func() error { return view.SetAccountMeta(ctx, []byte("m")) },
		"Flush":          func() error { return view.Flush(ctx) },
		"Compact":        func() error { return view.Compact(ctx) },
		"Checkpoint":     func() error { return view.Checkpoint(ctx, "copy") },
		"Step":           func() error { _, err := view.Step(ctx); return err },
	} {
		if err := call(); !errors.Is(err, store.ErrReadOnly) {
			t.Errorf("%s: %v, want %v", name, err, store.ErrReadOnly)
		}
	}
	if got := dump(t, view, store.Query{}); len(got) != 3 {
		t.Errorf("rows are %q", got)
	}
	if s, err := view.Stats(); err != nil || s.Entities != 3 || s.Tables != 1 {
		t.Errorf("Stats: %+v, %v", s, err)
	}
	check(t, "Close", view.Close())
	if now := treeOf(t, disk, "/"); now != before {
		t.Errorf("the disk was\n%s and is\n%s", before, now)
	}
}

// TestReadOnlyBesideWriter opens a database for reading beside an idle writer. The rows
// that a sync has proven must be there, the files of the writer stay as they are, and
// later writes stay invisible.
func TestReadOnlyBesideWriter(t *testing.T) {
	disk := vfs.NewMem()
	db := mustCreate(t, manual(disk))
	fill(t, db, "p", 20, 1000)
	apply(t, db, store.Insert(entity("p", "last", 1, 10))) // its record proves the records before it
	before := treeOf(t, disk, "/")
	view := mustOpen(t, "db", readOnly(disk))
	if now := treeOf(t, disk, "/"); now != before {
		t.Errorf("the disk was\n%s and is\n%s", before, now)
	}
	first := dump(t, view, store.Query{})
	if len(first) < 20 {
		t.Errorf("the view has %d rows, want at least 20", len(first))
	}
	check(t, "DeleteTable", db.DeleteTable(t.Context(), table))
	check(t, "Compact", db.Compact(t.Context()))
	if got := dump(t, view, store.Query{}); !slices.Equal(got, first) {
		t.Errorf("the view has changed to %q", got)
	}
	later := mustOpen(t, "db", readOnly(disk))
	if tables, err := later.Tables(t.Context(), "", 0); err != nil || len(tables) != 0 {
		t.Errorf("a later view has tables %v, %v", tables, err)
	}
}

// TestVerifyBesideWriter verifies a view after a writer has flushed the log that it replayed and
// compacted its sstables. Their absence is no damage. That of a file which the manifest lists is.
func TestVerifyBesideWriter(t *testing.T) {
	disk := vfs.NewMem()
	db := mustCreate(t, manual(disk))
	fill(t, db, "p", 20, 1000)
	check(t, "Flush", db.Flush(t.Context()))
	fill(t, db, "q", 20, 1000)
	apply(t, db, store.Insert(entity("q", "last", 1, 10))) // its record proves the records before it
	view := mustOpen(t, "db", readOnly(disk))
	log := files(t, disk, "db", ".wal")
	fill(t, db, "p", 20, 900)
	check(t, "Compact", db.Compact(t.Context()))
	for i := range 3 { // until the segments are dropped and taken over
		fill(t, db, fmt.Sprint(i), 20, 5000)
		check(t, "Flush", db.Flush(t.Context()))
	}
	if slices.Contains(files(t, disk, "db", ".wal"), log[0]) {
		t.Fatalf("the segment %s is still there", log[0])
	}
	if r, err := view.Verify(t.Context()); err != nil || len(r.Findings) > 0 {
		t.Errorf("findings %v, error %v; want none", r.Findings, err)
	}
	view = mustOpen(t, "db", readOnly(disk))
	missing := files(t, disk, "db", ".sst")[0]
	check(t, "Remove", disk.Remove("db/"+missing))
	if r, err := view.Verify(t.Context()); err != nil || len(r.Findings) != 1 || r.Findings[0].File != missing {
		t.Errorf("%s is missing, which the manifest lists: findings %v, error %v", missing, r.Findings, err)
	}
	check(t, "Remove", disk.Remove("db/MANIFEST"))
	if r, err := view.Verify(t.Context()); err != nil || len(r.Findings) != 2 || strings.Contains(r.Findings[1].What, "manifest") {
		t.Errorf("%s is missing, and the manifest: findings %v, error %v; want both, without a word about what the manifest lists", missing, r.Findings, err)
	}
}

// TestReadOnlyWithoutManifest opens a directory that has no manifest. With files of a database
// that is damage, as it is for a writer. Without them there is no database.
func TestReadOnlyWithoutManifest(t *testing.T) {
	disk := vfs.NewMem()
	db := mustCreate(t, manual(disk))
	fill(t, db, "p", 3, 10)
	check(t, "Close", db.Close())
	check(t, "MkdirAll", disk.MkdirAll("empty"))
	check(t, "Remove", disk.Remove("db/MANIFEST"))
	for _, o := range []engine.Options{readOnly(disk), manual(disk)} {
		_, err := engine.Open("db", o)
		var damage *store.CorruptError
		if !errors.Is(err, store.ErrCorrupt) || errors.Is(err, fs.ErrNotExist) || !errors.As(err, &damage) || damage.File != "MANIFEST" {
			t.Errorf("Open of a database without a manifest, read-only %v: %v, want damage of MANIFEST", o.ReadOnly, err)
		}
	}
	for _, dir := range []string{"empty", "missing"} {
		if _, err := engine.Open(dir, readOnly(disk)); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, store.ErrCorrupt) {
			t.Errorf("Open of %s: %v, want %v", dir, err, fs.ErrNotExist)
		}
	}
}

// sealClock is the clock of a writer. It counts the timers that may seal the log and have not
// ended: without one, the log of a writer that is idle is sealed.
type sealClock struct{ waiting atomic.Int64 }

func (*sealClock) Now() time.Time { return time.Now() }

func (c *sealClock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	if d >= time.Second { // the others are longer
		return time.AfterFunc(d, f).Stop
	}
	c.waiting.Add(1)
	return time.AfterFunc(d, func() {
		f()
		c.waiting.Add(-1)
	}).Stop
}

// patientClock is the clock of a reader. Its longest pause, which is the last one of a wait for
// a proof, ends when the writer has given it, however slow this machine is: by another write, or
// by the seal.
type patientClock struct {
	acked *atomic.Int64
	seals *sealClock
}

func (patientClock) Now() time.Time { return time.Now() }

func (c patientClock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	acked := c.acked.Load()
	return time.AfterFunc(d, func() {
		for d > 150*time.Millisecond && c.acked.Load() == acked && c.seals.waiting.Load() > 0 {
			<-time.After(time.Millisecond)
		}
		f()
	}).Stop
}

// TestReadOnlyBesideBusyWriter opens a database for reading as fast as possible beside
// a writer that fills, flushes, compacts and takes segments over. Each time it must
// show a prefix of the writes, with all writes that were acknowledged before.
func TestReadOnlyBesideBusyWriter(t *testing.T) {
	for _, fsys := range []vfs.FS{vfs.NewMem(), vfs.OS()} {
		t.Run(fmt.Sprintf("%T", fsys), func(t *testing.T) {
			dir := "db"
			if fsys == vfs.OS() {
				dir = t.TempDir() + "/db"
			}
			seals, acked := new(sealClock), new(atomic.Int64)
			o, ro := small(fsys), readOnly(fsys)
			o.Testing.Clock, ro.Testing.Clock = seals, patientClock{acked, seals}
			db := mustOpen(t, dir, o)
			check(t, "CreateTable", db.CreateTable(t.Context(), table))
			check(t, "CreateTable", db.CreateTable(t.Context(), "Other")) // its record proves the one of the first
			const rows = 500
			var wg sync.WaitGroup
			wg.Go(func() {
				for i := range rows {
					apply(t, db, store.Insert(entity("p", fmt.Sprintf("%06d", i), int64(i), 2000)))
					acked.Store(int64(i) + 1)
				}
			})
			views := 0
			for done := false; !done; views++ {
				least := int(acked.Load())
				done = least == rows
				view, err := engine.Open(dir, ro)
				if err != nil {
					t.Errorf("view %d, %d rows acknowledged: %v", views, least, err)
					break
				}
				n := 0
				for e, err := range store.Entities(view.Query(t.Context(), table, store.Query{})) {
					if err != nil || e.Key != (edm.Key{Partition: "p", Row: fmt.Sprintf("%06d", n)}) {
						t.Errorf("view %d: row %d is %v, %v", views, n, e.Key, err)
						break
					}
					n++
				}
				// Open waits for the next record or the seal of an idle log, which prove
				// the last one.
				if n < least {
					t.Errorf("view %d: %d rows, %d were acknowledged", views, n, least)
				}
				check(t, "Close", view.Close())
				if t.Failed() {
					break
				}
			}
			wg.Wait()
			t.Logf("%d views", views)
		})
	}
}
