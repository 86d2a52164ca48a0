package engine_test

import (
	"strings"
	"sync"
	"testing"

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
