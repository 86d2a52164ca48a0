package engine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// TestCloseRemovesSpareFile fills several segments on the real disk, where the file of
// a flushed segment is kept for the next one, and closes a flushed database. No segment
// may be left, because none has records.
func TestCloseRemovesSpareFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	db, err := engine.Open(dir, engine.Options{Testing: engine.TestHooks{Manual: true}, SegmentBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.CreateTable(t.Context(), "People"); err != nil {
		t.Fatal(err)
	}
	for i := range 3 * 64 {
		e := edm.Entity{
			Key:        edm.Key{Partition: "p", Row: fmt.Sprint(i)},
			Properties: edm.Properties{{Name: "Text", Value: edm.String(strings.Repeat("x", 1000))}},
		}
		if _, err := db.Apply(t.Context(), "People", store.Insert(e)); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	segments := func() []string {
		t.Helper()
		names, err := filepath.Glob(filepath.Join(dir, "*.wal"))
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	if len(segments()) == 0 {
		t.Fatal("no file was kept for the next segment: the test proves nothing")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if left := segments(); len(left) > 0 {
		info, _ := os.Stat(left[0])
		t.Errorf("Close leaves %q, the first of %d bytes", left, info.Size())
	}
}

// TestFlushLeavesASegment cannot close or remove the file of a flushed segment. Everything is
// in sstables, so that is no reason to fail a Flush, or to refuse a write that waits for one.
func TestFlushLeavesASegment(t *testing.T) {
	for _, kind := range []string{"close", "remove"} {
		disk := vfs.NewMem()
		fsys := errorfs.Wrap(disk, nil)
		db := mustCreate(t, manual(fsys))
		fill(t, db, "p", 1, 10)
		failed := 0
		fsys.SetRule(func(op vfs.Op) *errorfs.Fault {
			if op.Kind == kind && strings.HasSuffix(op.Name, ".wal") {
				failed++
				return &errorfs.Fault{Err: syscall.EIO}
			}
			return nil
		})
		check(t, kind+": Flush", db.Flush(t.Context()))
		fill(t, db, "q", 20, 20<<10) // and some flushes
		fsys.SetRule(nil)
		if failed < 2 {
			t.Errorf("%s: %d failed", kind, failed)
		}
		check(t, "Close", db.Close())
		check(t, "Close", mustOpen(t, "db", manual(disk)).Close())
		if left := files(t, disk, "db", ".wal"); len(left) > 0 {
			t.Errorf("%s: %v are left", kind, left)
		}
	}
}
