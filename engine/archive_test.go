package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/archive"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// memArchive is an archive in memory.
type memArchive struct {
	mu     sync.Mutex
	chunks map[string][]byte
	names  []string      // of all calls that succeeded
	err    error         // of Put
	hold   chan struct{} // if it is not nil, Put waits for it
}

func (a *memArchive) Put(ctx context.Context, name string, chunk io.Reader) error {
	if a.hold != nil {
		select {
		case <-a.hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	b, err := io.ReadAll(chunk)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return a.err
	}
	if a.chunks == nil {
		a.chunks = map[string][]byte{}
	}
	if old, ok := a.chunks[name]; ok && string(old) != string(b) {
		return errors.New("another chunk has the name " + name)
	}
	a.chunks[name] = b
	a.names = append(a.names, name)
	return nil
}

func (a *memArchive) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
}

// ranges returns the archived ranges of sequence numbers in their order, and an error
// unless each follows the one before.
func (a *memArchive) ranges(t *testing.T) (ranges []archive.Range) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	names := slices.Clone(a.names)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		_, r, ok := archive.ParseName(name[strings.LastIndexByte(name, '/')+1:])
		if n := len(ranges); !ok || n > 0 && r.First != ranges[n-1].Last+1 {
			t.Fatalf("%s follows %v", name, ranges)
		}
		ranges = append(ranges, r)
	}
	return ranges
}

// TestSlowArchive writes many segments and loads beside an archive that does not return.
// Nothing waits for it, and Close ends with its context. What waits is archived after the
// next Open.
func TestSlowArchive(t *testing.T) {
	disk, slow := vfs.NewMem(), &memArchive{hold: make(chan struct{})}
	o := small(disk)
	o.Archive = slow
	db := mustCreate(t, o)
	fill(t, db, "p", 300, 2000)
	check(t, "Flush", db.Flush(t.Context()))
	_, err := db.Load(t.Context(), table, sequence([]edm.Entity{entity("q", "1", 1, 10)}), engine.LoadOptions{})
	check(t, "Load", err)
	check(t, "Compact", db.Compact(t.Context())) // merges the loaded file away
	stats, err := db.Stats()
	check(t, "Stats", err)
	if stats.ArchiveWaiting < 9 || stats.ArchiveWaitingBytes < 300*2000 || stats.Archived != 0 {
		t.Errorf("%d chunks of %d bytes wait, archived %v", stats.ArchiveWaiting, stats.ArchiveWaitingBytes, stats.Archived)
	}
	check(t, "Close", closeAtOnce(db))

	fast := &memArchive{}
	o.Archive = fast
	db = mustOpen(t, "db", o)
	check(t, "Close", db.Close())
	got := fast.ranges(t)
	if n := len(got); n == 0 || got[0].First != 1 || got[n-1].Last != stats.LastSequence {
		t.Errorf("archived %v, the last sequence is %d", got, stats.LastSequence)
	}
	if left := append(files(t, disk, "db", ".load"), files(t, disk, "db", ".wal")...); len(left) > 2 {
		t.Errorf("files are left: %q", left)
	}
}

// TestNoSyncArchive cuts the power in NoSync mode while flushed segments wait for the archive. It
// must get every flushed write after the next Open.
func TestNoSyncArchive(t *testing.T) {
	disk := vfs.NewCrashMem()
	o := manual(disk)
	o.NoSync, o.Archive = true, &memArchive{hold: make(chan struct{})}
	db := mustCreate(t, o)
	fill(t, db, "p", 300, 2000)
	check(t, "Flush", db.Flush(t.Context()))
	last := stats(t, db).LastSequence
	for seed, mode := range vfs.CrashModes {
		fast := &memArchive{}
		o := manual(disk.Crash(vfs.CrashOptions{Mode: mode, Seed: uint64(seed)}))
		o.Archive = fast
		again := mustOpen(t, "db", o)
		check(t, "Close", again.Close())
		if got := fast.ranges(t); len(got) == 0 || got[0].First != 1 || got[len(got)-1].Last < last {
			t.Errorf("%s: archived %v, the last flushed sequence is %d", mode, got, last)
		}
	}
	check(t, "Close", closeAtOnce(db))
}

// TestArchiveFailures archives with an archive that fails for a while. Close archives the
// rest, and Stats count.
func TestArchiveFailures(t *testing.T) {
	a := &memArchive{err: errors.New("injected")}
	o := manual(vfs.NewMem())
	o.Archive = a
	db := mustCreate(t, o)
	fill(t, db, "p", 100, 2000)
	check(t, "Flush", db.Flush(t.Context()))
	for n := 0; n < 3; {
		if worked, err := db.Step(t.Context()); err != nil {
			n++
		} else if !worked {
			t.Fatal("the archive did not fail")
		}
	}
	if got := stats(t, db).ArchiveFailures; got != 3 {
		t.Errorf("%d failures are counted, want 3", got)
	}
	a.fail(nil)
	last := apply(t, db, store.InsertOrReplace(entity("p", "x", 1, 1)))[0].Timestamp
	check(t, "Close", db.Close())
	got := a.ranges(t)
	if n := len(got); n < 3 || got[0].First != 1 || got[n-1].Last != 103 {
		t.Errorf("archived %v", got)
	}
	db = mustOpen(t, "db", o)
	apply(t, db, store.InsertOrReplace(entity("p", "y", 1, 1)))
	check(t, "Flush", db.Flush(t.Context()))
	for worked, err := true, error(nil); worked; worked, err = db.Step(t.Context()) {
		check(t, "Step", err)
	}
	if stats, err := db.Stats(); err != nil || stats.Archived <= last || stats.ArchiveWaiting != 0 {
		t.Errorf("archived up to %v, the last write is later than %v, %d wait, %v", stats.Archived, last, stats.ArchiveWaiting, err)
	}
}

// TestArchiveDamage damages a segment that waits for the archive. The chunks behind it are
// archived, and the damaged one is missing.
func TestArchiveDamage(t *testing.T) {
	disk, a := vfs.NewMem(), &memArchive{err: errors.New("injected")}
	o := manual(disk)
	o.Archive = a
	db := mustCreate(t, o)
	fill(t, db, "p", 100, 2000)
	check(t, "Flush", db.Flush(t.Context()))
	check(t, "Patch", disk.Patch("db/"+files(t, disk, "db", ".wal")[1], 20_000, []byte("damage")))
	a.fail(nil)
	for n := 0; n < 3; {
		worked, err := db.Step(t.Context())
		if err != nil {
			n++
		} else if !worked {
			break
		}
	}
	check(t, "Close", db.Close())
	if len(a.names) < 2 {
		t.Fatalf("archived %q", a.names)
	}
	if _, second, _ := archive.ParseName(a.names[1][strings.LastIndexByte(a.names[1], '/')+1:]); second.First < 40 {
		t.Errorf("archived %q", a.names)
	}
}

// TestDamagedArchive has an archive that reports damage of its own. The chunks are not damaged, so
// each is put again until the archive has it.
func TestDamagedArchive(t *testing.T) {
	a := &memArchive{err: fmt.Errorf("the store of the archive: %w", store.ErrCorrupt)}
	o := manual(vfs.NewMem())
	o.Archive = a
	db := mustCreate(t, o)
	fill(t, db, "p", 10, 2000)
	check(t, "Flush", db.Flush(t.Context()))
	for range 10 {
		if _, err := db.Step(t.Context()); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("Step: %v, want %v", err, store.ErrCorrupt)
		}
	}
	a.fail(nil)
	drain(t, db)
	if got := a.ranges(t); len(got) != 1 {
		t.Errorf("archived %v, want one chunk", got)
	}
}

// TestOpenWithoutArchive opens a database without an archive: nothing that waited is kept.
func TestOpenWithoutArchive(t *testing.T) {
	disk := vfs.NewMem()
	o := manual(disk)
	o.Archive = &memArchive{err: errors.New("injected")}
	db := mustCreate(t, o)
	fill(t, db, "p", 100, 2000)
	_, err := db.Load(t.Context(), table, sequence([]edm.Entity{entity("q", "1", 1, 10)}), engine.LoadOptions{})
	check(t, "Load", err)
	check(t, "Close", db.Close())
	waiting := len(files(t, disk, "db", ".wal")) + len(files(t, disk, "db", ".load"))
	db = mustOpen(t, "db", manual(disk))
	report, err := db.Verify(t.Context())
	check(t, "Verify", err)
	check(t, "Close", db.Close())
	left := len(files(t, disk, "db", ".wal")) + len(files(t, disk, "db", ".load"))
	if waiting < 4 || left > 1 || len(report.Findings) > 0 {
		t.Errorf("%d files waited, %d are left; %v", waiting, left, report.Findings)
	}
}

// TestUnreadSegmentAtOpen cannot read a segment that waits for the archive when the database is opened. The log says that the
// archive lacks it, and the next Open archives it.
func TestUnreadSegmentAtOpen(t *testing.T) {
	a := &memArchive{err: errors.New("injected")}
	fsys := errorfs.Wrap(vfs.NewMem(), nil)
	var logged bytes.Buffer
	o := manual(fsys)
	o.Archive, o.Logger = a, slog.New(slog.NewTextHandler(&logged, nil))
	db := mustCreate(t, o)
	fill(t, db, "p", 100, 2000)
	check(t, "Close", db.Close())
	a.fail(nil)
	name := files(t, fsys, "db", ".wal")[1]
	fsys.SetRule(errorfs.FailNth(1, func(op vfs.Op) bool { return op.Kind == "open" && op.Name == "db/"+name }, errorfs.Fault{Err: syscall.EIO}, false))
	db = mustOpen(t, "db", o)
	drain(t, db)
	check(t, "Close", db.Close())
	if want := "missing in the archive"; !strings.Contains(logged.String(), want) || !strings.Contains(logged.String(), name) {
		t.Errorf("the log does not say that %s is %s: %s", name, want, &logged)
	}
	before := len(a.names)
	db = mustOpen(t, "db", o)
	drain(t, db)
	check(t, "Close", db.Close())
	if a.ranges(t); len(a.names) != before+1 {
		t.Errorf("the next Open archives %d chunks, want 1", len(a.names)-before)
	}
}

// TestEmptySegmentBeforeArchive opens a database with an archive whose last segment has a header and no record, because its first
// write failed. There is nothing to archive in it, and the chunks behind it must not wait for it.
func TestEmptySegmentBeforeArchive(t *testing.T) {
	fsys := errorfs.Wrap(vfs.NewMem(), nil)
	db := mustCreate(t, manual(fsys))
	fill(t, db, "p", 3, 14<<10)
	fsys.SetRule(func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "write" && strings.HasSuffix(op.Name, ".wal") && op.Off > 0 {
			return &errorfs.Fault{Err: syscall.EIO}
		}
		return nil
	})
	_, err := db.Apply(t.Context(), table, store.Insert(entity("p", "lost", 1, 30<<10)))
	fsys.SetRule(nil)
	if !errors.Is(err, store.ErrOutcomeUnknown) || len(files(t, fsys, "db", ".wal")) != 2 {
		t.Fatalf("Apply: %v, want %v; segments %q, want two", err, store.ErrOutcomeUnknown, files(t, fsys, "db", ".wal"))
	}
	_ = closeAtOnce(db)
	a := &memArchive{}
	o := manual(fsys)
	o.Archive = a
	db = mustOpen(t, "db", o)
	check(t, "Flush", db.Flush(t.Context()))
	apply(t, db, store.Insert(entity("p", "later", 1, 10)))
	check(t, "Flush", db.Flush(t.Context()))
	drain(t, db)
	if s := stats(t, db); s.ArchiveWaiting != 0 || a.ranges(t)[1].Last != s.LastSequence {
		t.Errorf("%d chunks wait, archived %v, the last sequence is %d", s.ArchiveWaiting, a.ranges(t), s.LastSequence)
	}
}

// TestUnreadSegmentInStep cannot read a segment that waits for the archive. It still waits, and the next attempt archives it.
func TestUnreadSegmentInStep(t *testing.T) {
	fsys := errorfs.Wrap(vfs.NewMem(), nil)
	a := &memArchive{}
	o := manual(fsys)
	o.Archive = a
	db := mustCreate(t, o)
	fill(t, db, "p", 3, 10)
	check(t, "Flush", db.Flush(t.Context()))
	isOpen := func(op vfs.Op) bool { return op.Kind == "open" && strings.HasSuffix(op.Name, ".wal") }
	fsys.SetRule(errorfs.FailNth(1, isOpen, errorfs.Fault{Err: syscall.EIO}, false))
	if _, err := db.Step(t.Context()); !errors.Is(err, syscall.EIO) || stats(t, db).ArchiveWaiting != 1 {
		t.Errorf("Step: %v, want %v; %d chunks wait, want one", err, syscall.EIO, stats(t, db).ArchiveWaiting)
	}
	drain(t, db)
	if got := a.ranges(t); len(got) != 1 {
		t.Errorf("archived %v, want one chunk", got)
	}
}

// TestDamagedLoadAtOpen damages the manifest of a load that waits for the archive. Open succeeds, and the log says that the archive
// lacks the load.
func TestDamagedLoadAtOpen(t *testing.T) {
	disk := vfs.NewMem()
	var logged bytes.Buffer
	o := manual(disk)
	o.Archive, o.Logger = &memArchive{err: errors.New("injected")}, slog.New(slog.NewTextHandler(&logged, nil))
	db := mustCreate(t, o)
	_, err := db.Load(t.Context(), table, sequence([]edm.Entity{entity("q", "1", 1, 10)}), engine.LoadOptions{})
	check(t, "Load", err)
	check(t, "Close", db.Close())
	name := files(t, disk, "db", ".load")[0]
	check(t, "Patch", disk.Patch("db/"+name+"/MANIFEST", 20, []byte("damage")))
	db = mustOpen(t, "db", o)
	if got := dump(t, db, store.Query{}); len(got) != 1 {
		t.Errorf("rows %q, want one", got)
	}
	if want := "missing in the archive"; !strings.Contains(logged.String(), want) || !strings.Contains(logged.String(), name) {
		t.Errorf("the log does not say that %s is %s: %s", name, want, &logged)
	}
}

// TestUnlinkedLoad cannot make the directory that keeps the files of a Load for the archive. The Load fails, and writes go on.
func TestUnlinkedLoad(t *testing.T) {
	fsys := errorfs.Wrap(vfs.NewMem(), nil)
	a := &memArchive{}
	o := manual(fsys)
	o.Archive = a
	db := mustCreate(t, o)
	fsys.SetRule(func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "mkdir" {
			return &errorfs.Fault{Err: syscall.EIO}
		}
		return nil
	})
	if _, err := db.Load(t.Context(), table, sequence([]edm.Entity{entity("q", "1", 1, 10)}), engine.LoadOptions{}); !errors.Is(err, syscall.EIO) {
		t.Errorf("Load: %v, want %v", err, syscall.EIO)
	}
	fsys.SetRule(nil)
	fill(t, db, "p", 3, 10)
	check(t, "Close", db.Close())
	if got := a.ranges(t); got[len(got)-1].Last != 5 {
		t.Errorf("archived %v, want up to 5", got)
	}
}

// TestUnlistedAtOpen fails each List of the directory with which Open looks for what waits for the archive. Open must fail: otherwise
// the chunks that follow would be archived without those before.
func TestUnlistedAtOpen(t *testing.T) {
	fsys := errorfs.Wrap(vfs.NewMem(), nil)
	o := manual(fsys)
	o.Archive = &memArchive{err: errors.New("injected")}
	db := mustCreate(t, o)
	fill(t, db, "p", 100, 2000)
	check(t, "Close", db.Close())
	isList := func(op vfs.Op) bool { return op.Kind == "list" && op.Name == "db" }
	for n := uint64(1); ; n++ {
		fsys.SetRule(errorfs.FailNth(n, isList, errorfs.Fault{Err: syscall.EIO}, false))
		db, err := engine.Open("db", o)
		fsys.SetRule(nil)
		if err == nil {
			waiting := stats(t, db).ArchiveWaiting
			check(t, "Close", closeAtOnce(db))
			if n < 3 || waiting < 2 {
				t.Errorf("List %d: Open succeeds, %d chunks wait", n, waiting)
			}
			return
		}
		if !errors.Is(err, syscall.EIO) {
			t.Errorf("List %d fails: Open: %v, want %v", n, err, syscall.EIO)
		}
	}
}

// refuseInstall fails each install of a Load behind the links for the archive, and fails the operations that also selects.
func refuseInstall(also func(op vfs.Op) bool) errorfs.Rule {
	linked := false
	return func(op vfs.Op) *errorfs.Fault {
		linked = linked || op.Kind == "link"
		if linked && (op.Kind == "create" && op.Name == "db/MANIFEST.tmp" || also != nil && also(op)) {
			return &errorfs.Fault{Err: syscall.EIO}
		}
		return nil
	}
}

// TestRefusedLoadIsNotArchived refuses the install of a Load. The next write gets its sequence number, and the archive must get
// that write and not the Load, also after a power cut.
func TestRefusedLoadIsNotArchived(t *testing.T) {
	disk := vfs.NewCrashMem()
	fsys := errorfs.Wrap(disk, nil)
	o := manual(fsys)
	o.Archive = &memArchive{hold: make(chan struct{})}
	db := mustCreate(t, o)
	fsys.SetRule(refuseInstall(nil))
	if _, err := db.Load(t.Context(), table, sequence([]edm.Entity{entity("q", "1", 1, 10)}), engine.LoadOptions{}); !errors.Is(err, syscall.EIO) {
		t.Fatalf("Load: %v, want %v", err, syscall.EIO)
	}
	fsys.SetRule(nil)
	if left := files(t, disk, "db", ".load"); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
	fill(t, db, "p", 3, 10)
	for seed, mode := range vfs.CrashModes {
		a := &memArchive{}
		o := manual(disk.Crash(vfs.CrashOptions{Mode: mode, Seed: uint64(seed)}))
		o.Archive = a
		again := mustOpen(t, "db", o)
		last := stats(t, again).LastSequence
		check(t, "Close", again.Close())
		got := a.ranges(t)
		if n := len(got); n == 0 || got[0].First != 1 || got[n-1].Last != last || slices.ContainsFunc(a.names, func(name string) bool {
			return strings.HasSuffix(name, ".load")
		}) {
			t.Errorf("%s: archived %q, the last sequence is %d", mode, a.names, last)
		}
	}
	check(t, "Close", closeAtOnce(db))
}

// TestRefusedLoadCannotBeRemoved refuses the install of a Load, and then each step that removes its links. A write with the same
// sequence number would be hidden by them in the archive, so the database must refuse it. Nor may an Open that fails to remove them
// succeed.
func TestRefusedLoadCannotBeRemoved(t *testing.T) {
	for _, c := range []struct{ kind, suffix string }{
		{"list", ".load"},
		{"remove", ".sst"},
		{"sync-dir", ".load"},
		{"remove", ".load/MANIFEST"},
		{"remove", ".load"},
		{"sync-dir", "db"},
	} {
		t.Run(c.kind+c.suffix, func(t *testing.T) {
			reached := false
			step := func(op vfs.Op) bool {
				ours := op.Kind == c.kind && strings.HasSuffix(op.Name, c.suffix) && (c.suffix != ".sst" || strings.Contains(op.Name, ".load/"))
				reached = reached || ours
				return ours
			}
			fsys := errorfs.Wrap(vfs.NewMem(), nil)
			o := manual(fsys)
			a := &memArchive{}
			o.Archive = a
			db := mustCreate(t, o)
			var manifested bool
			refuse := refuseInstall(func(op vfs.Op) bool { return manifested && step(op) })
			fsys.SetRule(func(op vfs.Op) *errorfs.Fault {
				fault := refuse(op)
				manifested = manifested || fault != nil
				return fault
			})
			_, err := db.Load(t.Context(), table, sequence([]edm.Entity{entity("q", "1", 1, 10)}), engine.LoadOptions{})
			if !errors.Is(err, syscall.EIO) || !reached {
				t.Fatalf("Load: %v, want %v; the step was reached: %t", err, syscall.EIO, reached)
			}
			if _, err := db.Apply(t.Context(), table, store.Insert(entity("p", "1", 1, 10))); !errors.Is(err, store.ErrReadOnly) {
				t.Errorf("Apply: %v, want %v", err, store.ErrReadOnly)
			}
			_ = closeAtOnce(db)
			reached = false
			fsys.SetRule(func(op vfs.Op) *errorfs.Fault {
				if step(op) {
					return &errorfs.Fault{Err: syscall.EIO}
				}
				return nil
			})
			if db, err := engine.Open("db", o); reached && !errors.Is(err, syscall.EIO) {
				t.Errorf("Open: %v, want %v", err, syscall.EIO)
			} else if err == nil {
				check(t, "Close", closeAtOnce(db))
			}
			fsys.SetRule(nil)
			db = mustOpen(t, "db", o)
			apply(t, db, store.Insert(entity("p", "1", 1, 10)))
			last := stats(t, db).LastSequence
			check(t, "Close", db.Close())
			got, isLoad := a.ranges(t), func(name string) bool { return strings.HasSuffix(name, ".load") }
			if left := files(t, fsys, "db", ".load"); len(left) > 0 || got[len(got)-1].Last != last || slices.ContainsFunc(a.names, isLoad) {
				t.Errorf("%q is left, archived %q, the last sequence is %d", left, a.names, last)
			}
		})
	}
}
