package engine_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// TestFlushDropsAllSegments flushes several segments at once, of which the first cannot be closed.
// The others must not stay until the next Open.
func TestFlushDropsAllSegments(t *testing.T) {
	disk := vfs.NewMem()
	failed := 0
	o := manual(errorfs.Wrap(disk, func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "close" && strings.HasSuffix(op.Name, ".wal") {
			if failed++; failed == 1 {
				return &errorfs.Fault{Err: syscall.EIO}
			}
		}
		return nil
	}))
	o.NoSync, o.SegmentBytes = true, 64<<10
	db := mustCreate(t, o)
	fill(t, db, "p", 100, 1500) // three segments
	if n := len(files(t, disk, "db", ".wal")); n < 3 || failed > 0 {
		t.Fatalf("%d segments, %d were closed", n, failed)
	}
	check(t, "Flush", db.Flush(t.Context()))
	// The active one, the one that could not be closed, and one for the next segment.
	if names := files(t, disk, "db", ".wal"); len(names) > 3 || failed < 2 {
		t.Errorf("segments %v remain, %d were closed", names, failed)
	}
	check(t, "Close", closeAtOnce(db))
}
