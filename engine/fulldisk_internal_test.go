package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestDeletesBesideCompact deletes rows of a full disk beside a Compact, until there is no space for
// the log. The worker cannot reclaim then, so the delete must wait for the Compact, which makes space.
func TestDeletesBesideCompact(t *testing.T) {
	disk := vfs.NewMem()
	disk.SetCapacity(8 << 20)
	const table = "Things"
	db, err := Open("db", Options{FS: disk, SegmentBytes: 256 << 10, FileBytes: 64 << 10})
	must(t, "Open", err)
	must(t, "CreateTable", db.CreateTable(t.Context(), table))
	r := rand.New(rand.NewPCG(1, 1))
	rows, refused := 0, 0
	for refused < 5 {
		value := make([]byte, 3000)
		for i := range value {
			value[i] = byte(r.Uint32())
		}
		_, err := db.Apply(t.Context(), table, store.Insert(edm.Entity{
			Key: edm.Key{Row: fmt.Sprintf("%0500d", rows)}, Properties: edm.Properties{{Name: "B", Value: edm.Binary(value)}},
		}))
		switch {
		case err == nil:
			rows++
		case errors.Is(err, store.ErrNoSpace):
			refused++
			must(t, "Flush", db.Flush(t.Context()))
		default:
			t.Fatal(err)
		}
	}
	w := &db.work
	w.stepMu.Lock()
	w.compacting.Store(true)
	w.abortCompaction()
	job := db.timeJob(db.tree.NewFullCompaction(), 0)
	w.stepMu.Unlock()
	ctx := &waitedCtx{Context: t.Context(), done: make(chan struct{}), waits: make(chan struct{}, 100)}
	deleted := make(chan error, 1)
	n := 0
	go func() {
		for ; n < rows; n++ {
			if _, err := db.Apply(ctx, table, store.Delete(edm.Key{Row: fmt.Sprintf("%0500d", n)}, store.Any)); err != nil {
				deleted <- err
				return
			}
		}
		deleted <- nil
	}()
	select {
	case err := <-deleted:
		t.Fatalf("%d of %d deleted, no delete waited: %v", n, rows, err)
	case <-ctx.waits:
	}
	for worked := true; worked; {
		worked, err = db.step(t.Context())
		must(t, "Step", err)
	}
	w.mu.Lock()
	if w.reclaimed >= db.full.freed.Load() {
		t.Error("the worker tells the delete that everything is reclaimed")
	}
	w.mu.Unlock()
	for done := false; !done; {
		done, err = db.compactStep(t.Context(), job)
		must(t, "Step", err)
	}
	if err := <-deleted; err != nil {
		t.Errorf("delete %d of %d: %v", n, rows, err)
	}
	must(t, "Close", db.Close())
}

// waitedCtx signals waits when somebody waits for its end.
type waitedCtx struct {
	context.Context
	done, waits chan struct{}
}

func (c *waitedCtx) Done() <-chan struct{} { return c.done }

func (c *waitedCtx) AfterFunc(func()) (stop func() bool) {
	c.waits <- struct{}{}
	return func() bool { return true }
}
