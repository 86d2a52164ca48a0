package engine_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestOutdatedManifest restores an earlier manifest. Later writes are in sstables that
// it does not list. Open must notice that, and not take these files for leftovers of
// a crash.
func TestOutdatedManifest(t *testing.T) {
	ctx := t.Context()
	flushed := func(t *testing.T, db *engine.DB, partition string) {
		t.Helper()
		fill(t, db, partition, 20, 500)
		check(t, "Flush", db.Flush(ctx))
	}
	for _, c := range []struct {
		name           string
		before, behind func(t *testing.T, db *engine.DB)
	}{
		{"of a new database", func(*testing.T, *engine.DB) {}, func(t *testing.T, db *engine.DB) {
			t.Helper()
			check(t, "CreateTable", db.CreateTable(ctx, table))
			flushed(t, db, "p")
		}},
		{"of a new database, before a compaction", func(*testing.T, *engine.DB) {}, func(t *testing.T, db *engine.DB) {
			t.Helper()
			check(t, "CreateTable", db.CreateTable(ctx, table))
			fill(t, db, "p", 20, 500)
			check(t, "Compact", db.Compact(ctx)) // the file has no sequence numbers then
		}},
		{"before a flush", func(t *testing.T, db *engine.DB) {
			t.Helper()
			check(t, "CreateTable", db.CreateTable(ctx, table))
			flushed(t, db, "p")
		}, func(t *testing.T, db *engine.DB) {
			t.Helper()
			flushed(t, db, "q")
		}},
		{"before deletions", func(t *testing.T, db *engine.DB) {
			t.Helper()
			check(t, "CreateTable", db.CreateTable(ctx, table))
			flushed(t, db, "p")
		}, func(t *testing.T, db *engine.DB) {
			t.Helper()
			apply(t, db, store.Delete(entity("p", "000003", 0, 0).Key, store.Any)) // tombstones have no time stamps
			check(t, "Flush", db.Flush(ctx))
		}},
		{"before a load", func(t *testing.T, db *engine.DB) {
			t.Helper()
			check(t, "CreateTable", db.CreateTable(ctx, table))
			flushed(t, db, "p")
		}, func(t *testing.T, db *engine.DB) {
			t.Helper()
			_, err := db.Load(ctx, table, sequence([]edm.Entity{entity("q", "r", 1, 10)}), engine.LoadOptions{})
			check(t, "Load", err)
		}},
		{"before compactions", func(t *testing.T, db *engine.DB) {
			t.Helper()
			check(t, "CreateTable", db.CreateTable(ctx, table))
			flushed(t, db, "p")
		}, func(t *testing.T, db *engine.DB) {
			t.Helper()
			for i := range 3 {
				flushed(t, db, fmt.Sprint("q", i))
			}
			for worked := true; worked; {
				var err error
				worked, err = db.Step(ctx)
				check(t, "Step", err)
			}
		}},
	} {
		for _, noSync := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, no sync %v", c.name, noSync), func(t *testing.T) {
				disk := vfs.NewMem()
				o := manual(disk)
				o.NoSync = noSync
				db := mustOpen(t, "db", o)
				c.before(t, db)
				old, err := vfs.ReadFile(disk, "db/MANIFEST", 1<<20)
				check(t, "read manifest", err)
				c.behind(t, db)
				check(t, "Close", closeAtOnce(db))
				check(t, "remove manifest", disk.Remove("db/MANIFEST"))
				writeFile(t, disk, "db/MANIFEST", old)
				before := contents(t, disk)
				for _, readOnly := range []bool{true, false} {
					o.ReadOnly = readOnly
					if _, err := engine.Open("db", o); !errors.Is(err, store.ErrCorrupt) {
						t.Errorf("for reading %v: Open: %v, want damage", readOnly, err)
					}
				}
				if after := contents(t, disk); fmt.Sprint(after) != fmt.Sprint(before) {
					t.Error("files changed")
				}
			})
		}
	}
}

// contents returns the files of the database, without LOCK.
func contents(t *testing.T, disk *vfs.Mem) map[string]string {
	t.Helper()
	names, err := disk.List("db")
	check(t, "List", err)
	all := map[string]string{}
	for _, name := range names {
		if name == "LOCK" {
			continue
		}
		b, err := vfs.ReadFile(disk, "db/"+name, 1<<30)
		check(t, "ReadFile", err)
		all[name] = string(b)
	}
	return all
}
