package scan_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres"
	"github.com/tablerock-db/tablerock/store/postgres/internal/layout"
	"github.com/tablerock-db/tablerock/store/postgres/internal/scan"
	"github.com/tablerock-db/tablerock/store/postgres/pgtest"
	"github.com/tablerock-db/tablerock/store/storetest"
)

const people = "People"

// backend is the store of an account of a new database.
type backend struct {
	*postgres.Store
	url    string
	shapes layout.Shapes
}

func open(tb testing.TB) *backend {
	tb.Helper()
	ctx := tb.Context()
	url := pgtest.Shared(tb).NewDatabase(tb)
	o := &postgres.Options{AllowAsync: true}
	if err := postgres.Init(ctx, url, o); err != nil {
		tb.Fatal(err)
	}
	d, err := postgres.Connect(ctx, url, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := d.Close(); err != nil {
			tb.Error(err)
		}
	})
	s, err := d.Account(ctx, "acme")
	if err != nil {
		tb.Fatal(err)
	}
	if err := s.CreateTable(ctx, people); err != nil {
		tb.Fatal(err)
	}
	return &backend{Store: s, url: url}
}

func (b *backend) run(tb testing.TB, sql string) {
	tb.Helper()
	pgtest.Exec(tb, b.url, sql)
}

// put stores entities with their Timestamps.
func (b *backend) put(tb testing.TB, list ...edm.Entity) {
	tb.Helper()
	for len(list) > 0 {
		n := min(len(list), 500)
		var sql strings.Builder
		for _, e := range list[:n] {
			at := layout.KeyOf(e.Key)
			table, h, hash := "tr_entities", "", ""
			if at.H != nil {
				table, h, hash = "tr_long", "h, ", fmt.Sprintf(`'\x%x', `, at.H)
				sql.WriteString("UPDATE tr_tables SET long = true;")
			}
			fmt.Fprintf(&sql, `INSERT INTO %s (tid, %sp, r, ts, v) SELECT id, %s'\x%x', '\x%x', %d, '\x%x' FROM tr_tables;`,
				table, h, hash, at.P, at.R, e.Timestamp, b.shapes.AppendValue(nil, e.Properties, false))
		}
		b.run(tb, sql.String())
		list = list[n:]
	}
}

// page is what a cursor returned.
type page struct {
	Rows     []edm.Entity
	Resume   *edm.Key
	Examined int
}

func read(tb testing.TB, c store.Cursor) page {
	tb.Helper()
	var p page
	for c.Next() {
		p.Rows = append(p.Rows, edm.EntityOf(c.Row()))
	}
	if err := errors.Join(c.Err(), c.Close()); err != nil {
		tb.Fatal(err)
	}
	p.Resume = c.Resume()
	if e, ok := c.(store.Examiner); ok {
		p.Examined = e.Examined()
	}
	return p
}

// TestQueryRandom compares pages with those of the map of storetest, for keys of all lengths
// and chunks of few rows.
func TestQueryRandom(t *testing.T) {
	t.Parallel()
	s := open(t)
	oracle := storetest.NewMap(func() edm.Ticks { return 1 })
	if err := oracle.CreateTable(t.Context(), people); err != nil {
		t.Fatal(err)
	}
	const seed = 1
	rnd := rand.New(rand.NewPCG(seed, 1))
	var keys []edm.Key
	seen := map[edm.Key]bool{}
	for range 300 {
		k := edm.Key{Partition: randomComponent(rnd), Row: randomComponent(rnd)}
		if rnd.IntN(3) == 0 && len(keys) > 0 {
			k.Partition = keys[rnd.IntN(len(keys))].Partition
		}
		if seen[k] {
			continue
		}
		seen[k] = true
		keys = append(keys, k)
		e := edm.Entity{Key: k, Properties: edm.Properties{{Name: "N", Value: edm.Int32(rnd.Int32N(10))}}}
		if rnd.IntN(2) == 0 {
			e.Properties = append(e.Properties, edm.Property{Name: "S", Value: edm.String(strings.Repeat("x", rnd.IntN(100)))})
		}
		results, err := oracle.Apply(t.Context(), people, store.Insert(e))
		if err != nil {
			t.Fatal(err)
		}
		e.Timestamp = results[0].Timestamp
		s.put(t, e)
	}
	queries := 80
	if testing.Short() {
		queries = 20
	}
	for range queries {
		q := randomQuery(rnd, keys)
		for n := 0; ; n++ {
			c := s.Query(t.Context(), people, q)
			c.(*scan.Cursor).LimitRows(scan.MinChunkRows)
			got, want := read(t, c), read(t, oracle.Query(t.Context(), people, q))
			if got.Examined < len(got.Rows) || q.Budget > 0 && got.Examined > q.Budget {
				t.Errorf("seed %d, query %+v: examined %d", seed, q, got.Examined)
			}
			got.Examined = 0
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("seed %d, query %+v, page %d, filter %v:\n%s", seed, q, n, q.Filter, d)
			}
			if q.From = got.Resume; q.From == nil {
				break
			}
		}
	}
}

// randomComponent returns a key component, of which some are too long for the index of
// tr_entities, and some differ only behind the prefixes in the index of tr_long.
func randomComponent(rnd *rand.Rand) string {
	tail := []string{"", "a", "b", "\u8868", "\U0001F600", "\uffff"}[rnd.IntN(6)]
	switch rnd.IntN(6) {
	case 0:
		return strings.Repeat("\u8868", 399+rnd.IntN(3)) + tail
	case 1:
		return strings.Repeat("\u8868", 900) + tail
	case 2:
		return strings.Repeat("\U0001F600", 300) + tail
	}
	return fmt.Sprint(rnd.IntN(5)) + tail
}

func randomQuery(rnd *rand.Rand, keys []edm.Key) store.Query {
	bound := func() filter.Bound {
		b := filter.Bound{Kind: filter.BoundKind(rnd.IntN(5))}
		if b.Kind != filter.Unbounded {
			b.Key = keys[rnd.IntN(len(keys))]
		}
		return b
	}
	q := store.Query{Reverse: rnd.IntN(2) == 0}
	if rnd.IntN(2) == 0 {
		q.Limit = 1 + rnd.IntN(40)
	}
	if rnd.IntN(3) == 0 {
		q.Budget = 1 + rnd.IntN(60)
	}
	if rnd.IntN(2) == 0 {
		k := keys[rnd.IntN(len(keys))]
		k.Row += []string{"", "\x00", " "}[rnd.IntN(3)]
		q.From = &k
	}
	if rnd.IntN(3) > 0 {
		q.Filter = filter.Keys(bound(), bound())
	}
	if rnd.IntN(3) == 0 {
		q.Filter = filter.And(q.Filter, filter.MustParse("N lt 5 or S gt ''"))
	}
	if rnd.IntN(3) == 0 {
		q.Select = [][]string{{}, {"S"}, {"N", "S"}, {"Other"}}[rnd.IntN(4)]
	}
	return q
}

// TestQueryLongRows reads rows of up to more than 1 MiB, with short keys and with long ones of
// one prefix, and checks that the cursor holds only some of them.
func TestQueryLongRows(t *testing.T) {
	race.SkipOneGoroutine(t)
	t.Parallel()
	for _, prefix := range []string{"", strings.Repeat("\u8868", 900)} {
		s := open(t)
		list := longRows(prefix)
		for _, e := range list {
			s.put(t, e)
		}
		for _, reverse := range []bool{false, true} {
			want := slices.Clone(list)
			if reverse {
				slices.Reverse(want)
			}
			c := s.Query(t.Context(), people, store.Query{Reverse: reverse}).(*scan.Cursor)
			n, most := 0, 0
			for ; c.Next(); n++ {
				if d := cmp.Diff(want[n], edm.EntityOf(c.Row())); d != "" {
					t.Fatalf("row %d: %.1000s", n, d)
				}
				most = max(most, c.Buffered())
			}
			if err := errors.Join(c.Err(), c.Close()); err != nil {
				t.Fatal(err)
			}
			if n != len(list) || most > 4*scan.MaxChunkBytes {
				t.Errorf("%d rows, at most %d bytes in memory; want %d rows, %d bytes", n, most, len(list), 4*scan.MaxChunkBytes)
			}
		}
	}
}

// longRows returns entities of random sizes, of which many have 1 MB.
func longRows(prefix string) []edm.Entity {
	var list []edm.Entity
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 60 {
		n := []int{10, 5000, 100_000, 1_000_000}[min(rnd.IntN(5), 3)]
		if i < 10 || i > 50 {
			n = 1_000_000
		}
		e := edm.Entity{Key: edm.Key{Partition: "p", Row: fmt.Sprintf("%s%04d", prefix, i)}, Timestamp: 1}
		for j := 0; n > 0; j++ {
			b := make([]byte, min(n, 60_000))
			for k := range b {
				b[k] = byte(rnd.Uint32())
			}
			e.Properties = append(e.Properties, edm.Property{Name: fmt.Sprintf("B%03d", j), Value: edm.Binary(b)})
			n -= len(b)
		}
		list = append(list, e)
	}
	return list
}

// TestQueryDamaged damages stored bytes: the error names the table of the database and the key.
func TestQueryDamaged(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"flags":     `UPDATE tr_entities SET v = set_byte(v, 0, 250)`,
		"empty":     `UPDATE tr_entities SET v = ''`,
		"shape":     `UPDATE tr_entities SET v = set_byte(v, 3, 99)`,
		"values":    `UPDATE tr_entities SET v = substr(v, 1, length(v) - 1)`,
		"Timestamp": `UPDATE tr_entities SET ts = -5`,
		"partition": `UPDATE tr_entities SET p = '\x01'`,
		"row":       `UPDATE tr_entities SET r = '\xff'`,
		"long":      `UPDATE tr_tables SET long = true; INSERT INTO tr_long SELECT tid, '', 'a', 'b', 1, '' FROM tr_entities`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			s.put(t, edm.Entity{Key: edm.Key{Partition: "p", Row: "r"}, Timestamp: 1, Properties: edm.Properties{{Name: "N", Value: edm.String("abc")}}})
			s.run(t, sql)
			c := s.Query(t.Context(), people, store.Query{})
			if c.Next() {
				t.Error("Next returns true")
			}
			var damage *store.CorruptError
			if err := c.Err(); !errors.As(err, &damage) || !strings.HasPrefix(damage.File, "tr_") || !strings.Contains(damage.What, "p = ") {
				t.Errorf("got %v, want damage with the table and the key", err)
			}
		})
	}
}

// TestQueryTableGone drops a table between two chunks.
func TestQueryTableGone(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{false, true} {
		s := open(t)
		for i := range 10 {
			s.put(t, edm.Entity{Key: edm.Key{Row: fmt.Sprint(i)}, Timestamp: 1})
		}
		c := s.Query(t.Context(), people, store.Query{}).(*scan.Cursor)
		c.LimitRows(scan.MinChunkRows)
		if !c.Next() {
			t.Fatal(c.Err())
		}
		s.run(t, "DELETE FROM tr_tables")
		if again {
			if err := s.CreateTable(t.Context(), people); err != nil {
				t.Fatal(err)
			}
		}
		n := 1
		for c.Next() {
			n++
		}
		if err := c.Err(); n == 10 || !errors.Is(err, store.ErrTableNotFound) {
			t.Errorf("made again %v: %d rows and %v, want %v", again, n, err, store.ErrTableNotFound)
		}
	}
}

// TestQueryClosed closes the store between two rows of one chunk.
func TestQueryClosed(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.put(t, edm.Entity{Key: edm.Key{Row: "1"}, Timestamp: 1}, edm.Entity{Key: edm.Key{Row: "2"}, Timestamp: 1})
	c := s.Query(context.Background(), people, store.Query{})
	if !c.Next() {
		t.Fatal(c.Err())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if c.Next() || !errors.Is(c.Err(), store.ErrClosed) {
		t.Errorf("after Close: %v, want %v", c.Err(), store.ErrClosed)
	}
}

// endingContext ends after some calls of Err.
type endingContext struct {
	context.Context
	left atomic.Int64
}

// Err returns context.Canceled from some call on.
func (c *endingContext) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// TestQueryEndsInEmptyRanges ends the ctx of each page after some ranges without an entity. The next page begins
// after them: else no page of a slow database would come to an end.
func TestQueryEndsInEmptyRanges(t *testing.T) {
	t.Parallel()
	s := open(t)
	const ranges = 50
	var keys []string
	for i := range ranges {
		keys = append(keys, fmt.Sprintf("PartitionKey eq '%02d'", i))
	}
	expr, err := filter.Parse(strings.Join(keys, " or "))
	if err != nil {
		t.Fatal(err)
	}
	for _, reverse := range []bool{false, true} {
		q := store.Query{Filter: expr, Reverse: reverse}
		for page := 1; ; page++ {
			ctx := &endingContext{Context: t.Context()}
			ctx.left.Store(30)
			c := s.Query(ctx, people, q)
			more := c.Next()
			resume, err := c.Resume(), c.Err()
			if closing := c.Close(); more || closing != nil {
				t.Fatal("a row of an empty table, or an error", closing)
			}
			if err == nil {
				break
			}
			if !errors.Is(err, context.Canceled) || resume == nil || page > ranges {
				t.Fatalf("reverse %v: page %d ends with %v, resume %v", reverse, page, err, resume)
			}
			q.From = resume
		}
	}
}

// TestQueryEndsBeforeItsTable ends the ctx of a query whose From is outside of its ranges. It does not go back.
func TestQueryEndsBeforeItsTable(t *testing.T) {
	t.Parallel()
	s := open(t)
	expr, err := filter.Parse("PartitionKey eq 'b'")
	if err != nil {
		t.Fatal(err)
	}
	s.put(t, edm.Entity{Key: edm.Key{Partition: "b", Row: "r"}, Timestamp: 1})
	for _, q := range []store.Query{{From: &edm.Key{Partition: "c"}}, {From: &edm.Key{Partition: "a", Row: "r"}, Reverse: true}} {
		q.Filter = expr
		ctx := &endingContext{Context: t.Context()}
		c := s.Query(ctx, people, q)
		if c.Next() || !errors.Is(c.Err(), context.Canceled) || c.Resume() == nil {
			t.Fatalf("reverse %v: a query whose ctx has ended: %v, resume %v", q.Reverse, c.Err(), c.Resume())
		}
		q.From = c.Resume()
		if p := read(t, s.Query(t.Context(), people, q)); len(p.Rows) > 0 {
			t.Errorf("reverse %v: it goes on at %v with rows before its From: %v", q.Reverse, *q.From, p.Rows)
		}
	}
}

// TestBudgetOfSelected reads pages of large entities: a page ends by the bytes of the properties that are selected.
func TestBudgetOfSelected(t *testing.T) {
	t.Parallel()
	s := open(t)
	var list []edm.Entity
	for i := range 150 {
		list = append(list, edm.Entity{
			Key: edm.Key{Partition: "p", Row: fmt.Sprintf("%03d", i)}, Timestamp: 1,
			Properties: edm.Properties{{Name: "Large", Value: edm.Binary(make([]byte, 60_000))}, {Name: "N", Value: edm.Int32(int32(i))}},
		})
	}
	s.put(t, list...)
	for _, c := range []struct {
		names []string
		rows  int
	}{{nil, 70}, {[]string{"Large"}, 70}, {[]string{"N"}, 150}, {[]string{"Large", "N"}, 70}, {[]string{}, 150}} {
		p := read(t, s.Query(t.Context(), people, store.Query{Select: c.names, BudgetBytes: 70 * 60_000}))
		if len(p.Rows) != c.rows || (p.Resume == nil) != (c.rows == len(list)) {
			t.Errorf("%q: %d rows that resume at %v, want %d", c.names, len(p.Rows), p.Resume, c.rows)
		}
	}
}
