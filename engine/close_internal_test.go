package engine

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// limitCtx passes on what package context calls at its end, and ends when the test closes done.
type limitCtx struct {
	context.Context
	done  chan struct{}
	atEnd chan func()
}

func (c *limitCtx) Done() <-chan struct{} { return c.done }

func (c *limitCtx) Err() error {
	select {
	case <-c.done:
		return context.Canceled
	default:
		return nil
	}
}

func (c *limitCtx) AfterFunc(f func()) (stop func() bool) {
	c.atEnd <- f
	return func() bool { return true }
}

// TestCloseEndsFlush closes the database while the worker flushes. The limit of Close ends the
// flush, and the next Open replays what is left.
func TestCloseEndsFlush(t *testing.T) {
	fsys := errorfs.Wrap(vfs.NewMem(), nil)
	o := Options{FS: fsys, SegmentBytes: 4 << 20, FileBytes: 64 << 10, CacheBytes: 1 << 20}
	db, err := Open("db", o)
	must(t, "Open", err)
	must(t, "CreateTable", db.CreateTable(t.Context(), fullTable))
	must(t, "Flush", db.Flush(t.Context())) // the catalog has a file of its own
	flushing, release := make(chan struct{}), make(chan struct{})
	hold := sync.OnceFunc(func() {
		close(flushing)
		<-release
	})
	fsys.SetRule(func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "create" && strings.HasSuffix(op.Name, ".sst") {
			hold()
		}
		return nil
	})
	random, rows := rand.NewChaCha8([32]byte{}), 0
	for ; len(db.state.Load().Mems) == 1; rows++ { // and one row is in the next segment
		value := make([]byte, 60_000)
		_, _ = random.Read(value)
		_, err := db.Apply(t.Context(), fullTable, store.Insert(edm.Entity{Key: fullKey(rows), Properties: edm.Properties{{Name: "B", Value: edm.Binary(value)}}}))
		must(t, "Apply", err)
	}
	<-flushing
	stop, stopped := db.cancelWork, make(chan struct{})
	told := sync.OnceFunc(func() { close(stopped) })
	db.cancelWork = func() {
		stop()
		told()
	}
	ctx := &limitCtx{t.Context(), make(chan struct{}), make(chan func(), 10)}
	closed := make(chan error)
	go func() { closed <- db.CloseContext(ctx) }()
	end := <-ctx.atEnd // Close is about to flush that row
	close(ctx.done)
	end()
	<-stopped
	close(release)
	must(t, "CloseContext", <-closed)
	names, err := fsys.List("db")
	must(t, "List", err)
	if list := strings.Join(names, " "); strings.Count(list, ".sst") != 1 {
		t.Errorf("the files are %s, want only the sstable of the catalog", list)
	}
	db, err = Open("db", o)
	must(t, "Open", err)
	if s, err := db.Stats(); err != nil || s.Entities != int64(rows) {
		t.Errorf("%d rows, %v, want %d", s.Entities, err, rows)
	}
	must(t, "Close", db.Close())
}
