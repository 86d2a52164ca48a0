package engine

import (
	"context"
	"log/slog"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestStepFreesSegments loads entities into a database whose log is flushed. Load replaces the
// segment, which the next step must free: a process that only loads would keep it for ever.
func TestStepFreesSegments(t *testing.T) {
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	db, err := Open("db", Options{FS: vfs.NewMem(), Testing: TestHooks{Manual: true}, SegmentBytes: 64 << 10, FileBytes: 64 << 10})
	must("Open", err)
	defer func() { must("Close", db.Close()) }()
	const table = "Things"
	must("CreateTable", db.CreateTable(t.Context(), table))
	must("Flush", db.Flush(t.Context()))
	e := edm.Entity{Key: edm.Key{Partition: "p", Row: "r"}}
	before := db.log.Active()
	_, err = db.Load(t.Context(), table, func(yield func(edm.Entity, error) bool) { yield(e, nil) }, LoadOptions{})
	must("Load", err)
	if db.log.Active() == before {
		t.Fatal("Load has not replaced the segment")
	}
	if worked, err := db.Step(t.Context()); err != nil || worked {
		t.Fatalf("Step: %v, %v, want nothing to do", worked, err)
	}
	// The next segment takes the memory of the last one that was freed.
	_, err = db.Apply(t.Context(), table, store.InsertOrReplace(e))
	must("Apply", err)
	must("Freeze", db.log.Freeze())
	if &db.log.Active().Image()[0] != &before.Image()[0] {
		t.Error("the segment that Load replaced keeps its memory")
	}
}

// flushedLog is a log that calls f when a flush is durable and its memtables are not removed yet.
type flushedLog struct {
	slog.Handler
	f func()
}

// Enabled implements slog.Handler.
func (h flushedLog) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (h flushedLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "flushed memtables" {
		h.f()
	}
	return nil
}

// TestStatsDuringFlush begins a segment at the end of a flush, before the memtable is removed. Stats must count its rows once.
func TestStatsDuringFlush(t *testing.T) {
	flushed := func() {}
	logger := slog.New(flushedLog{slog.DiscardHandler, func() { flushed() }})
	db, err := Open("db", Options{FS: vfs.NewMem(), Logger: logger, Testing: TestHooks{Manual: true}, SegmentBytes: 64 << 10})
	must(t, "Open", err)
	must(t, "CreateTable", db.CreateTable(t.Context(), fullTable))
	must(t, "Flush", db.Flush(t.Context()))
	rows := 0
	insert := func() {
		value := edm.Binary(make([]byte, 1000))
		_, err := db.Apply(t.Context(), fullTable, store.Insert(edm.Entity{Key: fullKey(rows), Properties: edm.Properties{{Name: "B", Value: value}}}))
		must(t, "Apply", err)
		rows++
	}
	for range 20 {
		insert()
	}
	flushed = func() {
		for active := db.log.Active(); db.log.Active() == active; {
			insert()
		}
		stats, err := db.Stats()
		if must(t, "Stats", err); stats.Entities != int64(rows) {
			t.Errorf("%d entities, want %d", stats.Entities, rows)
		}
		flushed = func() {}
	}
	must(t, "Flush", db.Flush(t.Context()))
	must(t, "Close", db.Close())
}
