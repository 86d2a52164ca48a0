package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestSpaceOfClosedSnapshots takes a snapshot before each of some overwrites and compactions.
// When all are closed, background work must remove the versions that they had kept.
func TestSpaceOfClosedSnapshots(t *testing.T) {
	race.SkipOneGoroutine(t)
	o := manual(vfs.NewMem())
	o.NoSync = true
	db := mustCreate(t, o)
	const rows = 1000
	write := func() {
		t.Helper()
		for i := range rows {
			apply(t, db, store.InsertOrReplace(entity("p", fmt.Sprintf("%04d", i), int64(i), 20)))
		}
		check(t, "Compact", db.Compact(t.Context()))
	}
	entities := func() int64 {
		t.Helper()
		s, err := db.Stats()
		check(t, "Stats", err)
		return s.Entities
	}
	write()
	var taken []*engine.Snapshot
	for range 8 {
		s, err := db.Snapshot()
		check(t, "Snapshot", err)
		taken = append(taken, s)
		write()
	}
	drain(t, db)
	if n := entities(); n < rows*int64(len(taken)) {
		t.Errorf("%d versions beside %d snapshots of %d rows", n, len(taken), rows)
	}
	for _, s := range taken {
		check(t, "Close", s.Close())
	}
	drain(t, db)
	if n := entities(); n > rows+rows/4 {
		t.Errorf("%d versions of %d rows", n, rows)
	}
}

// TestSnapshotsKeepTheirVersions takes a snapshot after each of several overwrites and
// deletes, and flushes and compacts. Each snapshot must show the rows of its time until
// it is closed.
func TestSnapshotsKeepTheirVersions(t *testing.T) {
	for _, c := range []struct {
		name string
		move func(t *testing.T, db *engine.DB)
	}{
		{"memory", func(*testing.T, *engine.DB) {}},
		{"flush", func(t *testing.T, db *engine.DB) { check(t, "Flush", db.Flush(t.Context())) }},
		{"compact", func(t *testing.T, db *engine.DB) { check(t, "Compact", db.Compact(t.Context())) }},
		{"compactions", func(t *testing.T, db *engine.DB) { check(t, "Flush", db.Flush(t.Context())); drain(t, db) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := mustCreate(t, manual(vfs.NewMem()))
			type shot struct {
				s    *engine.Snapshot
				want []string
			}
			var taken []shot
			verify := func(when string) {
				t.Helper()
				for i, m := range taken {
					if got := dump(t, m.s, store.Query{}); !slices.Equal(got, m.want) {
						t.Fatalf("%s: snapshot %d has %q\nwant %q", when, i, got, m.want)
					}
					backward := dump(t, m.s, store.Query{Reverse: true})
					slices.Reverse(backward)
					if !slices.Equal(backward, m.want) {
						t.Fatalf("%s: snapshot %d has in reverse %q\nwant %q", when, i, backward, m.want)
					}
				}
			}
			for n := range int64(8) {
				for row := range 5 {
					op := store.InsertOrReplace(entity("p", fmt.Sprint(row), n, 200))
					if (int(n)+row)%4 == 0 && n > 0 {
						op = store.Delete(edm.Key{Partition: "p", Row: fmt.Sprint(row)}, store.Any)
					}
					if _, err := db.Apply(t.Context(), table, op); err != nil && !errors.Is(err, store.ErrEntityNotFound) {
						t.Fatal(err)
					}
				}
				s, err := db.Snapshot()
				check(t, "Snapshot", err)
				taken = append(taken, shot{s, dump(t, db, store.Query{})})
				c.move(t, db)
				verify(fmt.Sprint("after overwrite ", n))
			}
			// Close those in the middle first.
			for len(taken) > 0 {
				i := len(taken) / 2
				check(t, "Close", taken[i].s.Close())
				check(t, "Close again", taken[i].s.Close())
				taken = slices.Delete(taken, i, i+1)
				c.move(t, db)
				verify(fmt.Sprint(len(taken), " left"))
			}
			want := dump(t, db, store.Query{})
			check(t, "Compact", db.Compact(t.Context()))
			stats, err := db.Stats()
			check(t, "Stats", err)
			if got := dump(t, db, store.Query{}); !slices.Equal(got, want) || stats.Entities != int64(len(want)) {
				t.Errorf("without snapshots: %d entities are stored, rows %q, want %q", stats.Entities, got, want)
			}
		})
	}
}

// TestSnapshotsKeepNoFiles takes snapshots, flushes and compacts. The files of then must be
// removed, and memory and log segments freed with them, while the snapshots are open.
func TestSnapshotsKeepNoFiles(t *testing.T) {
	disk := vfs.NewMem()
	db := mustCreate(t, manual(disk))
	var taken []*engine.Snapshot
	var want [][]string
	for range 5 {
		fill(t, db, "p", 100, 1000)
		s, err := db.Snapshot()
		check(t, "Snapshot", err)
		taken, want = append(taken, s), append(want, dump(t, db, store.Query{}))
		check(t, "Flush", db.Flush(t.Context()))
		check(t, "Compact", db.Compact(t.Context()))
		stats, err := db.Stats()
		check(t, "Stats", err)
		if ssts := files(t, disk, "db", ".sst"); len(ssts) != stats.SSTables {
			t.Errorf("with %d snapshots: the files %q, want the %d of Stats", len(taken), ssts, stats.SSTables)
		}
		// One is active, and one is kept for the next.
		if logs := files(t, disk, "db", ".wal"); len(logs) > 2 {
			t.Errorf("with %d snapshots: the segments %q, want at most 2", len(taken), logs)
		}
	}
	for i, s := range taken {
		if got := dump(t, s, store.Query{}); !slices.Equal(got, want[i]) {
			t.Errorf("snapshot %d has %d rows, want %d", i, len(got), len(want[i]))
		}
	}
	check(t, "Close", db.Close())
	if c := taken[0].Query(t.Context(), table, store.Query{}); !errors.Is(c.Err(), store.ErrClosed) {
		t.Errorf("a query after Close: %v, want %v", c.Err(), store.ErrClosed)
	}
	for _, s := range taken {
		check(t, "Close", s.Close())
	}
}

// TestDroppedTable drops a table that a snapshot and a cursor read, creates another one
// of the same name, and compacts. Each reader must see its table, and the space of the
// first table must be freed when no reader needs it.
func TestDroppedTable(t *testing.T) {
	disk := vfs.NewMem()
	db := mustCreate(t, manual(disk))
	check(t, "CreateTable", db.CreateTable(t.Context(), "Other"))
	fill(t, db, "p", 300, 1000)
	check(t, "Flush", db.Flush(t.Context()))
	want := dump(t, db, store.Query{})
	s, err := db.Snapshot()
	check(t, "Snapshot", err)
	cur := db.Query(t.Context(), table, store.Query{})
	check(t, "DeleteTable", db.DeleteTable(t.Context(), table))
	check(t, "CreateTable", db.CreateTable(t.Context(), "tHINGS"))
	fill(t, db, "new", 2, 10)
	check(t, "Compact", db.Compact(t.Context()))

	if got := dump(t, s, store.Query{}); !slices.Equal(got, want) {
		t.Errorf("the snapshot has %d rows, want %d", len(got), len(want))
	}
	if tables, err := s.Tables(t.Context(), "", 0); err != nil || len(tables) != 2 || tables[1].Name != table {
		t.Errorf("the snapshot has tables %v, %v", tables, err)
	}
	if got := dump(t, db, store.Query{}); len(got) != 2 {
		t.Errorf("the new table has %q", got)
	}
	n := 0
	for cur.Next() {
		n++
	}
	if err := cur.Err(); err != nil || n != len(want) {
		t.Errorf("the cursor returned %d rows, %v, want %d", n, err, len(want))
	}
	check(t, "Close", cur.Close())
	big, err := db.Stats()
	check(t, "Stats", err)
	check(t, "Close", s.Close())
	check(t, "Compact", db.Compact(t.Context()))
	stats, err := db.Stats()
	check(t, "Stats", err)
	if stats.Entities != 2 || stats.SSTableBytes*2 > big.SSTableBytes {
		t.Errorf("%d entities in %d bytes are left of %d bytes, want the two new ones", stats.Entities, stats.SSTableBytes, big.SSTableBytes)
	}
	// Ids are not used again, also not after a reopen.
	check(t, "DeleteTable", db.DeleteTable(t.Context(), "things"))
	check(t, "Close", db.Close())
	db = mustOpen(t, "db", manual(disk))
	check(t, "CreateTable", db.CreateTable(t.Context(), table))
	if got := dump(t, db, store.Query{}); len(got) != 0 {
		t.Errorf("a new table has rows of an old one: %q", got)
	}
	check(t, "Compact", db.Compact(t.Context()))
	if stats, err := db.Stats(); err != nil || stats.Entities != 0 {
		t.Errorf("after a reopen: %+v, %v", stats, err)
	}
}

// TestCompactFreesOnTheWay compacts a database much larger than a file and watches the
// disk. Replaced files must be removed during the compaction, not at its end.
func TestCompactFreesOnTheWay(t *testing.T) {
	race.SkipOneGoroutine(t)
	disk := vfs.NewMem()
	o := manual(disk)
	o.TierRuns = 16
	db := mustCreate(t, o)
	r := rand.New(rand.NewPCG(1, 1))
	for range 3 {
		for p := range 20 {
			for row := range 30 {
				e := entity(fmt.Sprintf("p%02d", p), fmt.Sprint(row), 0, 2000)
				noise := make([]byte, 2000)
				_, _ = source{r}.Read(noise)
				e.Properties[1].Value = edm.Binary(noise)
				apply(t, db, store.InsertOrReplace(e))
			}
		}
	}
	check(t, "Flush", db.Flush(t.Context()))
	before, peak := disk.Used(), int64(0)
	disk.OnOp(func(vfs.Op) { peak = max(peak, disk.Used()) })
	check(t, "Compact", db.Compact(t.Context()))
	disk.OnOp(nil)
	if peak > before+before/8 {
		t.Errorf("Compact took %d bytes at its peak, with %d before it and %d after", peak, before, disk.Used())
	}
}

// TestSnapshotTables lists the tables of a snapshot whose database is closed, and with a ctx that
// has ended.
func TestSnapshotTables(t *testing.T) {
	db := mustCreate(t, manual(vfs.NewMem()))
	snap, err := db.Snapshot()
	check(t, "Snapshot", err)
	defer snap.Close()
	check(t, "Close", db.Close())
	if got, err := snap.Tables(t.Context(), "", 0); err != nil || len(got) != 1 || got[0].Name != table {
		t.Errorf("Tables after Close: %v, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := snap.Tables(ctx, "", 0); !errors.Is(err, context.Canceled) || got != nil {
		t.Errorf("Tables with a ctx that has ended: %v, %v", got, err)
	}
}
