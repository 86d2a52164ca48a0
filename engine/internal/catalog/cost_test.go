package catalog

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
)

// ofSize returns a catalog of n tables.
func ofSize(tb testing.TB, n int) *Catalog {
	tb.Helper()
	rows := make([]edm.Entity, n)
	for i := range rows {
		rows[i] = table(uint32(FirstTableID+i), tableName(i)).Entity()
	}
	c, err := load(rows...)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// tableName returns the name of the i-th table. The names do not rise with i.
func tableName(i int) string { return fmt.Sprintf("Table%08x", uint32(i)*2654435761) }

// bytesOf returns the bytes that f allocates.
func bytesOf(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestChangeCost compares the bytes that a change allocates in a small and a large
// catalog. The large one may need one or two levels of the trees more.
func TestChangeCost(t *testing.T) {
	const small, large, changes = 1000, 32000, 100
	changeAll := map[string]func(c *Catalog, i int) (Change, error){
		"create":   func(c *Catalog, i int) (Change, error) { return c.Create(fmt.Sprintf("New%d", i), 1) },
		"drop":     func(c *Catalog, i int) (Change, error) { return c.Drop(tableName(i)) },
		"set meta": func(c *Catalog, i int) (Change, error) { return c.SetMeta(tableName(i), []byte("meta")) },
		"account":  func(c *Catalog, _ int) (Change, error) { return c.SetAccount([]byte("meta")), nil },
	}
	for name, change := range changeAll {
		t.Run(name, func(t *testing.T) {
			cost := func(n int) uint64 {
				c := ofSize(t, n)
				var drops Drops
				return bytesOf(func() {
					for i := range changes {
						ch, err := change(c, i)
						if err != nil {
							t.Fatal(err)
						}
						drops.Add(ch.Dropped, uint64(i), 0)
						c = ch.After
					}
				}) / changes
			}
			few, many := cost(small), cost(large)
			if many > 3*few || many > 16<<10 {
				t.Errorf("%d bytes a change with %d tables, %d bytes with %d", few, small, many, large)
			}
		})
	}
}

// TestMemoryOfTables measures the memory that the catalog needs for a table.
func TestMemoryOfTables(t *testing.T) {
	const n, most = 20000, 250
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	c := New()
	for i := range n {
		ch, err := c.Create(tableName(i), 1)
		if err != nil {
			t.Fatal(err)
		}
		c = ch.After
	}
	got := (int64(heap()) - int64(before)) / n
	runtime.KeepAlive(c)
	if got > most {
		t.Errorf("%d bytes a table, want at most %d", got, most)
	}
	t.Logf("%d bytes a table", got)
}

// BenchmarkCreate creates one table in a catalog of n tables.
func BenchmarkCreate(b *testing.B) {
	for _, n := range []int{1000, 15000, 200000} {
		c := ofSize(b, n)
		b.Run(fmt.Sprintf("tables=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Create("Another", 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkLookup looks up tables by the names of their creation.
func BenchmarkLookup(b *testing.B) {
	for _, n := range []int{1, 1000, 200000} {
		c := ofSize(b, n)
		names := make([]string, 0, n)
		for i := range n {
			names = append(names, tableName(i))
		}
		b.Run(fmt.Sprintf("tables=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if c.Lookup(names[i%n]) == nil {
					b.Fatal("no table")
				}
				i++
			}
		})
	}
}
