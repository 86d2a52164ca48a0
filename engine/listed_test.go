package engine_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// TestCloseListsWhatOpenCouldNot opens a killed database on a full disk, where the manifest cannot
// list the end of the log. Close lists it, if it can, although nothing was written.
func TestCloseListsWhatOpenCouldNot(t *testing.T) {
	disk := vfs.NewCrashMem()
	db := mustCreate(t, manual(disk))
	fill(t, db, "p", 10, 10)
	after := disk.Crash(vfs.CrashOptions{Mode: "max"})
	check(t, "Close", closeAtOnce(db))

	full := true
	db = mustOpen(t, "db", manual(errorfs.Wrap(after, func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "create" && (strings.HasSuffix(op.Name, ".sst") || full && strings.Contains(op.Name, "MANIFEST")) {
			return &errorfs.Fault{Err: syscall.ENOSPC}
		}
		return nil
	})))
	ends := func() (n int) {
		m, err := manifest.Read(after, "db")
		check(t, "Read", err)
		for _, l := range m.Logs {
			if l.Sealed > 0 {
				n++
			}
		}
		return n
	}
	if n := ends(); n != 0 {
		t.Fatalf("the manifest seals %d segments after Open", n)
	}
	full = false
	if err := db.Close(); err != nil && !errors.Is(err, store.ErrNoSpace) {
		t.Fatalf("Close: %v", err)
	}
	if n := ends(); n != 1 {
		t.Errorf("the manifest seals %d segments after Close, want 1", n)
	}
}
