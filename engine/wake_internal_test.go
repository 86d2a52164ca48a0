package engine

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine/internal/worker"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestCompactWakesWriters compacts many runs of one key before a lot of other data. Writers that
// wait because of the runs must be woken when they are compacted, and not at the end.
func TestCompactWakesWriters(t *testing.T) {
	db := openBehind(t, vfs.NewMem())
	job := db.timeJob(db.tree.NewFullCompaction(), 0)
	woken := wakes(t, db)
	for db.stallCause() != "" {
		done, err := db.compactStep(context.Background(), job)
		must(t, "Step", err)
		if done {
			t.Fatal("writers wait for the end")
		}
	}
	if !woken() {
		t.Error("no writer was woken")
	}
	for done := false; !done; {
		var err error
		done, err = db.compactStep(context.Background(), job)
		must(t, "Step", err)
	}
}

// wakes starts a writer's wait. woken reports whether the writer was woken to look for the end of it, or is so soon.
func wakes(t *testing.T, db *DB) (woken func() bool) {
	looks, ended := make(chan struct{}, 1), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(ended)
		_ = db.worker.Wait(ctx, func(worker.Status) (bool, error) {
			select {
			case looks <- struct{}{}:
			default:
			}
			return false, nil
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	<-looks // before it waits
	return func() bool {
		select {
		case <-looks:
			return true
		case <-time.After(time.Minute):
			return false
		}
	}
}

// createFS calls created before it creates a file.
type createFS struct {
	vfs.FS
	created func()
}

func (fs createFS) Create(name string) (vfs.File, error) {
	fs.created()
	return fs.FS.Create(name)
}

// TestWritersBesideCompact compacts so many runs that writers wait. Beside Compact they must
// not, because they would wait for its end. Those that wait when it begins must be woken.
func TestWritersBesideCompact(t *testing.T) {
	var db *DB
	compacting, woken := false, func() bool { return false }
	var causes []string
	db = openBehind(t, createFS{vfs.NewMem(), func() {
		if compacting {
			causes = append(causes, db.stallCause())
			if len(causes) == 1 && !woken() {
				t.Error("writers were not woken before the first file")
			}
		}
	}})
	compacting, woken = true, wakes(t, db)
	must(t, "Compact", db.Compact(t.Context()))
	compacting = false
	if len(causes) == 0 || slices.ContainsFunc(causes, func(c string) bool { return c != "" }) {
		t.Errorf("writers beside Compact: %q", causes)
	}
	if db.steps.compacting.Load() {
		t.Error("Compact has ended, and the limit of runs is that beside it")
	}
}

func must(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// openBehind returns a database with so many runs of one key that writers wait, before a lot of
// other data.
func openBehind(t *testing.T, fs vfs.FS) *DB {
	t.Helper()
	db, err := Open("db", Options{FS: fs, Testing: TestHooks{Manual: true}, SegmentBytes: 64 << 10, FileBytes: 64 << 10, TierRuns: 16})
	must(t, "Open", err)
	t.Cleanup(func() { must(t, "Close", db.Close()) })
	const table = "Things"
	must(t, "CreateTable", db.CreateTable(t.Context(), table))
	load := func(rows, step int) {
		_, err := db.Load(t.Context(), table, func(yield func(edm.Entity, error) bool) {
			for i := 0; i < rows; i += step {
				e := edm.Entity{Key: edm.Key{Partition: fmt.Sprintf("z%04d", i)}, Properties: edm.Properties{{Name: "B", Value: edm.Binary(make([]byte, 2000))}}}
				if !yield(e, nil) {
					return
				}
			}
		}, LoadOptions{})
		must(t, "Load", err)
	}
	load(4000, 1)
	load(4000, 10) // so that all of the first is compacted
	for n := range maxRuns {
		_, err := db.Apply(t.Context(), table, store.InsertOrReplace(edm.Entity{
			Key: edm.Key{Partition: "a"}, Properties: edm.Properties{{Name: "N", Value: edm.Int32(int32(n))}},
		}))
		must(t, "Apply", err)
		must(t, "Flush", db.Flush(t.Context()))
	}
	if db.stallCause() == "" {
		t.Fatal("writers need not wait")
	}
	return db
}
