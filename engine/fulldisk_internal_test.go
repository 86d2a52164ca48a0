package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// TestDeletesBesideCompact deletes rows of a full disk beside a Compact, until there is no space for
// the log. The worker cannot reclaim then, so the delete must wait for the Compact, which makes space.
func TestDeletesBesideCompact(t *testing.T) {
	disk := vfs.NewMem()
	db, rows := openFullOn(t, disk, Options{FS: disk})
	db.steps.mu.Lock()
	disk.SetCapacity(disk.Used()) // compactions may have made space since the last write was refused
	db.steps.compacting.Store(true)
	db.abortCompaction()
	job := db.timeJob(db.tree.NewFullCompaction(), 0)
	db.steps.mu.Unlock()
	d := deleteUntilWaits(t, db, rows)
	for worked := true; worked; {
		var err error
		worked, err = db.step(t.Context())
		must(t, "Step", err)
	}
	if db.steps.reclaimed.Load() >= db.gate.Freed() {
		t.Error("the worker tells the delete that everything is reclaimed")
	}
	disk.SetCapacity(disk.Used() + 64<<20) // the compaction is no reclaim, so it gets nothing of the reserve, which is filled again
	for done := false; !done; {
		var err error
		done, err = db.compactStep(t.Context(), job)
		must(t, "Step", err)
	}
	if err := <-d.ended; err != nil {
		t.Errorf("delete %d of %d: %v", d.n, rows, err)
	}
	must(t, "Close", db.Close())
}

// TestCloseEndsWaitingDelete closes a database of which a delete waits for a reclaim that takes long.
func TestCloseEndsWaitingDelete(t *testing.T) {
	disk := vfs.NewMem()
	db, rows := openFullOn(t, disk, Options{FS: disk})
	db.steps.mu.Lock()            // the reclaim does not go on
	disk.SetCapacity(disk.Used()) // compactions may have made space since the last write was refused
	d := deleteUntilWaits(t, db, rows)
	closed := make(chan error)
	go func() { closed <- db.Close() }()
	select {
	case err := <-d.ended:
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("delete %d of %d: %v, want ErrClosed", d.n, rows, err)
		}
	case <-time.After(5 * time.Minute):
		t.Error("the delete still waits")
	}
	db.steps.mu.Unlock()
	must(t, "Close", <-closed)
}

// TestReclaimAfterFailedStep ends the context of a step of a reclaim, and fails one of its reads. The reclaim must free the
// space of the deleted rows nevertheless: nobody repeats it before a write is refused.
func TestReclaimAfterFailedStep(t *testing.T) {
	for _, want := range []error{context.Canceled, syscall.EIO} {
		disk := vfs.NewMem()
		fsys := errorfs.Wrap(disk, nil)
		db, rows := openFullOn(t, disk, Options{FS: fsys, Testing: TestHooks{Manual: true}})
		for i := range rows / 2 {
			_, err := db.Apply(t.Context(), fullTable, store.Delete(fullKey(i), store.Any))
			must(t, "Apply", err)
		}
		reclaims := func() bool {
			db.steps.mu.Lock()
			defer db.steps.mu.Unlock()
			return db.steps.compaction != nil && db.steps.compaction.What == "reclaim space"
		}
		for !reclaims() {
			worked, err := db.Step(t.Context())
			if must(t, "Step", err); !worked {
				t.Fatal("no reclaim begins")
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		if want == context.Canceled {
			cancel()
		}
		read := func(op vfs.Op) bool {
			return want == syscall.EIO && op.Kind == "read" && strings.HasSuffix(op.Name, ".sst")
		}
		fsys.SetRule(errorfs.FailNth(1, read, errorfs.Fault{Err: want}, false))
		worked, err := true, error(nil)
		for worked && err == nil {
			worked, err = db.Step(ctx)
		}
		cancel()
		if !errors.Is(err, want) {
			t.Fatalf("Step: %v, want %v", err, want)
		}
		for worked = true; worked; {
			worked, err = db.Step(t.Context())
			must(t, "Step", err)
		}
		if db.gate.Full() {
			t.Errorf("after %v the disk stays full, although half of the rows were deleted", want)
		}
		must(t, "Close", db.Close())
	}
}

// TestReclaimBesideEndedCtx ends the context of a step while a delete waits for a reclaim, after a step that failed. The error
// of that step must not end the wait: the delete asked the worker to try again, and it has not done so yet.
func TestReclaimBesideEndedCtx(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		fsys := errorfs.Wrap(disk, nil)
		db, _ := openFullOn(t, disk, Options{FS: fsys, Testing: TestHooks{Manual: true}})
		_, err := db.Apply(t.Context(), fullTable, store.Delete(fullKey(0), store.Any))
		must(t, "Apply", err)
		fsys.SetRule(errorfs.FailNth(1, func(op vfs.Op) bool {
			return op.Kind == "create" && strings.HasSuffix(op.Name, ".sst")
		}, errorfs.Fault{Err: syscall.EIO}, false))
		if err := stepAll(t.Context(), db); !errors.Is(err, syscall.EIO) {
			t.Fatalf("Step: %v, want %v", err, syscall.EIO)
		}
		db.opts.Testing.Manual = false // the delete waits, and does not do the steps
		waited := make(chan error, 1)
		go func() { waited <- db.waitReclaimed(t.Context()) }()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := db.step(ctx); !errors.Is(err, context.Canceled) {
			t.Fatalf("Step: %v, want %v", err, context.Canceled)
		}
		synctest.Wait()
		must(t, "Step", stepAll(t.Context(), db))
		if err := <-waited; err != nil {
			t.Errorf("the wait ends with %v", err)
		}
		must(t, "Close", db.Close())
	})
}

// TestReclaimOfDamage deletes rows of a full disk of whose sstables one is damaged. The reclaim must not be repeated for ever, and
// when another program has taken space, one more delete is accepted each time that the damage ends a reclaim.
func TestReclaimOfDamage(t *testing.T) {
	for range 20 {
		if reclaimOfDamage(t) {
			return
		}
	}
	t.Error("the disk is not full after any of 20 attempts")
}

// reclaimOfDamage reports false if the disk is not full after the first deletes, because a compaction of other files has ended
// before that of the damaged one.
func reclaimOfDamage(t *testing.T) (full bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		db, rows := openFullOn(t, disk, Options{FS: disk})
		synctest.Wait()
		damageFirst(t, disk)
		n := 0
		remove := func() {
			t.Helper()
			err := store.ErrCorrupt
			for ; errors.Is(err, store.ErrCorrupt) && !errors.Is(err, store.ErrNoSpace) && n < rows; n++ {
				_, err = db.Apply(t.Context(), fullTable, store.Delete(fullKey(n), store.Any))
			}
			if err != nil {
				t.Errorf("delete %d of %d: %v", n, rows, err)
			}
			synctest.Wait()
		}
		for n < rows/4 {
			remove()
		}
		if full = db.gate.Full(); !full {
			must(t, "Close", db.Close())
			return
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if failed := db.worker.Status().Failures; failed == 0 || failed > 5 {
			t.Errorf("%d reclaims fail in a minute", failed)
		}
		for i := range 4 {
			must(t, "Remove", disk.Remove(fmt.Sprintf("db/%06d.reserve", 8-i)))
		}
		disk.SetCapacity(disk.Used())
		for range 5 {
			remove()
		}
		must(t, "Close", db.Close())
	})
	return full
}

// damageFirst damages a block of the first sstable that is not small: a reclaim reads it first.
func damageFirst(t *testing.T, disk *vfs.Mem) {
	t.Helper()
	m, err := manifest.Read(disk, "db")
	must(t, "read manifest", err)
	files := slices.DeleteFunc(m.Files, func(f manifest.File) bool { return f.Size < 10_000 })
	first := slices.MinFunc(files, func(a, b manifest.File) int { return bytes.Compare(a.Smallest, b.Smallest) })
	must(t, "Patch", disk.Patch("db/"+filename.Make(filename.SSTable, first.Number), first.Size/2, []byte("damaged")))
}

// stepAll does all steps that there are.
func stepAll(ctx context.Context, db *DB) error {
	for {
		if worked, err := db.step(ctx); !worked || err != nil {
			return err
		}
	}
}

const fullTable = "Things"

// fullKey is the key of row n of openFullOn.
func fullKey(n int) edm.Key { return edm.Key{Row: fmt.Sprintf("%0500d", n)} }

// openFullOn returns a database whose disk is full, and the number of its rows.
func openFullOn(t *testing.T, disk *vfs.Mem, o Options) (db *DB, rows int) {
	t.Helper()
	disk.SetCapacity(8 << 20)
	o.SegmentBytes, o.FileBytes = 256<<10, 64<<10
	db, err := Open("db", o)
	must(t, "Open", err)
	must(t, "CreateTable", db.CreateTable(t.Context(), fullTable))
	r := rand.New(rand.NewPCG(1, 1))
	for refused := 0; refused < 5; {
		value := make([]byte, 3000)
		for i := range value {
			value[i] = byte(r.Uint32())
		}
		_, err := db.Apply(t.Context(), fullTable, store.Insert(edm.Entity{Key: fullKey(rows), Properties: edm.Properties{{Name: "B", Value: edm.Binary(value)}}}))
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
	return db, rows
}

// deletes deletes rows, one after the other.
type deletes struct {
	n     int        // deleted; read it when they have ended
	ended chan error // gets the error of the first that failed, or nil
}

// deleteUntilWaits deletes rows until a delete waits for space.
func deleteUntilWaits(t *testing.T, db *DB, rows int) *deletes {
	t.Helper()
	ctx := &waitedCtx{Context: t.Context(), done: make(chan struct{}), waits: make(chan struct{}, 100)}
	d := &deletes{ended: make(chan error, 1)}
	go func() {
		for ; d.n < rows; d.n++ {
			if _, err := db.Apply(ctx, fullTable, store.Delete(fullKey(d.n), store.Any)); err != nil {
				d.ended <- err
				return
			}
		}
		d.ended <- nil
	}()
	select {
	case err := <-d.ended:
		t.Fatalf("%d of %d deleted, no delete waited: %v", d.n, rows, err)
	case <-ctx.waits:
	}
	return d
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
