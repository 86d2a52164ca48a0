package engine_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// statsModel is a database and the keys of the entities of its tables.
type statsModel struct {
	*rand.Rand
	db     *engine.DB
	tables []string
	keys   map[string]map[edm.Key]bool
}

// write writes and deletes entities of a table, few keys again and again or many once.
func (m *statsModel) write(t *testing.T) {
	name := m.tables[m.IntN(len(m.tables))]
	rows, overwrite := 1<<m.IntN(12), m.IntN(2) == 0
	for range 1 + m.IntN(20) {
		partition := fmt.Sprint(m.IntN(5))
		var ops []store.Op
		taken := map[edm.Key]bool{}
		for range 1 + m.IntN(100) {
			key := edm.Key{Partition: partition, Row: fmt.Sprint(m.IntN(rows))}
			if !overwrite {
				key.Row = fmt.Sprint("new", m.Uint64())
			}
			if taken[key] {
				continue
			}
			taken[key] = true
			if m.keys[name][key] && m.IntN(4) == 0 {
				ops = append(ops, store.Delete(key, store.Any))
				delete(m.keys[name], key)
				continue
			}
			ops = append(ops, store.InsertOrReplace(entity(key.Partition, key.Row, 1, m.IntN(100))))
			m.keys[name][key] = true
		}
		_, err := m.db.Apply(t.Context(), name, ops...)
		check(t, "Apply", err)
	}
}

// load loads new entities into a table.
func (m *statsModel) load(t *testing.T) {
	name := m.tables[m.IntN(len(m.tables))]
	n := m.IntN(3000)
	first := m.Uint64()
	seq := iter.Seq2[edm.Entity, error](func(yield func(edm.Entity, error) bool) {
		for i := range n {
			e := entity("load", fmt.Sprint(first, i), 1, 50)
			if m.keys[name][e.Key] = true; !yield(e, nil) {
				return
			}
		}
	})
	_, err := m.db.Load(t.Context(), name, seq, engine.LoadOptions{})
	check(t, "Load", err)
}

func (m *statsModel) stats(t *testing.T) []store.TableStats {
	t.Helper()
	list, err := m.db.TableStats(t.Context())
	check(t, "TableStats", err)
	if len(list) != len(m.tables) {
		t.Fatalf("figures of %d tables, want %d: %+v", len(list), len(m.tables), list)
	}
	return list
}

// verify compares figures with the model. exact says that all must be exact.
func (m *statsModel) verify(t *testing.T, exact bool) (exacts int) {
	t.Helper()
	total := int64(0)
	for _, s := range m.stats(t) {
		want := int64(len(m.keys[s.Name]))
		if s.Exact && s.Entities != want || exact && !s.Exact {
			t.Errorf("table %s: %d entities, exact %t, want %d", s.Name, s.Entities, s.Exact, want)
		}
		if s.Entities < 0 || s.Bytes < 0 || want > 0 && s.Bytes == 0 {
			t.Errorf("table %s of %d entities: %+v", s.Name, want, s)
		}
		if s.Exact {
			exacts++
		}
		total += s.Bytes
	}
	all := stats(t, m.db)
	if limit := all.SSTableBytes + all.MemtableBytes; total > limit {
		t.Errorf("the tables have %d bytes, and the database %d", total, limit)
	}
	return exacts
}

// TestTableStats compares the figures of tables with a model, after random writes, loads,
// flushes and compactions, also with snapshots that keep old versions.
func TestTableStats(t *testing.T) {
	seed := testSeed(t)
	exacts := 0
	for i := range uint64(12 / stride(3)) {
		m := &statsModel{Rand: rand.New(rand.NewPCG(seed, i)), keys: map[string]map[edm.Key]bool{}}
		o := small(vfs.NewMem())
		o.Testing.Manual, o.NoSync, o.SegmentBytes = true, true, 4<<20
		m.db = mustOpen(t, "db", o)
		for j := range 1 + m.IntN(4) {
			name := fmt.Sprintf("Table%d", j)
			check(t, "CreateTable", m.db.CreateTable(t.Context(), name))
			m.tables, m.keys[name] = append(m.tables, name), map[edm.Key]bool{}
		}
		for range 10 {
			var held *engine.Snapshot
			if m.IntN(3) == 0 {
				var err error
				held, err = m.db.Snapshot()
				check(t, "Snapshot", err)
			}
			switch m.IntN(8) {
			case 0:
				m.load(t)
			case 1:
				check(t, "Compact", m.db.Compact(t.Context()))
			case 2, 3:
				check(t, "Flush", m.db.Flush(t.Context()))
			case 4:
				_, err := m.db.Step(t.Context())
				check(t, "Step", err)
			default:
				m.write(t)
			}
			exacts += m.verify(t, false)
			if held != nil {
				check(t, "Close", held.Close())
			}
		}
		check(t, "Compact", m.db.Compact(t.Context()))
		m.verify(t, true)
		if t.Failed() {
			t.Fatalf("TABLEROCK_SEED=%d go test -run '^TestTableStats$' ./engine # database %d", seed, i)
		}
	}
	if exacts == 0 {
		t.Error("no count was exact before the last Compact")
	}
}

// TestTableStatsReads counts the blocks that TableStats reads: those at the ends of tables.
func TestTableStatsReads(t *testing.T) {
	race.SkipOneGoroutine(t)
	o := manual(vfs.NewMem())
	o.NoSync, o.CacheBytes = true, 16<<20
	db := mustCreate(t, o)
	check(t, "CreateTable", db.CreateTable(t.Context(), "Second"))
	fill(t, db, "p", 5000, 200)
	check(t, "Compact", db.Compact(t.Context()))
	before := stats(t, db)
	list, err := db.TableStats(t.Context())
	check(t, "TableStats", err)
	after := stats(t, db)
	if list[0].Entities+list[1].Entities != 5000 || !list[0].Exact || !list[1].Exact {
		t.Errorf("got %+v, want 5000 entities in one table, exactly", list)
	}
	reads := after.CacheHits + after.CacheMisses - before.CacheHits - before.CacheMisses
	if most := uint64(4 * after.SSTables); reads > most {
		t.Errorf("%d look-ups of blocks, want at most %d", reads, most)
	}
}

func TestTableStatsClosed(t *testing.T) {
	db := mustCreate(t, manual(vfs.NewMem()))
	check(t, "Close", db.Close())
	if _, err := db.TableStats(t.Context()); err != store.ErrClosed {
		t.Errorf("after Close: error %v, want %v", err, store.ErrClosed)
	}
}
