package engine_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// twoFiles returns a closed database of two sstables: one has the catalog and partition
// "p", which Open reads, and the other one has partition "q".
func twoFiles(t *testing.T) (disk *vfs.Mem, other string) {
	t.Helper()
	disk = vfs.NewMem()
	db := mustCreate(t, manual(disk))
	fill(t, db, "p", 6, 1000)
	check(t, "Flush", db.Flush(t.Context()))
	fill(t, db, "q", 6, 1000)
	check(t, "Close", db.Close())
	names := files(t, disk, "db", ".sst")
	if len(names) != 2 {
		t.Fatalf("sstables are %v, want 2", names)
	}
	return disk, names[1]
}

// TestFirstUseOfDamagedFile damages the header or footer of an sstable that Open does not
// read. What needs the file fails and names it, and all else works.
func TestFirstUseOfDamagedFile(t *testing.T) {
	disk, name := twoFiles(t)
	size := len(readFile(t, disk, "db/"+name))
	flip := func(off int) func(*testing.T, *vfs.Mem) {
		return func(t *testing.T, disk *vfs.Mem) {
			b := readFile(t, disk, "db/"+name)
			check(t, "Patch", disk.Patch("db/"+name, int64(off), []byte{b[off] ^ 4}))
		}
	}
	version := binary.LittleEndian.AppendUint32(nil, 1000)
	for _, c := range []struct {
		name   string
		damage func(*testing.T, *vfs.Mem)
		want   error
	}{
		{"magic", flip(0), store.ErrCorrupt},
		{"header", flip(20), store.ErrCorrupt},
		{"footer", flip(size - 1), store.ErrCorrupt},
		{"newer version", func(t *testing.T, disk *vfs.Mem) {
			patch(t, disk, "db/"+name, 0, 48, 8, version)
			patch(t, disk, "db/"+name, -184, 0, -24, version)
		}, store.ErrNewerFormat},
	} {
		for _, readOnly := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/readonly=%v", c.name, readOnly), func(t *testing.T) {
				disk := disk.Clone()
				c.damage(t, disk)
				before := readFile(t, disk, "db/"+name)
				o := manual(disk)
				o.ReadOnly = readOnly
				db := mustOpen(t, "db", o)
				if _, err := db.Get(t.Context(), table, edm.Key{Partition: "p", Row: "000001"}); err != nil {
					t.Errorf("Get from the other sstable: %v", err)
				}
				key := edm.Key{Partition: "q", Row: "000001"}
				calls := map[string]error{}
				_, calls["Get"] = db.Get(t.Context(), table, key)
				for _, f := range []string{"", "N ge 0", "N eq 1000"} {
					for _, reverse := range []bool{false, true} {
						q := store.Query{Filter: filter.MustParse(f), Reverse: reverse}
						cursor := db.Query(t.Context(), table, q)
						for cursor.Next() {
						}
						calls[fmt.Sprintf("Query %q, reverse=%v", f, reverse)] = errors.Join(cursor.Err(), cursor.Close())
					}
				}
				if !readOnly {
					_, calls["Merge"] = db.Apply(t.Context(), table, store.Merge(edm.Entity{Key: key}, store.Any))
					apply(t, db, store.Insert(entity("p", "new", 1, 10)))
				}
				for call, err := range calls {
					var damage *store.CorruptError
					if !errors.Is(err, c.want) || errors.As(err, &damage) && damage.File != name || !strings.Contains(fmt.Sprint(err), name) {
						t.Errorf("%s: %v, want %v of %s", call, err, c.want, name)
					}
				}
				report, err := db.Verify(t.Context())
				if c.want == store.ErrCorrupt && (err != nil || len(report.Findings) == 0 || report.Findings[0].File != name) ||
					c.want != store.ErrCorrupt && !errors.Is(err, c.want) {
					t.Errorf("Verify: %v, %v, want %v of %s", report, err, c.want, name)
				}
				_ = db.Close()
				if string(readFile(t, disk, "db/"+name)) != string(before) {
					t.Error("the sstable has changed")
				}
			})
		}
	}
}

// TestOpenReadsFewFiles counts the sstables that Open reads: the one with the catalog.
func TestOpenReadsFewFiles(t *testing.T) {
	race.SkipOneGoroutine(t)
	disk := vfs.NewMem()
	o := engine.Options{FS: disk, TierRuns: 8, FileBytes: 64 << 10, CacheBytes: 1 << 20, Testing: engine.TestHooks{Manual: true}}
	db := mustCreate(t, o)
	loadNew(t, db, 6, 6000)
	check(t, "Close", db.Close())
	read := map[string]bool{}
	o.FS = errorfs.Wrap(disk, func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "read" && strings.HasSuffix(op.Name, ".sst") {
			read[op.Name] = true
		}
		return nil
	})
	check(t, "Close", mustOpen(t, "db", o).Close())
	if all := files(t, disk, "db", ".sst"); len(read) != 1 || len(all) < 20 {
		t.Errorf("Open reads %v of %d sstables, want 1", read, len(all))
	}
}

// TestDamagedFileHidesOlderRows damages the footer of an sstable whose rows hide older ones
// of another sstable. A query returns the error and none of the older rows.
func TestDamagedFileHidesOlderRows(t *testing.T) {
	disk := vfs.NewMem()
	o := engine.Options{FS: disk, TierRuns: 8, CacheBytes: 1 << 20, Testing: engine.TestHooks{Manual: true}}
	db := mustCreate(t, o)
	fill(t, db, "p", 2000, 10)
	check(t, "Flush", db.Flush(t.Context()))
	before := files(t, disk, "db", ".sst")
	for i := range 2000 {
		apply(t, db, store.InsertOrReplace(entity("p", fmt.Sprintf("%06d", i), int64(i)+10_000, 10)))
	}
	check(t, "Close", db.Close())
	for _, name := range files(t, disk, "db", ".sst")[len(before):] {
		b := readFile(t, disk, "db/"+name)
		check(t, "Patch", disk.Patch("db/"+name, int64(len(b)-1), []byte{b[len(b)-1] ^ 4}))
	}
	for _, f := range []string{"", "N lt 10000", "N eq 1500", "PartitionKey eq 'p' and N lt 10000"} {
		for _, reverse := range []bool{false, true} {
			db := mustOpen(t, "db", o)
			cursor := db.Query(t.Context(), table, store.Query{Filter: filter.MustParse(f), Reverse: reverse})
			for cursor.Next() {
				t.Fatalf("filter %q, reverse=%v: row %v, which a newer one hides", f, reverse, cursor.Row().Key())
			}
			if err := errors.Join(cursor.Err(), cursor.Close()); !errors.Is(err, store.ErrCorrupt) {
				t.Errorf("filter %q, reverse=%v: %v, want %v", f, reverse, err, store.ErrCorrupt)
			}
			check(t, "Close", closeAtOnce(db))
		}
	}
}
