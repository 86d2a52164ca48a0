package engine_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest"
	"github.com/tablerock-db/tablerock/vfs"
)

// minColumns is that of engine/internal/scan.
const minColumns = 4

// flushedRows returns a database with rows of up to 60 bytes of one partition in files of
// fileBytes.
func flushedRows(t *testing.T, rows int, fileBytes int64) *engine.DB {
	t.Helper()
	o := small(vfs.NewMem())
	o.Testing.Manual, o.NoSync, o.SegmentBytes, o.CacheBytes, o.FileBytes = true, true, 4<<20, 4<<20, fileBytes
	db := mustCreate(t, o)
	for i := range rows {
		apply(t, db, store.InsertOrReplace(entity("p", fmt.Sprintf("%05d", i), int64(i%7), i%60)))
	}
	check(t, "Flush", db.Flush(t.Context()))
	return db
}

// TestNextColumns counts the rows of a file that a query returns by columns: all of them, and
// with rows of a memtable in between all but a few.
func TestNextColumns(t *testing.T) {
	race.SkipOneGoroutine(t)
	const rows = 3000
	db := flushedRows(t, rows, 64<<10)
	count := func(q store.Query) (all, byColumns, most int) {
		c := db.Query(t.Context(), table, q).(store.ColumnCursor)
		for {
			if rows := c.NextColumns(); rows != nil {
				all, byColumns, most = all+rows.Len(), byColumns+rows.Len(), max(most, rows.Len())
				if q.Select != nil && rows.Properties() != len(q.Select) {
					t.Errorf("%+v: %d properties", q, rows.Properties())
				}
			} else if c.Next() {
				all++
			} else {
				break
			}
		}
		if read := c.(store.Examiner).Examined(); q.Filter == nil && read != all {
			t.Errorf("%+v: %d entities examined, %d returned", q, read, all)
		}
		check(t, "Query", errors.Join(c.Err(), c.Close()))
		return all, byColumns, most
	}
	n3 := filter.MustParse("N eq 3L")
	for _, reverse := range []bool{false, true} {
		for _, one := range []struct {
			q              store.Query
			all, byColumns int
		}{
			{store.Query{}, rows, rows},
			{store.Query{Filter: n3}, rows/7 + 1, rows/7 + 1},
			{store.Query{Limit: 1000}, 1000, 1000},
			{store.Query{Budget: 777}, 777, 777},
			{store.Query{Budget: 777, Limit: 900}, 777, 777},
			{store.Query{Select: []string{"N"}}, rows, rows},
			{store.Query{Select: []string{}}, rows, rows},
			{store.Query{BudgetBytes: 1 << 30}, rows, rows},
			{store.Query{Limit: 10}, 10, 10}, // a short query walks
		} {
			one.q.Reverse = reverse
			all, byColumns, most := count(one.q)
			if all != one.all || byColumns != one.byColumns || byColumns > 0 && most < 8 {
				t.Errorf("%+v: %d rows, %d by columns, at most %d at once; want %d and %d", one.q, all, byColumns, most, one.all, one.byColumns)
			}
		}
	}
	// A page ends with the row that reaches BudgetBytes, whatever the page before has selected.
	for i := range 240 {
		q := store.Query{Reverse: i%2 > 0, BudgetBytes: 1 + i*i, Limit: i % 3 * 250, Select: [][]string{nil, {"N"}, {"Filler"}}[i/2%3]}
		if i/6%2 > 0 {
			q.Filter = n3
		}
		want, size := 0, 0
		for at := 0; at < rows && want < cmp.Or(q.Limit, rows) && size < q.BudgetBytes; at++ {
			row := at
			if q.Reverse {
				row = rows - 1 - at
			}
			if q.Filter != nil && row%7 != 3 {
				continue
			}
			want++
			// The sizes of engine/internal/scan/rowsize.go.
			if size += 8; q.Select == nil || q.Select[0] == "N" {
				size += len("N") + 8
			}
			if q.Select == nil || q.Select[0] == "Filler" {
				size += len("Filler") + 8 + row%60
			}
		}
		if all, byColumns, _ := count(q); all != want || byColumns < all-minColumns {
			t.Errorf("%+v: %d rows, %d by columns, want %d", q, all, byColumns, want)
		}
		c, all := db.Query(t.Context(), table, q), 0
		for ; c.Next(); all++ {
		}
		check(t, "Query", errors.Join(c.Err(), c.Close()))
		if all != want {
			t.Errorf("%+v: %d rows by rows, want %d", q, all, want)
		}
	}
	// Of several ranges of keys, those before the last are read by rows.
	for _, one := range []store.Query{
		{Filter: filter.MustParse("PartitionKey eq 'p' and RowKey ne '00010' and RowKey lt '00050'")},
		{Filter: filter.MustParse("PartitionKey eq 'p' and RowKey ne '02989' and RowKey ge '02950'"), Reverse: true},
	} {
		one.Limit = 100
		if all, byColumns, _ := count(one); all != 49 || byColumns < 30 || byColumns > 39 {
			t.Errorf("%+v: %d rows, %d by columns", one, all, byColumns)
		}
	}
	// NextColumns ends the use of a row, also if it returns nil.
	c := db.Query(t.Context(), table, store.Query{Limit: 3}).(store.ColumnCursor)
	if !c.Next() || c.NextColumns() != nil || c.Row() != nil {
		t.Error("a row after NextColumns")
	}
	check(t, "Close", c.Close())
	// It returns nil when ctx has ended.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c = db.Query(ctx, table, store.Query{}).(store.ColumnCursor)
	n := c.NextColumns().Len()
	cancel()
	if c.NextColumns() != nil || c.Next() || !errors.Is(c.Err(), context.Canceled) || c.Resume() == nil || c.Resume().Row != fmt.Sprintf("%05d", n) {
		t.Errorf("after the end of ctx: %v, resumes at %v", c.Err(), c.Resume())
	}
	check(t, "Close", c.Close())
	// Closed cursors, and those at their end, have no columns.
	c = db.Query(t.Context(), table, store.Query{}).(store.ColumnCursor)
	check(t, "Close", c.Close())
	if c.NextColumns() != nil || c.Next() {
		t.Error("a closed cursor has rows")
	}
	const fresh = 8
	for i := range fresh {
		apply(t, db, store.InsertOrReplace(entity("p", fmt.Sprintf("%05d", 100+400*i), 5, 20)))
	}
	for _, reverse := range []bool{false, true} {
		for _, limit := range []int{0, 250, 1000} {
			all, byColumns, most := count(store.Query{Reverse: reverse, Limit: limit})
			if want := cmp.Or(limit, rows); all != want || byColumns < want-4*fresh || byColumns > want-1 || most < 8 {
				t.Errorf("rows in a memtable, limit %d, reverse %v: %d rows, %d by columns, at most %d at once", limit, reverse, all, byColumns, most)
			}
		}
	}
}

// TestNextColumnsGathers counts the calls of NextColumns that return the matches of a filter of
// which there are few in each group of rows: rows of several groups are returned at once, and the
// first calls return rows of few groups. The groups are in the cache.
func TestNextColumnsGathers(t *testing.T) {
	race.SkipOneGoroutine(t)
	const rows = 20_000
	db := flushedRows(t, rows, 4<<20)
	empty := filter.MustParse("Filler eq X'' and N ge 0L")
	for i, q := range []store.Query{
		{Filter: empty}, // reads the file
		{Filter: empty},
		{Filter: empty, Reverse: true},
		{Filter: empty, Select: []string{"N"}},
		{Filter: empty, Limit: 200},
		{Filter: empty, Budget: rows},
	} {
		c := db.Query(t.Context(), table, q).(store.ColumnCursor)
		var at []int
		calls, first := 0, 0
		for {
			rows := c.NextColumns()
			if rows == nil {
				if c.Next() {
					t.Fatalf("%+v: a row that is not in columns", q)
				}
				break
			}
			words := rows.AppendWords(nil, rows.Properties()-1)
			for i := range rows.Len() {
				n, err := strconv.Atoi(string(rows.AppendRow(nil, i)))
				check(t, "Atoi", err)
				if words[i] != uint64(n%7) {
					t.Errorf("%+v: row %d has N %d", q, n, words[i])
				}
				at = append(at, n)
			}
			if calls++; calls == 1 {
				first = len(at)
			}
		}
		check(t, "Query", errors.Join(c.Err(), c.Close()))
		if q.Reverse {
			slices.Reverse(at)
		}
		for i, n := range at {
			if n != 60*i {
				t.Fatalf("%+v: row %d is %d", q, i, n)
			}
		}
		want := (rows + 59) / 60
		if q.Limit > 0 {
			want = q.Limit
		}
		if len(at) != want || first > 10 || calls > 20 && i > 0 {
			t.Errorf("%+v: %d rows in %d calls, %d in the first one; want %d rows", q, len(at), calls, first, want)
		}
	}
}

// damagedRows returns a database with rows of 300 bytes in files of fileBytes, in which the Binary of one
// is damaged.
func damagedRows(t *testing.T, disk *vfs.Mem, rows, damaged int, fileBytes int64) *engine.DB {
	t.Helper()
	o := manual(disk)
	o.FileBytes, o.SegmentBytes = fileBytes, 4<<20
	db := mustCreate(t, o)
	var text []byte
	random := rand.NewChaCha8([32]byte{})
	for i := range rows {
		e := entity("p", fmt.Sprintf("%05d", i), int64(i), 0)
		b := make([]byte, 300) // which no compression makes shorter
		_, _ = random.Read(b)
		e.Properties[1].Value = edm.Binary(b)
		apply(t, db, store.InsertOrReplace(e))
		if i == damaged {
			text = b
		}
	}
	check(t, "Flush", db.Flush(t.Context()))
	check(t, "Close", db.Close())
	m, err := manifest.Read(disk, "db")
	check(t, "read manifest", err)
	found := 0
	for _, f := range m.Files {
		file := "db/" + filename.Make(filename.SSTable, f.Number)
		if at := bytes.Index(readFile(t, disk, file), text[100:150]); at >= 0 {
			check(t, "Patch", disk.Patch(file, int64(at), []byte{text[100] + 1}))
			found++
		}
	}
	if found != 1 {
		t.Fatalf("%d files have the text", found)
	}
	db, err = engine.Open("db", manual(disk))
	check(t, "Open", err)
	return db
}

// TestNextColumnsOfShapes reads files in which rows with and without texts follow each other. Where at most three rows
// in a row have one shape, nearly all are left to Next, which needs less time for them.
func TestNextColumnsOfShapes(t *testing.T) {
	race.SkipOneGoroutine(t)
	for _, every := range []int{2, 3, 7, 20} {
		o := small(vfs.NewMem())
		o.Testing.Manual, o.NoSync, o.SegmentBytes = true, true, 4<<20
		db := mustCreate(t, o)
		var want []edm.Entity
		for i := range 1000 {
			e := entity("p", fmt.Sprintf("%05d", i), int64(i), 100+i*i%1400)
			if i/3%every > 0 {
				e.Properties = e.Properties[:1]
			}
			e.Timestamp = apply(t, db, store.InsertOrReplace(e))[0].Timestamp
			slices.Reverse(e.Properties) // compareRow wants them in the order of their names
			want = append(want, e)
		}
		check(t, "Flush", db.Flush(t.Context()))
		for _, reverse := range []bool{false, true} {
			what := fmt.Sprintf("texts in 1 of %d, reverse %v", every, reverse)
			if reverse {
				slices.Reverse(want)
			}
			c := db.Query(t.Context(), table, store.Query{Reverse: reverse}).(store.ColumnCursor)
			n, byColumns := 0, 0
			for {
				if rows := c.NextColumns(); rows != nil {
					list, err := storetest.Entities(rows)
					check(t, "AppendBytes", err)
					for i, e := range list {
						compareRow(t, what, e.View(), want[n+i], nil)
					}
					n, byColumns = n+rows.Len(), byColumns+rows.Len()
				} else if c.Next() { // a shape of few rows
					compareRow(t, what, c.Row(), want[n], nil)
					n++
				} else {
					break
				}
			}
			if n != len(want) || every > 2 && byColumns < n/2 || every == 2 && byColumns > n/5 {
				t.Errorf("%s: %d rows, %d by columns, want %d", what, n, byColumns, len(want))
			}
			check(t, "Query", errors.Join(c.Err(), c.Close()))
		}
	}
}

// TestNextColumnsOfDamage reads a file with a damage in a text by columns: the numbers of all
// rows, and then the texts up to the damage. A query that limits bytes ends there too.
func TestNextColumnsOfDamage(t *testing.T) {
	const rows, damaged = 300, 280
	db := damagedRows(t, vfs.NewMem(), rows, damaged, 64<<10)
	defer db.Close()
	// The limit is in the heap unit of the damage.
	for _, q := range []store.Query{
		{},
		{Reverse: true},
		{Limit: damaged + 1},
		{Select: []string{"Filler", "N"}},
		{BudgetBytes: 1 << 30},
		{Reverse: true, BudgetBytes: 1 << 30},
	} {
		want := rows
		if q.Limit > 0 {
			want = q.Limit
		}
		for _, texts := range []bool{false, true} {
			c := db.Query(t.Context(), table, q).(store.ColumnCursor)
			n := 0
			var failed, early error // early is that of NextColumns
			for {
				rows := c.NextColumns()
				switch {
				case rows == nil:
					early = c.Err()
				case texts:
					if _, failed = rows.AppendBytes(nil, 0); failed == nil {
						n += rows.Len()
					} else if !errors.Is(c.Err(), failed) {
						t.Errorf("%+v: AppendBytes returns %v, Err %v", q, failed, c.Err())
					}
					continue
				default:
					n += len(rows.AppendWords(nil, 1))
					continue
				}
				if !c.Next() {
					break
				}
				n++
			}
			err, closed := c.Err(), c.Close()
			var damage *store.CorruptError
			if q.BudgetBytes > 0 { // NextColumns has read the texts
				if failed != nil || early == nil || !errors.As(err, &damage) || n == 0 || n >= want {
					t.Errorf("%+v: %d rows, then %v; Err: %v", q, n, failed, err)
				}
				continue
			}
			if texts && (failed == nil || !errors.Is(err, failed) || !errors.As(err, &damage) || n == 0 || n >= want) {
				t.Errorf("%+v: %d rows, then %v; Err: %v", q, n, failed, err)
			}
			if !texts && (n != want || err != nil || closed != nil) {
				t.Errorf("%+v: the numbers of %d rows, then %v, %v", q, n, err, closed)
			}
		}
	}
}
