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

// inputTime bounds what one input may take, on a busy machine.
const inputTime = 20 * time.Second

// FuzzDirectory opens a directory of any files. There is no panic and no input
// that takes long or much memory; errors are of the documented kinds; a failed
// open changes no file; if Verify finds nothing, all ways of reading agree, and
// the database can be written to, merged, closed and opened again without a
// change to anything else. With sums, those of the files are made right first:
// only then may ways of reading disagree, and Verify must find out.
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
	clear(unclean["MANIFEST"][0x50:0x58]) // the log is open
	f.Add(archiveOf(unclean), true)
	f.Fuzz(func(t *testing.T, archive []byte, sums bool) {
		if len(archive) > maxArchiveBytes {
			t.Skip("too large")
		}
		files := filesOf(archive)
		if sums {
			mend(files)
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
	// A view changes nothing, whether it opens or not.
	if view, err := engine.Open("db", ro); err == nil {
		readAll(ctx, t, view, sums)
		if err := view.Close(); err != nil {
			t.Fatalf("close of a view: %v", err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		checkDocumented(t, "open of a view", err)
	}
	checkUnchanged(t, "a view", files, contents(t, disk, "db"))

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

// readAll reads a database in every way, and reports whether there is nothing
// wrong with it.
func readAll(ctx context.Context, t *testing.T, db *engine.DB, sums bool) (s state, healthy bool) {
	t.Helper()
	report, err := db.Verify(ctx)
	if err != nil {
		t.Fatalf("Verify could not finish: %v", err)
	}
	s, err = stateOf(ctx, db)
	switch {
	case err != nil && len(report.Findings) == 0:
		t.Fatalf("Verify finds nothing, but: %v", err)
	case errors.Is(err, errInconsistent) && !sums:
		t.Fatalf("nobody made the sums right, but: %v; Verify finds %v", err, report.Findings)
	case !errors.Is(err, errInconsistent):
		checkDocumented(t, "read", err)
	}
	return s, err == nil && len(report.Findings) == 0
}

// writeAndReopen changes a healthy database and asks that everything else stays
// as it was. It returns the database, which was opened again.
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
		return db // counters at their ends
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
		t.Fatalf("%d entities of the one written", n)
	}
	delete(now.Entities, table)
	delete(now.Meta, table)
	now.Tables = slices.DeleteFunc(now.Tables, func(i store.TableInfo) bool { return i.Name == table })
	if diff := cmp.Diff(was, now, compareEntities); diff != "" {
		t.Fatalf("a write and a merge changed more (-before +after):\n%s", diff)
	}
	return db
}

// checkDocumented asks that an error is one that a damaged, foreign or newer
// directory may give.
func checkDocumented(t *testing.T, what string, err error) {
	t.Helper()
	for _, documented := range []error{store.ErrCorrupt, store.ErrNewerFormat, store.ErrNotDatabase} {
		if errors.Is(err, documented) {
			return
		}
	}
	if err != nil {
		t.Fatalf("%s: %v is none of the documented errors", what, err)
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
			t.Fatalf("%s made %s", what, name)
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
