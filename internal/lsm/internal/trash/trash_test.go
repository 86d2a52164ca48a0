package trash_test

import (
	"context"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/internal/lsm/internal/trash"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// handler calls f for each record.
type handler struct {
	slog.Handler
	f func()
}

// Enabled implements slog.Handler.
func (h handler) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (h handler) Handle(context.Context, slog.Record) error {
	h.f()
	return nil
}

// TestLogOutsideLock fails removals, and another goroutine needs the Trash while the failure is
// logged, as the end of a cursor that the log's handler waits for.
func TestLogOutsideLock(t *testing.T) {
	fail := func(op vfs.Op) *errorfs.Fault { return &errorfs.Fault{Err: syscall.EIO} }
	fsys := errorfs.Wrap(vfs.NewMem(), fail)
	var tr *trash.Trash
	logged := 0
	log := slog.New(handler{slog.DiscardHandler, func() {
		logged++
		done := make(chan struct{})
		go func() {
			defer close(done)
			tr.Close()
		}()
		select {
		case <-done:
		case <-time.After(5 * time.Minute):
			t.Error("the lock is held while the log is written")
		}
	}})
	tr = &trash.Trash{FS: fsys, Dir: "db", Logger: log}
	tr.Remove(1)
	tr = &trash.Trash{FS: fsys, Dir: "db", Logger: slog.New(slog.DiscardHandler)}
	tr.Remove(2)
	tr.Logger = log
	tr.Empty()
	if logged != 2 {
		t.Errorf("%d records, want 2", logged)
	}
}
