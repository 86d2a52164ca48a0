package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
)

// TestInspectDamagedLog inspects a damaged segment that holds acknowledged writes and that the
// manifest does not list yet, as after a crash: it is damage of the database.
func TestInspectDamagedLog(t *testing.T) {
	live, crashed := t.TempDir(), t.TempDir()
	db, err := engine.Open(filepath.ToSlash(live), engine.Options{SegmentBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.CreateTable(t.Context(), "Rows"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Apply(t.Context(), "Rows", store.Insert(edm.Entity{Key: edm.Key{Partition: "p", Row: "r"}})); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(crashed, os.DirFS(live)); err != nil {
		t.Fatal(err)
	}
	segments, err := filepath.Glob(filepath.Join(crashed, "*.wal"))
	if err != nil || len(segments) != 1 {
		t.Fatalf("segments %q, error %v, want one", segments, err)
	}
	inspect := func() (code int, stdout, stderr string) {
		var out, notes bytes.Buffer
		code = run(t.Context(), []string{"inspect", segments[0]}, nil, &out, &notes)
		return code, out.String(), notes.String()
	}
	if code, found, notes := inspect(); code != exitOK || !strings.Contains(found, `"listed":false`) || !strings.Contains(found, `"puts":3`) {
		t.Fatalf("exit code %d, %s, %s", code, found, notes)
	}
	content, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	content[20] ^= 1
	if err := os.WriteFile(segments[0], content, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, notes := inspect(); code != exitCorrupt || strings.Contains(notes, "not part of the database") {
		t.Errorf("exit code %d, %s, want %d", code, notes, exitCorrupt)
	}
}
