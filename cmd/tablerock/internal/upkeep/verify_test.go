package upkeep

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/output"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/progress"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestVerifyInterrupted interrupts the command after the first of two damaged sstables: it prints
// the damage of that one, and ends as interrupted.
func TestVerifyInterrupted(t *testing.T) {
	disk := vfs.NewMem()
	db, err := engine.Open("db", engine.Options{FS: disk, Testing: engine.TestHooks{Manual: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	err = db.CreateTable(t.Context(), "Rows")
	for _, key := range []string{"a", "b"} {
		_, applied := db.Apply(t.Context(), "Rows", store.Insert(edm.Entity{Key: edm.Key{Partition: key, Row: "r"}}))
		err = errors.Join(err, applied, db.Flush(t.Context()))
	}
	names, listed := disk.List("db")
	if err = errors.Join(err, listed); err != nil {
		t.Fatal(err)
	}
	damaged := 0
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") {
			damaged++
			if err := disk.Patch("db/"+name, 50, []byte{0xFF, 0xFF, 0xFF}); err != nil {
				t.Fatal(err)
			}
		}
	}
	ctx, interrupt := context.WithCancel(t.Context())
	var out, notes bytes.Buffer
	e := &Env{
		Args:    func(int, int) cobra.PositionalArgs { return nil },
		Note:    func(string, ...any) {},
		Printer: func() *output.Printer { return output.NewPrinter(&out, output.JSONL) },
		Stderr:  &notes,
		Bytes:   func(string, int64) *progress.Bar { interrupt(); return nil },
		Dir:     func() string { return "db" },
		Read:    func(work func(*engine.DB) error) error { return work(db) },
		Damaged: errors.New("damaged"),
	}
	c := e.Verify()
	c.SetArgs(nil)
	c.SilenceErrors, c.SilenceUsage = true, true
	err = c.ExecuteContext(ctx)
	if !errors.Is(err, context.Canceled) || errors.Is(err, e.Damaged) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	found := 0
	for _, name := range names {
		if strings.Contains(out.String(), name) {
			found++
		}
	}
	if damaged < 2 || found != 1 || !strings.Contains(notes.String(), "damaged") {
		t.Errorf("%d sstables are damaged, %d are listed in %q, with %q; want one of several", damaged, found, &out, &notes)
	}
}
