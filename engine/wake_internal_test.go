package engine

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestCompactWakesWriters compacts many runs of one key before a lot of other data. Writers that
// wait because of the runs must be woken when they are compacted, and not at the end.
func TestCompactWakesWriters(t *testing.T) {
	db := openBehind(t, vfs.NewMem())
	job := db.timeJob(db.tree.NewFullCompaction(), 0)
	before := db.woken()
	for db.stallCause() != "" {
		done, err := db.compactStep(context.Background(), job)
		must(t, "Step", err)
		if done {
			t.Fatal("writers wait for the end")
		}
	}
	if db.woken() == before {
		t.Error("no writer was woken")
	}
	for done := false; !done; {
		var err error
		done, err = db.compactStep(context.Background(), job)
		must(t, "Step", err)
	}
}

// woken returns how often waiting writers were woken to look for the end of their wait.
func (db *DB) woken() uint64 {
	db.work.mu.Lock()
	defer db.work.mu.Unlock()
	return db.work.work
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
	compacting, before, woken := false, uint64(0), false
	var causes []string
	db = openBehind(t, createFS{vfs.NewMem(), func() {
		if compacting {
			causes = append(causes, db.stallCause())
			woken = woken || len(causes) == 1 && db.woken() > before
		}
	}})
	compacting, before = true, db.woken()
	must(t, "Compact", db.Compact(t.Context()))
	compacting = false
	if !woken {
		t.Error("writers were not woken before the first file")
	}
	if len(causes) == 0 || slices.ContainsFunc(causes, func(c string) bool { return c != "" }) {
		t.Errorf("writers beside Compact: %q", causes)
	}
	if db.work.compacting.Load() {
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
