package fuzz

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
)

// inputTime limits the time for one input, on a busy machine.
const inputTime = time.Minute

// FuzzDirectory opens a directory of any files. It allows no panic, no input that needs much
// time or memory, only documented errors, and no change of a file by a failed open. If
// Verify finds nothing, all reads agree, and a write, a compaction, a close and an open
// change no other data. If sums is set, the test first repairs the checksums of the files;
// only then may reads disagree, and Verify must detect that.
func FuzzDirectory(f *testing.F) {
	golden := goldenFiles(f)
	f.Add(archiveOf(golden), false)
	f.Add(archiveOf(golden), true)
	f.Add(archiveOf(nil), false)
	for name := range golden {
		some := maps.Clone(golden)
		delete(some, name)
		f.Add(archiveOf(some), true)
	}
	unclean := maps.Clone(golden)
	unclean["000006.wal"] = bytes.Clone(golden["000006.wal"][:0x1208])
	unclean["MANIFEST"] = bytes.Clone(golden["MANIFEST"])
	clear(unclean["MANIFEST"][0x70:0x78]) // the log is open
	f.Add(archiveOf(unclean), true)
	f.Fuzz(func(t *testing.T, archive []byte, sums bool) {
		if len(archive) > maxArchiveBytes {
			t.Skip("too large")
		}
		files := filesOf(archive)
		if sums {
			repair(files)
		}
		ctx, cancel := context.WithTimeout(t.Context(), inputTime)
		defer cancel()
		useDirectory(ctx, t, files, sums)
	})
}

func useDirectory(ctx context.Context, t *testing.T, files map[string][]byte, sums bool) {
	disk := diskOf(t, files)
	o := options(disk)
	ro := o
	ro.ReadOnly = true
	before := allocated()
	// A read-only open changes nothing, whether it fails or not.
	if view, err := engine.Open("db", ro); err == nil {
		readAll(ctx, t, view, sums)
		if err := view.Close(); err != nil {
			t.Fatalf("close after a read-only open: %v", err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		checkDocumented(t, "read-only open", err)
	}
	checkUnchanged(t, "a read-only open", files, contents(t, disk, "db"))

	db, err := engine.Open("db", o)
	if n := allocated() - before; n > 64<<20+256*uint64(size(files)) {
		t.Fatalf("%d bytes allocated for a directory of %d", n, size(files))
	}
	if err != nil {
		checkDocumented(t, "open", err)
		checkUnchanged(t, "a failed open", files, contents(t, disk, "db"))
		return
	}
	if was, healthy := readAll(ctx, t, db, sums); healthy {
		db = writeAndReopen(ctx, t, db, o, was)
	}
	if err := db.Close(); err != nil {
		checkDocumented(t, "close", err)
	}
}

// readAll reads a database in every way. healthy means that it found no error.
func readAll(ctx context.Context, t *testing.T, db *engine.DB, sums bool) (s state, healthy bool) {
	t.Helper()
	report, err := db.Verify(ctx)
	if err != nil {
		t.Fatalf("Verify fails: %v", err)
	}
	s, err = stateOf(ctx, db)
	switch {
	case err != nil && len(report.Findings) == 0:
		t.Fatalf("Verify finds nothing, but: %v", err)
	case errors.Is(err, errInconsistent) && !sums:
		t.Fatalf("with the original checksums: %v; Verify finds %v", err, report.Findings)
	case !errors.Is(err, errInconsistent):
		checkDocumented(t, "read", err)
	}
	return s, err == nil && len(report.Findings) == 0
}

// writeAndReopen writes to a healthy database, opens it again and checks that all other data
// is unchanged. It returns the open database.
func writeAndReopen(ctx context.Context, t *testing.T, db *engine.DB, o engine.Options, was state) *engine.DB {
	const table = "FuzzWrites"
	if slices.ContainsFunc(was.Tables, func(i store.TableInfo) bool { return edm.FoldTableName(i.Name) == "fuzzwrites" }) {
		return db
	}
	fatal := func(step string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s on a database in which Verify finds nothing: %v", step, err)
		}
	}
	err := db.CreateTable(ctx, table)
	if errors.Is(err, edm.ErrTooLarge) || errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrReadOnly) {
		return db // a counter is at its maximum
	}
	fatal("CreateTable", err)
	_, err = db.Apply(ctx, table, store.Insert(edm.Entity{Key: edm.Key{Partition: "p", Row: "r"}, Properties: everyType(3)}))
	fatal("Apply", err)
	fatal("Compact", db.Compact(ctx))
	fatal("Close", db.Close())
	db, err = engine.Open("db", o)
	fatal("Open", err)
	now, err := stateOf(ctx, db)
	fatal("read", err)
	if n := len(now.Entities[table]); n != 1 {
		t.Fatalf("%d entities, want the one that was written", n)
	}
	delete(now.Entities, table)
	delete(now.Meta, table)
	now.Tables = slices.DeleteFunc(now.Tables, func(i store.TableInfo) bool { return i.Name == table })
	if diff := cmp.Diff(was, now, compareEntities); diff != "" {
		t.Fatalf("a write and a compaction changed other data (-before +after):\n%s", diff)
	}
	return db
}

// checkDocumented fails unless err is an error that Open documents for a damaged, foreign or
// newer directory.
func checkDocumented(t *testing.T, what string, err error) {
	t.Helper()
	for _, documented := range []error{store.ErrCorrupt, store.ErrNewerFormat, store.ErrNotDatabase} {
		if errors.Is(err, documented) {
			return
		}
	}
	if err != nil {
		t.Fatalf("%s: %v is not a documented error", what, err)
	}
}

func checkUnchanged(t *testing.T, what string, want, got map[string][]byte) {
	t.Helper()
	for name := range want {
		if !bytes.Equal(want[name], got[name]) {
			t.Fatalf("%s changed %s", what, name)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Fatalf("%s created %s", what, name)
		}
	}
}

func size(files map[string][]byte) (n int) {
	for _, b := range files {
		n += len(b)
	}
	return n
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
