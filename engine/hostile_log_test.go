package engine_test

import (
	"errors"
	"fmt"
	"math"
	"path"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/engine/internal/catalog"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/wal"
)

// craft returns a database whose log has the entities as rows of a table, with right
// checksums and without the checks of the engine.
func craft(t *testing.T, tableID uint32, entities ...edm.Entity) *vfs.Mem {
	t.Helper()
	disk := vfs.NewMem()
	check(t, "Close", closeAtOnce(mustOpen(t, "db", manual(disk))))
	m, err := manifest.Read(disk, "db")
	check(t, "read manifest", err)
	h := wal.Header{DBID: m.DBID, Number: m.NextFile, FirstSeq: m.LastSeq + 1}
	s, err := wal.New(h, make([]byte, 8<<20))
	check(t, "new segment", err)
	check(t, "open segment", s.Open(disk, path.Join("db", filename.Make(filename.WAL, h.Number)), wal.CreateOptions{}))
	for i, e := range entities {
		shape := codec.NewShape(e.Properties)
		values, wide := codec.AppendValues(nil, shape, e.Properties)
		p := codec.AppendEntry(nil, codec.Entry{Kind: codec.KindShape, Shape: uint16(i + 1), Values: codec.AppendShape(nil, shape)})
		p = codec.AppendEntry(p, codec.Entry{
			Kind: codec.KindPut, Shape: uint16(i + 1), Wide: wide, Timestamp: e.Timestamp,
			Key: codec.AppendKey(nil, tableID, e.Key.Partition, e.Key.Row), Values: values,
		})
		payload, _, ok := s.Begin(len(p))
		if !ok {
			t.Fatal("the segment is full")
		}
		copy(payload, p)
		s.Commit(wal.Record{FirstSeq: h.FirstSeq + uint64(i), Count: 1})
	}
	check(t, "seal", s.Seal())
	check(t, "close segment", s.Close())
	check(t, "SyncDir", disk.SyncDir("db"))
	return disk
}

// TestCraftedCatalog opens databases with invalid or extreme catalogs. Tables that are
// created in them must be there afterwards.
func TestCraftedCatalog(t *testing.T) {
	named := func(id uint32, name string) edm.Entity {
		return (&catalog.Table{ID: id, Name: name}).Entity()
	}
	for _, c := range []struct {
		name  string
		rows  []edm.Entity
		opens bool
	}{
		{"last id", []edm.Entity{named(catalog.MaxTableID, "Last")}, true},
		{"last id but one", []edm.Entity{named(catalog.MaxTableID-1, "Last")}, true},
		{"an id too large", []edm.Entity{named(catalog.MaxTableID+1, "Last")}, false},
		{"next id is the last", []edm.Entity{catalog.NextEntity(math.MaxUint32 - 1)}, true},
		{"no id fits", []edm.Entity{catalog.NextEntity(math.MaxUint32)}, false},
		{"id of the catalog", []edm.Entity{named(0, "Zero")}, false},
		{"an id twice", []edm.Entity{named(16, "One"), named(16, "Two")}, false},
		{"a path", []edm.Entity{named(16, "../../etc/passwd")}, false},
		{"no name", []edm.Entity{named(16, "")}, false},
		{"a reserved name", []edm.Entity{named(16, "Tables")}, false},
		{"meta of another type", []edm.Entity{{
			Key: edm.Key{Partition: "account"}, Properties: edm.Properties{{Name: "Meta", Value: edm.Int64(5)}},
		}}, true},
		{"account without meta", []edm.Entity{{Key: edm.Key{Partition: "account"}}}, true},
		{"unknown partition", []edm.Entity{{Key: edm.Key{Partition: "accounts"}}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			disk := craft(t, catalog.TableID, c.rows...)
			db, err := engine.Open("db", manual(disk))
			if (err == nil) != c.opens || err != nil && !errors.Is(err, store.ErrCorrupt) {
				t.Errorf("Open: %v", err)
			}
			if err != nil {
				return
			}
			var made []string
			for i := range 4 {
				name := fmt.Sprint("Made", i)
				if err := db.CreateTable(t.Context(), name); err != nil {
					t.Logf("CreateTable: %v", err)
					continue
				}
				made = append(made, name)
				_, err := db.Apply(t.Context(), name, store.Insert(entity("p", "r", 1, 10)))
				check(t, "Apply", err)
			}
			if _, err := db.AccountMeta(t.Context()); err != nil {
				t.Errorf("AccountMeta: %v", err)
			}
			check(t, "Close", closeAtOnce(db))
			db = mustOpen(t, "db", manual(disk))
			for _, name := range made {
				if _, err := db.Get(t.Context(), name, edm.Key{Partition: "p", Row: "r"}); err != nil {
					t.Errorf("table %s: %v", name, err)
				}
			}
			check(t, "Close", closeAtOnce(db))
		})
	}
}

// TestCraftedTimestamps opens a database whose log has an entity with the greatest time
// stamp.
func TestCraftedTimestamps(t *testing.T) {
	row := (&catalog.Table{ID: 16, Name: table}).Entity()
	row.Timestamp = edm.MaxTicks
	disk := craft(t, catalog.TableID, row)
	for range 2 {
		db := mustOpen(t, "db", manual(disk))
		if _, err := db.Apply(t.Context(), table, store.Insert(entity("p", "r", 1, 10))); !errors.Is(err, store.ErrReadOnly) {
			t.Errorf("Apply: %v, want ErrReadOnly", err)
		}
		check(t, "Close", closeAtOnce(db))
	}
}

// TestCraftedValues opens databases whose log has values that Apply refuses. Open must
// refuse those that an sstable cannot store.
func TestCraftedValues(t *testing.T) {
	const mib = 1 << 20
	zeros := make([]byte, 5*mib)
	for _, c := range []struct {
		name  string
		props edm.Properties
		opens bool
	}{
		{"binary of 1 MiB", edm.Properties{{Name: "B", Value: edm.Binary(zeros[:mib])}}, true},
		{"binary above 1 MiB", edm.Properties{{Name: "B", Value: edm.Binary(zeros[:mib+1])}}, false},
		{"string above 1 MiB", edm.Properties{{Name: "S", Value: edm.StringBytes(zeros[:mib+1])}, {Name: "N", Value: edm.Int32(1)}}, false},
		{"two of 1 MiB", edm.Properties{{Name: "B", Value: edm.Binary(zeros[:mib])}, {Name: "S", Value: edm.StringBytes(zeros[:mib])}}, true},
		{"three of 1 MiB", edm.Properties{
			{Name: "A", Value: edm.Binary(zeros[:mib])}, {Name: "B", Value: edm.Binary(zeros[:mib])}, {Name: "C", Value: edm.Binary(zeros[:mib])},
		}, false},
		{"5 MiB", edm.Properties{{Name: "B", Value: edm.Binary(zeros)}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			key := edm.Key{Partition: "p", Row: "r"}
			disk := craft(t, neverGiven, edm.Entity{Key: key, Properties: c.props})
			db, err := engine.Open("db", manual(disk))
			if (err == nil) != c.opens || err != nil && !errors.Is(err, store.ErrCorrupt) {
				t.Fatalf("Open: %v", err)
			}
			if err != nil {
				return
			}
			check(t, "Flush", db.Flush(t.Context()))
			check(t, "Compact", db.Compact(t.Context()))
			report, err := db.Verify(t.Context())
			if err != nil || len(report.Findings) > 0 {
				t.Errorf("Verify: %v, %v", report.Findings, err)
			}
			check(t, "Close", closeAtOnce(db))
			check(t, "Close", closeAtOnce(mustOpen(t, "db", manual(disk))))
		})
	}
}

// neverGiven is below the ids of tables.
const neverGiven = catalog.FirstTableID - 1

// TestEntitiesBeforeTheirTable opens a database whose log has entities with the id of
// the table that would be created next.
func TestEntitiesBeforeTheirTable(t *testing.T) {
	disk := craft(t, catalog.FirstTableID, edm.Entity{Key: edm.Key{Partition: "p", Row: "r"}})
	for _, readOnly := range []bool{true, false} {
		o := manual(disk)
		o.ReadOnly = readOnly
		if _, err := engine.Open("db", o); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("read-only %v: Open: %v, want ErrCorrupt", readOnly, err)
		}
	}
}
