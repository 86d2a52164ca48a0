package output

import (
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest"
)

func TestEntities(t *testing.T) {
	s := storetest.NewMap(nil)
	if err := s.CreateTable(t.Context(), "People"); err != nil {
		t.Fatal(err)
	}
	for _, e := range []edm.Entity{
		{Key: edm.Key{Partition: "p", Row: "1"}, Properties: edm.Properties{{Name: "Age", Value: edm.Int32(7)}}},
		{Key: edm.Key{Partition: "p", Row: "two"}, Properties: edm.Properties{{Name: "Name", Value: edm.String("表\n")}}},
	} {
		if _, err := s.Apply(t.Context(), "People", store.Insert(e)); err != nil {
			t.Fatal(err)
		}
	}
	none := edm.Key{Partition: "q"}
	for _, c := range []struct {
		name    string
		format  string
		columns int
		from    *edm.Key
		want    string
	}{
		{"table", Table, 0, nil, `
PartitionKey  RowKey  Timestamp                     Age  Name
p             1       2024-02-03T16:00:00.0000001Z  7
p             two     2024-02-03T16:00:00.0000002Z       表\n
`},
		{"empty table", Table, 0, &none, `
PartitionKey  RowKey  Timestamp
`},
		{"table as wide as the terminal", Table, 61, nil, `
PartitionKey  RowKey  Timestamp                     Age  Name
p             1       2024-02-03T16:00:00.0000001Z  7
p             two     2024-02-03T16:00:00.0000002Z       表\n
`},
		{"table wider than the terminal", Table, 60, nil, `
-- 1 -------------------------------------------------------
PartitionKey  p
RowKey        1
Timestamp     2024-02-03T16:00:00.0000001Z
Age           7
-- 2 -------------------------------------------------------
PartitionKey  p
RowKey        two
Timestamp     2024-02-03T16:00:00.0000002Z
Name          表\n
`},
		{"empty table wider than the terminal", Table, 10, &none, ""},
		{"array", JSON, 0, nil, `
[
{"odata.etag":"W/\"datetime'2024-02-03T16%3A00%3A00.0000001Z'\"","PartitionKey":"p","RowKey":"1","Timestamp":"2024-02-03T16:00:00.0000001Z","Age":7},
{"odata.etag":"W/\"datetime'2024-02-03T16%3A00%3A00.0000002Z'\"","PartitionKey":"p","RowKey":"two","Timestamp":"2024-02-03T16:00:00.0000002Z","Name":"表\n"}
]
`},
		{"empty array", JSON, 0, &none, `
[]
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got strings.Builder
			p := Printer{W: &got, Format: c.format, Columns: c.columns}
			err := p.Entities(t.Context(), s, "People", store.Query{From: c.from})
			if want := strings.TrimPrefix(c.want, "\n"); err != nil || got.String() != want {
				t.Errorf("got error %v and\n%s\nwant\n%s", err, got.String(), want)
			}
		})
	}
}

// TestEntity prints an entity that no source has any more.
func TestEntity(t *testing.T) {
	e := edm.Entity{
		Key:        edm.Key{Partition: "p", Row: "1"},
		Properties: edm.Properties{{Name: "Name", Value: edm.String("x")}, {Name: "Age", Value: edm.Int32(7)}},
	}
	for _, c := range []struct {
		selected []string
		want     string
	}{
		{nil, "PartitionKey,RowKey,Timestamp,Age@Edm.Int32,Name\np,1,1601-01-01T00:00:00Z,7,x\n"},
		{[]string{"Name", "Age"}, "PartitionKey,RowKey,Timestamp,Name,Age@Edm.Int32\np,1,1601-01-01T00:00:00Z,x,7\n"},
	} {
		var got strings.Builder
		p := Printer{W: &got, Format: CSV}
		if err := p.Entity(t.Context(), "People", e, c.selected); err != nil || got.String() != c.want {
			t.Errorf("got error %v and\n%s\nwant\n%s", err, got.String(), c.want)
		}
	}
}

// TestListWidths prints a list on terminals of several widths.
func TestListWidths(t *testing.T) {
	long := strings.Repeat("表 and more ", 8)
	list := []Record{{{"Name", "one"}, {"Text", long}}, {{"Name", "a name of thirty columns......"}, {"Text", ""}}}
	for columns, want := range map[int]string{
		0: `
Name                            Text
one                             表 and more 表 and more 表 and more 表 and more 表 and more…
a name of thirty columns......
`,
		55: `
Name                            Text
one                             表 and more 表 and mor…
a name of thirty columns......
`,
		40: `
-- 1 -----------------------------------
Name  one
Text  表 and more 表 and more 表 and mor
      e 表 and more 表 and more 表 and m
      ore 表 and more 表 and more
-- 2 -----------------------------------
Name  a name of thirty columns......
Text
`,
		7: `
-- 1 --
Name
  one
Text
  表 an
  d mor
  e 表
  and m
  ore
  表 an
  d mor
  …
-- 2 --
Name
  a nam
  e of
  thirt
  y col
  umns.
  .....
Text
`,
	} {
		var got strings.Builder
		p := Printer{W: &got, Format: Table, Columns: columns}
		if err := p.List([]string{"Name", "Text"}, list); err != nil || got.String() != want[1:] {
			t.Errorf("on %d columns: error %v and\n%s\nwant\n%s", columns, err, &got, want[1:])
		}
	}
}

// TestRecordWidths prints a record: its values are cut on a terminal only.
func TestRecordWidths(t *testing.T) {
	long := strings.Repeat("表\n", 40)
	for columns, want := range map[int]string{
		0:  "Name  one\nText  " + strings.Repeat(`表\n`, 40) + "\n",
		30: "Name  one\nText  " + strings.Repeat(`表\n`, 5) + "表\\…\n",
		9:  "Name  one\nText  " + strings.Repeat(`表\n`, 4) + "表\\…\n",
	} {
		var got strings.Builder
		p := Printer{W: &got, Format: Table, Columns: columns}
		if err := p.Record(Record{{"Name", "one"}, {"Text", long}}); err != nil || got.String() != want {
			t.Errorf("on %d columns: error %v and\n%swant\n%s", columns, err, &got, want)
		}
	}
}
