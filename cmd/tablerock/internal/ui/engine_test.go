package ui

import (
	"log/slog"
	"strings"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// TestStateFailure requires that the state has the error that made a database read-only.
func TestStateFailure(t *testing.T) {
	disk := errorfs.Wrap(vfs.NewMem(), nil)
	db, err := engine.Open("db", engine.Options{FS: disk, SegmentBytes: 64 << 10, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() // its error is that of the disk
	d := &Database{DB: db, FS: disk, Dir: "db", SegmentBytes: 64 << 10, Jobs: &Jobs{}}
	if e, err := d.State("first"); err != nil || e.Failure != "" {
		t.Errorf("the state has the failure %q, %v", e.Failure, err)
	}
	disk.SetRule(func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "sync" {
			return &errorfs.Fault{Err: syscall.EIO}
		}
		return nil
	})
	if err := db.CreateTable(t.Context(), "Orders"); err == nil {
		t.Fatal("a table was created without a sync")
	}
	if e, err := d.State("first"); err != nil || !strings.Contains(e.Failure, "read-only") || !strings.Contains(e.Failure, syscall.EIO.Error()) {
		t.Errorf("the state has the failure %q, %v", e.Failure, err)
	}
}
