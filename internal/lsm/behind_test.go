package lsm

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// TestFlushBehind flushes several files while writers will soon wait, and while they will not.
// Only in the first case is a file written while the one before is synced: the first sync waits
// here for the second file.
func TestFlushBehind(t *testing.T) {
	for _, behind := range []bool{true, false} {
		patience := time.Duration(0)
		if behind {
			patience = 5 * time.Minute
		}
		fsys := errorfs.Wrap(vfs.NewMem(), nil)
		h := newHarness(t, fsys, serialOptions(!behind), 51)
		for n := range 300 {
			h.put(n, 60)
		}
		var created, synced atomic.Int64
		var overlapped atomic.Bool
		second := make(chan struct{})
		fsys.SetRule(func(op vfs.Op) *errorfs.Fault {
			switch {
			case !strings.HasSuffix(op.Name, ".sst"):
			case op.Kind == "create" && created.Add(1) == 2:
				close(second)
			case op.Kind == "sync" && synced.Add(1) == 1:
				select {
				case <-second:
					overlapped.Store(true)
				case <-time.After(patience):
				}
			}
			return nil
		})
		h.flush()
		fsys.SetRule(nil)
		if created.Load() < 3 || created.Load() != synced.Load() {
			t.Fatalf("behind %t: %d files and %d syncs, want several of each", behind, created.Load(), synced.Load())
		}
		if overlapped.Load() != behind {
			t.Errorf("behind %t: the second file began before the end of the first: %t", behind, overlapped.Load())
		}
		h.check()
		h.close()
	}
}
