package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// readCounter counts the bytes that are read from files.
type readCounter struct {
	vfs.FS
	bytes  atomic.Int64
	onRead func() // called before each read, unless it is nil
}

func (c *readCounter) Open(name string) (vfs.File, error) {
	f, err := c.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return &countedReads{f, c}, nil
}

type countedReads struct {
	vfs.File
	c *readCounter
}

func (f *countedReads) ReadAt(p []byte, off int64) (int, error) {
	f.c.bytes.Add(int64(len(p)))
	if f.c.onRead != nil {
		f.c.onRead()
	}
	return f.File.ReadAt(p, off)
}

// TestFiltersReadColumns filters a table that is larger than the cache. Bounds exclude at most
// the last group. The first time, a filter reads the heads of all groups. The columns that it
// compared are soon in the cache and filtered without reads, by other conditions too, until the
// entities are written again.
func TestFiltersReadColumns(t *testing.T) {
	race.SkipOneGoroutine(t)
	const rows = 30_000
	fs := &readCounter{FS: vfs.NewMem()}
	o := engine.Options{FS: fs, Testing: engine.TestHooks{Manual: true}, SegmentBytes: 64 << 20, CacheBytes: 2 << 20, NoSync: true}
	db := mustCreate(t, o)
	load := func(generation int64) {
		t.Helper()
		var ops []store.Op
		for i := range int64(rows) {
			e := entity("p", fmt.Sprintf("%06d", i), i, 20)
			e.Properties = append(e.Properties,
				edm.Property{Name: "Count", Value: edm.Int32(int32(i * 7919 % 1000 * 2))}, // even
				edm.Property{Name: "Generation", Value: edm.Int64(i % 2 * 1000 * generation)},
				edm.Property{Name: "Mail", Value: edm.String(fmt.Sprintf("user%05d@example.org", i*7919%rows))},
			)
			for p := range int64(24) { // so that the heads of groups are larger than the cache
				e.Properties = append(e.Properties, edm.Property{Name: fmt.Sprint("X", p), Value: edm.Int64(i * 0x9E3779B97F4A7C1 * (p + 1))})
			}
			if ops = append(ops, store.InsertOrReplace(e)); len(ops) == 100 {
				apply(t, db, ops...)
				ops = ops[:0]
			}
		}
		check(t, "Compact", db.Compact(t.Context()))
	}
	load(1)
	run := func(text string, want int) (read int64) {
		t.Helper()
		before := fs.bytes.Load()
		n, examined := examine(t, db, store.Query{Filter: filter.MustParse(text)})
		if len(n) != want || examined > rows || examined < rows-100 { // bounds may exclude the last group
			t.Errorf("%s: %d rows of %d, want %d of %d", text, len(n), examined, want, rows)
		}
		return fs.bytes.Load() - before
	}
	// Before a column is in the cache: 6 were the most of 150 runs, whose blocks have other hashes.
	const passes = 12
	heads := run("Count eq 501", 0)
	for _, c := range []struct {
		first, again, other string
	}{
		{"Count eq 501", "Count eq 503", "Count gt 500 and Count lt 502"},
		{"Generation eq 500L", "Generation eq 600L", "Generation gt 0L and Generation lt 1000L"},
		{"Mail eq 'user15000@example.com'", "Mail eq 'user15'", "Mail gt 'user15000@example.org' and Mail lt 'user15001'"},
		{"Count eq 501 or Mail eq 'user15'", "not (Count ne 501 and Mail ne 'user15')", "Count eq 503 or Mail eq 'user14'"},
	} {
		for range passes {
			run(c.first, 0)
		}
		for _, text := range []string{c.first, c.again, c.other} {
			if read := run(text, 0); read > heads/10 {
				t.Errorf("%s reads %d bytes, and the first filter read %d", text, read, heads)
			}
		}
	}
	load(2)
	run("Generation eq 1000L", 0)
	run("Generation eq 2000L", rows/2)
	check(t, "Close", db.Close())
}

// TestFilterEndsWithContext cancels a query of which no row matches while it reads a file that is
// not in the cache: it may end the group, and reads no other.
func TestFilterEndsWithContext(t *testing.T) {
	fs := &readCounter{FS: vfs.NewMem()}
	o := engine.Options{FS: fs, Testing: engine.TestHooks{Manual: true}, SegmentBytes: 16 << 20, CacheBytes: 64 << 10, NoSync: true}
	db := mustCreate(t, o)
	for i := range 8000 {
		apply(t, db, store.InsertOrReplace(entity("p", fmt.Sprintf("%05d", i), int64(i%2*1000), 100+i%7)))
	}
	check(t, "Flush", db.Flush(t.Context()))
	for _, last := range []int{2, 9} {
		for _, byColumns := range []bool{false, true} {
			ctx, cancel := context.WithCancel(t.Context())
			reads := 0
			fs.onRead = func() {
				if reads++; reads == last {
					cancel()
				}
			}
			c := db.Query(ctx, table, store.Query{Filter: filter.MustParse("N eq 500L and Filler ne X'00'")}).(store.ColumnCursor)
			for nextColumns(c, byColumns) != nil || c.Next() {
				t.Error("a row")
			}
			if err := c.Err(); !errors.Is(err, context.Canceled) || reads > last+2 {
				t.Errorf("by columns %v: %d reads, cancelled at %d: %v", byColumns, reads, last, err)
			}
			check(t, "Close", c.Close())
		}
	}
	// Each page passes the group that it has read.
	for _, reverse := range []bool{false, true} {
		q := store.Query{Filter: filter.MustParse("N eq 500L and Filler ne X'00'"), Reverse: reverse}
		pages := 0
		for ; pages == 0 || q.From != nil; pages++ {
			ctx, cancel := context.WithCancel(t.Context())
			fs.onRead = cancel
			c := db.Query(ctx, table, q)
			for c.Next() {
				t.Error("a row")
			}
			next := c.Resume()
			check(t, "Close", c.Close())
			cancel()
			if next != nil && q.From != nil && (next.Compare(*q.From) == 0 || (next.Compare(*q.From) < 0) != reverse) {
				t.Fatalf("reverse %v: a page from %v resumes at %v", reverse, *q.From, *next)
			}
			q.From = next
		}
		if pages < 5 {
			t.Errorf("reverse %v: %d pages", reverse, pages)
		}
	}
}
