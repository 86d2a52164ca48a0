package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestFlushKeepsTimestampsRising cuts the power right after a flush, when no log is left
// that has the Timestamps, and opens the database with a clock that is an hour late. No
// Timestamp may be given out twice.
func TestFlushKeepsTimestampsRising(t *testing.T) {
	for _, noSync := range []bool{false, true} {
		for _, batch := range []int{1, 3} {
			t.Run(fmt.Sprintf("noSync=%v/batch=%d", noSync, batch), func(t *testing.T) {
				begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
				disk := vfs.NewCrashMem()
				o := manual(disk)
				o.NoSync, o.Testing.Clock = noSync, stopped{begin}
				db := mustCreate(t, o)
				var last edm.Ticks
				write := func(s store.Store, partition string) {
					t.Helper()
					var ops []store.Op
					for i := range batch {
						ops = append(ops, store.InsertOrReplace(entity(partition, fmt.Sprint(i), 0, 10)))
					}
					for _, r := range apply(t, s, ops...) {
						if r.Timestamp <= last {
							t.Errorf("Timestamp %d after %d", r.Timestamp, last)
						}
						last = r.Timestamp
					}
				}
				for round := range 4 {
					write(db, fmt.Sprint("p", round))
					check(t, "Flush", db.Flush(t.Context()))
					m, err := manifest.Read(disk, "db")
					check(t, "read manifest", err)
					if edm.Ticks(m.HighWater) < last {
						t.Errorf("the manifest states %d, the last Timestamp is %d", m.HighWater, last)
					}
					disk = disk.Crash(vfs.CrashOptions{Mode: "min"})
					o.FS, o.Testing.Clock = disk, stopped{begin.Add(-time.Hour)}
					db = mustOpen(t, "db", o)
				}
				write(db, "q")
			})
		}
	}
}

// TestClockBeforeTime creates a table and writes while the clock is before the first Timestamp. The
// next Open must find both.
func TestClockBeforeTime(t *testing.T) {
	disk := vfs.NewMem()
	o := manual(disk)
	o.Testing.Clock = stopped{time.Time{}}
	db := mustCreate(t, o)
	fill(t, db, "p", 3, 10)
	want := dump(t, db, store.Query{})
	check(t, "Close", db.Close())
	db = mustOpen(t, "db", o)
	if got := dump(t, db, store.Query{}); !slices.Equal(got, want) {
		t.Errorf("after Open %q, want %q", got, want)
	}
	infos, err := db.Tables(t.Context(), "", 0)
	if err != nil || len(infos) != 1 || infos[0].Created != edm.MinTicks {
		t.Errorf("tables %v, %v", infos, err)
	}
}
