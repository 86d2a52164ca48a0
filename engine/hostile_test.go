package engine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestStrayNumbers creates empty files with the names of segments with the greatest
// numbers. The log continues after the greatest valid number. Either writes to it are
// found again, or Open fails.
func TestStrayNumbers(t *testing.T) {
	for _, name := range []string{
		"000999.wal", "99999999999999999.wal", "900000000000000000.wal", "999999999999999998.wal", "999999999999999999.wal",
		"1000000000000000000.wal", "9999999999999999999.wal", "10000000000000000000.wal", "18446744073709551614.wal",
		"18446744073709551615.wal", "99999999999999999999999.wal", "-00001.wal", "000001.wal ", "0000009.wal",
	} {
		t.Run(name, func(t *testing.T) {
			disk := vfs.NewMem()
			db := mustCreate(t, manual(disk))
			apply(t, db, store.Insert(entity("p", "before", 1, 10)))
			check(t, "Close", closeAtOnce(db))
			writeFile(t, disk, "db/"+name, nil)

			db = mustOpen(t, "db", manual(disk))
			apply(t, db, store.Insert(entity("p", "after", 2, 10)))
			want := dump(t, db, store.Query{})
			cut := disk.Clone()
			check(t, "Close", closeAtOnce(db))
			for what, fs := range map[string]vfs.FS{"closed": disk, "killed": cut} {
				again := mustOpen(t, "db", manual(fs))
				if got := dump(t, again, store.Query{}); len(got) != len(want) {
					t.Errorf("%s: %d entities, want %d", what, len(got), len(want))
				}
				check(t, "Close", closeAtOnce(again))
			}

			// In a directory without a manifest such a file is foreign, or an
			// interrupted creation left it.
			disk = vfs.NewMem()
			check(t, "MkdirAll", disk.MkdirAll("db"))
			writeFile(t, disk, "db/"+name, nil)
			db, err := engine.Open("db", manual(disk))
			if opens := name == "000999.wal"; (err == nil) != opens || err != nil && !errors.Is(err, store.ErrNotDatabase) {
				t.Errorf("Open of a new directory: %v, want it to open: %v", err, opens)
			}
			if err != nil {
				return
			}
			check(t, "CreateTable", db.CreateTable(t.Context(), table))
			again := mustOpen(t, "db", manual(disk.Clone()))
			if infos, err := again.Tables(t.Context(), "", 0); err != nil || len(infos) != 1 {
				t.Errorf("new directory, killed: tables %v, %v", infos, err)
			}
			check(t, "Close", errors.Join(closeAtOnce(db), closeAtOnce(again)))
		})
	}
}

// TestExhaustedCounters opens databases whose manifest, with a right checksum, says
// that sequence numbers, time stamps or file numbers are nearly used up. Acknowledged
// writes must be there afterwards, or the next Open must fail, which it need not do
// for time stamps and if writes were refused before the last sequence number.
func TestExhaustedCounters(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(m *manifest.Manifest)
	}{
		{"time stamps at their end", func(m *manifest.Manifest) { m.HighWater = uint64(edm.MaxTicks) }},
		{"time stamps all but used up", func(m *manifest.Manifest) { m.HighWater = uint64(edm.MaxTicks) - 3 }},
		{"time stamps beyond their end", func(m *manifest.Manifest) { m.HighWater = uint64(edm.MaxTicks) + 1 }},
		{"greatest time stamp", func(m *manifest.Manifest) { m.HighWater = 1<<63 - 1 }},
		{"negative time stamp", func(m *manifest.Manifest) { m.HighWater = 1<<64 - 1 }},
		{"sequences at their end", func(m *manifest.Manifest) { m.LastSeq = 1<<56 - 1 }},
		{"sequences all but used up", func(m *manifest.Manifest) { m.LastSeq = 1<<56 - 4 }},
		{"numbers at their end", func(m *manifest.Manifest) { m.NextFile = 1e18 }},
		{"numbers all but used up", func(m *manifest.Manifest) { m.NextFile = 1e18 - 2 }},
		{"most numbers used up", func(m *manifest.Manifest) { m.NextFile = 9e17 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			disk := vfs.NewMem()
			db := mustOpen(t, "db", manual(disk))
			check(t, "Close", closeAtOnce(db))
			m, err := manifest.Read(disk, "db")
			check(t, "read manifest", err)
			c.edit(m)
			check(t, "write manifest", manifest.Write(disk, "db", m))

			db, err = engine.Open("db", manual(disk))
			if err != nil {
				if !errors.Is(err, store.ErrCorrupt) {
					t.Errorf("Open: %v is not ErrCorrupt", err)
				}
				return
			}
			acked := 0
			if err = db.CreateTable(t.Context(), table); err == nil {
				for i := range 10 {
					if _, err = db.Apply(t.Context(), table, store.Insert(entity("p", string(rune('a'+i)), 1, 10))); err != nil {
						break
					}
					acked++
					if i%4 == 3 {
						_ = db.Flush(t.Context())
					}
				}
			}
			t.Logf("%d acknowledged, then %v", acked, err)
			got := 0
			if err == nil || acked > 0 {
				got = len(dump(t, db, store.Query{}))
			}
			if got != acked {
				t.Errorf("%d entities, %d acknowledged", got, acked)
			}
			if err := db.Close(); err != nil {
				t.Logf("Close: %v", err)
			}
			again, err := engine.Open("db", manual(disk))
			if err != nil {
				if !errors.Is(err, store.ErrCorrupt) || strings.HasPrefix(c.name, "time") || c.name == "sequences all but used up" {
					t.Errorf("Open again, with %d acknowledged: %v", acked, err)
				}
				return
			}
			if acked > 0 {
				if n := len(dump(t, again, store.Query{})); n != acked {
					t.Errorf("opened again: %d entities, %d acknowledged", n, acked)
				}
			}
			check(t, "Close", closeAtOnce(again))
		})
	}
}
