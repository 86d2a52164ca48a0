package engine_test

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// TestReadOnlyWhileWriterOpens opens a database for reading, without a writer. Before the log is
// read, a writer opens it and writes a record, whose sync has not begun when the open ends. It
// must not show the record: a power cut can lose it.
func TestReadOnlyWhileWriterOpens(t *testing.T) {
	disk := vfs.NewMem()
	db := mustCreate(t, manual(disk))
	fill(t, db, "p", 3, 10)
	check(t, "Close", db.Close())

	var once sync.Once
	var writer sync.WaitGroup
	unblock := make(chan struct{})
	open := func() {
		written := make(chan struct{})
		syncs := 0
		writer.Go(func() {
			db := mustOpen(t, "db", manual(errorfs.Wrap(disk, func(op vfs.Op) *errorfs.Fault {
				if op.Kind == "sync" && strings.HasSuffix(op.Name, ".wal") {
					if syncs++; syncs == 2 { // the first is that of the header
						close(written)
						<-unblock
					}
				}
				return nil
			})))
			apply(t, db, store.Insert(entity("p", "new", 1, 10)))
			check(t, "Close", db.Close())
		})
		<-written
	}
	o := manual(errorfs.Wrap(disk, func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "sync-dir" {
			once.Do(open)
		}
		return nil
	}))
	o.ReadOnly = true
	reader := mustOpen(t, "db", o)
	if rows := dump(t, reader, store.Query{}); len(rows) != 3 {
		t.Errorf("%d rows, want 3: a record that is not durable is shown", len(rows))
	}
	check(t, "Close", reader.Close())
	close(unblock)
	writer.Wait()
	reader = mustOpen(t, "db", o)
	if rows := dump(t, reader, store.Query{}); len(rows) != 4 {
		t.Errorf("%d rows after the writer, want 4", len(rows))
	}
	check(t, "Close", reader.Close())
}

// TestReadOnlyCannotCompare opens a database for reading. A writer flushes before one of its operations,
// and then the manifest cannot be read once: Open must not take the files that it has found for those
// of the database.
func TestReadOnlyCannotCompare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it waits for the proof of the last record
		for n, ended := 1, false; !ended; n++ {
			disk := vfs.NewMem()
			db := mustCreate(t, manual(disk))
			fill(t, db, "p", 3, 1000)
			calls, flushed, failed := 0, false, false
			o := manual(errorfs.Wrap(disk, func(op vfs.Op) *errorfs.Fault {
				if calls++; calls == n {
					flushed = true
					check(t, "Flush", db.Flush(t.Context()))
					fill(t, db, "q", 3, 1000)
					check(t, "Flush", db.Flush(t.Context()))
				} else if flushed && !failed && op.Kind == "open" && strings.HasSuffix(op.Name, "MANIFEST") {
					failed = true
					return &errorfs.Fault{Err: syscall.EIO}
				}
				return nil
			}))
			o.ReadOnly = true
			reader, err := engine.Open("db", o)
			if ended = calls < n; err == nil {
				if rows := dump(t, reader, store.Query{}); len(rows) < 2 { // without the last record, which has no proof
					t.Errorf("a flush before operation %d: %d rows, want at least 2", n, len(rows))
				}
				check(t, "Close", reader.Close())
			} else if !failed || !errors.Is(err, syscall.EIO) {
				t.Errorf("a flush before operation %d: Open: %v", n, err)
			}
			check(t, "Close", db.Close())
		}
	})
}

// TestReadOnlyCannotSeeWriter opens a database for reading beside a writer that gives no proof of its last
// record, while the lock cannot be read once. Open must fail, or warn that writes may be missing.
func TestReadOnlyCannotSeeWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it waits for the proof
		disk := vfs.NewMem()
		db := mustCreate(t, manual(disk))
		fill(t, db, "p", 3, 10)
		for n, failed := uint64(1), true; failed; n++ {
			failed = false
			isLocked := func(op vfs.Op) bool { return op.Kind == "locked" }
			nth := errorfs.FailNth(n, isLocked, errorfs.Fault{Err: syscall.EIO}, false)
			o := manual(errorfs.Wrap(disk, func(op vfs.Op) *errorfs.Fault {
				f := nth(op)
				failed = failed || f != nil
				return f
			}))
			var log strings.Builder
			o.ReadOnly, o.Logger = true, slog.New(slog.NewTextHandler(&log, nil))
			reader, err := engine.Open("db", o)
			if err == nil {
				check(t, "Close", reader.Close())
			}
			if warned := strings.Contains(log.String(), "may be missing"); failed != errors.Is(err, syscall.EIO) || err == nil && !warned {
				t.Errorf("call %d fails: %t; Open: %v, warned: %t", n, failed, err, warned)
			}
		}
		check(t, "Close", db.Close())
	})
}
