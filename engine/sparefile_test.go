package engine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
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
