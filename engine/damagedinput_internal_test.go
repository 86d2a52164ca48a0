package engine

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestWritesBesideDamagedInput damages a block that each compaction needs. Flushes must go on, and
// writers must not be refused before there are too many runs. The failures and the refusals must not
// fill the log.
func TestWritesBesideDamagedInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		var stalled atomic.Int64
		db, err := Open("db", Options{
			FS: disk, SegmentBytes: 64 << 10, FileBytes: 64 << 10, TierRuns: 2,
			Logger: slog.New(sharedCounts{counts: map[string]*atomic.Int64{"write stall begins": &stalled}}),
		})
		must(t, "Open", err)
		defer func() { must(t, "Close", db.Close()) }()
		const table = "Things"
		must(t, "CreateTable", db.CreateTable(t.Context(), table))
		rnd := rand.NewChaCha8([32]byte{})
		written := 0
		write := func() error {
			b := make([]byte, 1500)
			_, _ = rnd.Read(b)
			key := edm.Key{Partition: "p", Row: fmt.Sprintf("%03d", written*7%1000)}
			_, err := db.Apply(t.Context(), table, store.InsertOrReplace(edm.Entity{Key: key, Properties: edm.Properties{{Name: "B", Value: edm.Binary(b)}}}))
			written++
			return err
		}
		for range 2 { // the first file is moved to the bottom, and the second one overlaps it
			for range 30 {
				must(t, "Apply", write())
			}
			must(t, "Flush", db.Flush(t.Context()))
			synctest.Wait()
		}
		m, err := manifest.Read(disk, "db")
		must(t, "read manifest", err)
		for _, f := range m.Files {
			must(t, "Patch", disk.Patch("db/"+filename.Make(filename.SSTable, f.Number), f.Size/2, []byte("damaged")))
		}
		for range 300 { // some 8 segments
			if err := write(); err != nil {
				t.Fatalf("write %d: %v", written, err)
			}
		}
		synctest.Wait()
		already := db.worker.Status().Failures
		if already == 0 {
			t.Fatal("no compaction has failed")
		}
		if already > 3 {
			t.Errorf("%d compactions fail in no time", already)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := db.worker.Status().Failures - already; n == 0 || n > 70 {
			t.Errorf("%d compactions fail in an hour", n)
		}
		before := stalled.Load()
		refused, first := 0, 0
		for i := range 2000 {
			if write() != nil {
				if refused++; first == 0 {
					first = i
				}
			}
		}
		if first < 400 { // with a flush of each segment of 40 rows, as soon as there are too many runs
			t.Errorf("write %d is refused", first)
		}
		if n := stalled.Load() - before; refused < 100 || n > 25 {
			t.Errorf("%d refused writes, and the log has %d stalls", refused, n)
		}
	})
}

// sharedCounts counts the log records with some messages.
type sharedCounts struct {
	slog.Handler
	counts map[string]*atomic.Int64
}

// Enabled implements slog.Handler.
func (sharedCounts) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (h sharedCounts) Handle(_ context.Context, r slog.Record) error {
	if n := h.counts[r.Message]; n != nil {
		n.Add(1)
	}
	return nil
}
