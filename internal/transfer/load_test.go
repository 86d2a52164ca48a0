package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// loadText imports text with the Load of an engine, and counts the calls.
func loadText(t *testing.T, text string, o transfer.ImportOptions) (db *engine.DB, got importResult, loads int) {
	t.Helper()
	db, err := engine.Open("db", engine.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	o.Load = func(ctx context.Context, table string, entities iter.Seq2[edm.Entity, error], installed func(int64)) error {
		loads++
		_, err := db.Load(ctx, table, entities, engine.LoadOptions{Installed: func(r engine.LoadResult) { installed(r.Entities) }})
		return err
	}
	o.Bad = func(e *transfer.LineError) { got.skipped = append(got.skipped, e.Error()) }
	r := transfer.NewReader(strings.NewReader(text), transfer.ReadOptions{Name: "f", Format: transfer.CSV})
	got.progress, got.err = transfer.Import(t.Context(), db, "Tab", r, o)
	return db, got, loads
}

// TestImportLoads imports rows in any order, with a repeated key, by one Load.
func TestImportLoads(t *testing.T) {
	db, got, loads := loadText(t, rows("b/1", "a/2", "b/1", "a/1"), transfer.ImportOptions{})
	if got.err != nil || loads != 1 || got.progress.Rows != 4 || got.progress.Transactions != 1 {
		t.Errorf("%d loads, %+v", loads, got)
	}
	if d := cmp.Diff([]string{"a/1=4", "a/2=2", "b/1=3"}, contents(t, db)); d != "" {
		t.Errorf("stored (-want +got):\n%s", d)
	}
	for name, o := range map[string]transfer.ImportOptions{
		"merge": {Mode: transfer.Merge}, "insert": {Mode: transfer.Insert}, "ack": {Ack: func(int64, int64) error { return nil }},
	} {
		if _, got, loads := loadText(t, rows("a/1"), o); got.err != nil || loads != 0 || got.progress.Rows != 1 {
			t.Errorf("%s: %d loads, %+v", name, loads, got)
		}
	}
}

// TestImportLoadsBadRows stops at a row that the file or the engine refuses, after the rows
// before it, or skips it.
func TestImportLoadsBadRows(t *testing.T) {
	long := strings.Repeat("x", 1100)
	text := rows("a/1") + "a,2,x\na," + long + ",3\na,4,4\n"
	db, got, _ := loadText(t, text, transfer.ImportOptions{})
	var line *transfer.LineError
	if !errors.As(got.err, &line) || line.Line != 3 || got.progress.Rows != 1 {
		t.Errorf("%+v, want an error in line 3", got)
	}
	if d := cmp.Diff([]string{"a/1=1"}, contents(t, db)); d != "" {
		t.Errorf("stored (-want +got):\n%s", d)
	}
	db, got, _ = loadText(t, text, transfer.ImportOptions{SkipBad: true})
	if got.err != nil || got.progress.Rows != 2 || got.progress.Skipped != 2 || len(got.skipped) != 2 ||
		!strings.Contains(got.skipped[1], "RowKey: 1100 code units") {
		t.Errorf("%+v, want two rows and two skipped", got)
	}
	if d := cmp.Diff([]string{"a/1=1", "a/4=4"}, contents(t, db)); d != "" {
		t.Errorf("stored (-want +got):\n%s", d)
	}
	// The refusals are those of transactions.
	_, byApply, _ := loadText(t, rows("a/"+long), transfer.ImportOptions{Ack: func(int64, int64) error { return nil }})
	_, byLoad, _ := loadText(t, rows("a/"+long), transfer.ImportOptions{})
	if fmt.Sprint(byApply.err) != fmt.Sprint(byLoad.err) || byLoad.err == nil ||
		!errors.Is(byLoad.err, store.ErrInvalid) && !errors.Is(byLoad.err, store.ErrTooLarge) {
		t.Errorf("by Load %v, by Apply %v", byLoad.err, byApply.err)
	}
	db, got, loads := loadText(t, head+"a,1,x\n", transfer.ImportOptions{SkipBad: true})
	if tables, err := db.Tables(t.Context(), "", 0); err != nil || len(tables) > 0 || loads > 0 || got.err != nil {
		t.Errorf("a file with bad rows only: tables %v, %d loads, %+v", tables, loads, got)
	}
}

// TestImportLoadCanceled cancels an import while it reads.
func TestImportLoadCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	db, err := engine.Open("db", engine.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	r := transfer.NewReader(&repeat{line: `{"PartitionKey":"p","RowKey":"r"}` + "\n"}, transfer.ReadOptions{Name: "f", Format: transfer.JSONL})
	progress, err := transfer.Import(ctx, db, "Tab", r, transfer.ImportOptions{
		Progress: func(transfer.Progress) { cancel() },
		Load: func(ctx context.Context, table string, entities iter.Seq2[edm.Entity, error], _ func(int64)) error {
			_, err := db.Load(ctx, table, entities, engine.LoadOptions{})
			return err
		},
	})
	if !errors.Is(err, context.Canceled) || progress.Rows != 0 {
		t.Errorf("error %v after %+v, want %v", err, progress, context.Canceled)
	}
}
