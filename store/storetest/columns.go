package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// Entities returns copies of the rows. The error is that of store.Columns.AppendBytes.
func Entities(rows store.Columns) ([]edm.Entity, error) {
	list := make([]edm.Entity, rows.Len())
	for i := range list {
		key := edm.Key{Partition: string(rows.AppendPartition(nil, i)), Row: string(rows.AppendRow(nil, i))}
		list[i] = edm.Entity{Key: key, Timestamp: rows.Timestamp(i)}
	}
	for p := range rows.Properties() {
		name, typ := rows.Property(p)
		all, err := values(rows, p, typ)
		if err != nil {
			return nil, err
		}
		for i, v := range all {
			list[i].Properties = append(list[i].Properties, edm.Property{Name: name, Value: v.Clone()})
		}
	}
	return list, nil
}

// values returns the values of property p, which has the type typ.
func values(rows store.Columns, p int, typ edm.Type) (list []edm.Value, err error) {
	switch typ {
	case edm.TypeString, edm.TypeBinary, edm.TypeGuid:
		all, err := rows.AppendBytes(nil, p)
		if err != nil {
			return nil, err
		}
		for _, b := range all {
			switch typ {
			case edm.TypeString:
				list = append(list, edm.StringBytes(b))
			case edm.TypeBinary:
				list = append(list, edm.Binary(b))
			default:
				list = append(list, edm.GuidBytes(b))
			}
		}
	default:
		for _, w := range rows.AppendWords(nil, p) {
			list = append(list, edm.Fixed(typ, w))
		}
	}
	return list, nil
}

// columns returns copies of the rows, which must agree with each other. The error is that of
// store.Columns.AppendBytes.
func (t *tester) columns(rows store.Columns) ([]edm.Entity, error) {
	t.Helper()
	n := rows.Len()
	if n < 1 {
		t.Fatalf("NextColumns returns %d rows", n)
	}
	for i := range n {
		if p := rows.AppendPartition([]byte("+"), i); p[0] != '+' {
			t.Errorf("AppendPartition replaces what was there: %q", p)
		}
		if p := rows.AppendRow([]byte("+"), i); p[0] != '+' {
			t.Errorf("AppendRow replaces what was there: %q", p)
		}
	}
	for p := range rows.Properties() {
		name, typ := rows.Property(p)
		got := 0
		switch typ {
		case edm.TypeString, edm.TypeBinary, edm.TypeGuid:
			all, err := rows.AppendBytes(make([][]byte, 1), p)
			if err != nil {
				return nil, err
			}
			got = len(all) - 1
		default:
			got = len(rows.AppendWords(make([]uint64, 1), p)) - 1
		}
		if got != n {
			t.Fatalf("%d values of %s are appended for %d rows", got, name, n)
		}
	}
	return Entities(rows)
}

// manyColumns returns entities of three partitions: with one shape, with several, and with
// big values.
func manyColumns() (list []edm.Entity) {
	for i := range 240 {
		e := edm.Entity{Key: edm.Key{Partition: fmt.Sprint("p", i/80), Row: fmt.Sprintf("%03d", i)}}
		text := strings.Repeat(fmt.Sprint(i, "\U0001F600"), i%9)
		e.Properties = edm.Properties{
			prop("I", edm.Int32(int32(i*i-4000))), prop("L", edm.Int64(int64(i)<<40-7)), prop("D", edm.Double(float64(i)/8)),
			prop("B", edm.Boolean(i%3 == 0)), prop("T", edm.DateTime(1<<57+edm.Ticks(i))), prop("G", edm.GuidWords(uint64(i), ^uint64(i))),
			prop("S", edm.String(text)), prop("X", edm.Binary([]byte(text[:len(text)/2]))), prop("Few", edm.String(fmt.Sprint(i%4))), prop("Last", edm.String(text)),
		}
		switch {
		case i/80 == 1 && i/10%2 == 0:
			e.Properties = e.Properties[:6-i/20%2] // without texts
		case i/80 == 1 && i%5 == 0:
			e.Properties = e.Properties[i%10:]
		case i/80 == 2 && i%20 == 0:
			e.Properties[6].Value = edm.String(strings.Repeat("big", 5000))
		}
		list = append(list, e)
	}
	return list
}

// testQueryColumns reads results by rows and by columns, for a store that has them.
func testQueryColumns(t *tester) {
	s := t.openPeople()
	list := t.fill(s, manyColumns())
	if t.backend.Reopen != nil {
		s = t.reopen(s) // a store can have columns in files alone
	}
	limits := []int{0, 1, 7, 90}
	if testing.Short() {
		limits = []int{0, 7}
	}
	for _, text := range []string{"", "I gt 10000", "Few eq '2'", "PartitionKey eq 'p0'", "PartitionKey eq 'p0' and B eq true or RowKey eq '100'", "S eq 'none'"} {
		for _, reverse := range t.directions() {
			for _, limit := range limits {
				q := store.Query{Filter: t.parse(text), Reverse: reverse, Limit: limit}
				var want []edm.Entity
				for _, e := range list {
					if q.Filter == nil || q.Filter.Match(e.View()) {
						want = append(want, e)
					}
				}
				if reverse {
					slices.Reverse(want)
				}
				for range 2 { // drain reads by columns every second time
					t.wantEntities("pages of "+show(q), t.chain(s, people, q, 2*len(list)), want)
				}
			}
		}
	}
}
