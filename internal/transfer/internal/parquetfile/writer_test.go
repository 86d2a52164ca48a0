package parquetfile

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/tablerock-db/tablerock/edm"
)

// TestGroupsAreBounded writes more text than a row group may have, to a column of one type and to
// one of several.
func TestGroupsAreBounded(t *testing.T) {
	text := edm.String(strings.Repeat("text", 8<<10))
	for _, c := range []Column{{Name: "A", Type: edm.TypeString}, {Name: "A"}} {
		var file bytes.Buffer
		w, err := NewWriter(&file, []Column{c})
		if err != nil {
			t.Fatal(err)
		}
		const rows = 3 * groupBytes / (32 << 10)
		for i := range rows {
			e := edm.Entity{Key: edm.Key{Partition: "p", Row: fmt.Sprintf("%06d", i)}, Timestamp: 130_000_000_000_000_000}
			if err := w.Row(e.View(), []edm.Value{text}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		f, err := parquet.OpenFile(bytes.NewReader(file.Bytes()), int64(file.Len()))
		if err != nil {
			t.Fatal(err)
		}
		if n := len(f.RowGroups()); n < 3 || f.NumRows() != rows {
			t.Errorf("type %v: %d row groups with %d rows, want at least 3 with %d", c.Type, n, f.NumRows(), rows)
		}
	}
}

// TestMetadataIsBounded writes long values, in row groups of one row. The metadata of the file,
// which Reader limits, has none of them.
func TestMetadataIsBounded(t *testing.T) {
	var columns []Column
	var values []edm.Value
	for i := range 100 {
		c := Column{Name: fmt.Sprintf("P%03d", i)}
		if i%3 > 0 {
			c.Type = edm.TypeString + edm.Type(i%3-1) // else several
		}
		v := edm.String(strings.Repeat("text", 15<<10))
		if c.Type == edm.TypeBinary {
			v = edm.Binary(v.Bytes())
		}
		columns, values = append(columns, c), append(values, v)
	}
	var file bytes.Buffer
	w, err := NewWriter(&file, columns)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		w.rows, w.group = batchRows-1, groupBytes
		e := edm.Entity{Key: edm.Key{Partition: "p", Row: fmt.Sprint(i)}, Timestamp: 130_000_000_000_000_000}
		if err := w.Row(e.View(), values); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()), 512<<20)
	if err != nil {
		t.Fatal(err)
	}
	if footer, err := r.footer(); err != nil || len(footer) > 1<<20 {
		t.Errorf("the metadata has %d bytes, with error %v", len(footer), err)
	}
	for i := range r.meta.RowGroups[0].Columns {
		c := &r.meta.RowGroups[0].Columns[i]
		want := i < fixedColumns || strings.HasSuffix(r.Name(i), TypeSuffix)
		if has := c.MetaData.Statistics.MaxValue != nil; has != want || c.ColumnIndexLength == 0 {
			t.Errorf("column %s has bounds: %v, want %v; the index of its pages has %d bytes", r.Name(i), has, want, c.ColumnIndexLength)
		}
	}
	for i := range 3 {
		if err := r.Next(); err != nil || len(r.Bytes(fixedColumns)) != len(values[0].Bytes()) {
			t.Errorf("row %d: %v", i, err)
		}
	}
	if f, err := parquet.OpenFile(bytes.NewReader(file.Bytes()), int64(file.Len())); err != nil || f.NumRows() != 3 {
		t.Errorf("another reader finds the error %v", err)
	}
}

// TestWideFiles writes files of many columns, in row groups of one row. Reader reads each one that
// is written.
func TestWideFiles(t *testing.T) {
	for _, c := range []struct {
		columns, groups int
		written         bool
	}{
		{maxColumns - fixedColumns + 1, 1, false},
		{1 << 16, 1, false}, // above the limit of the library
		{2000, 60, true},
		{2000, 70, false},
	} {
		if testing.Short() && c.groups > 1 { // takes seconds
			continue
		}
		var columns []Column
		for i := range c.columns {
			columns = append(columns, Column{Name: fmt.Sprint("P", i), Type: edm.TypeInt32})
		}
		var file bytes.Buffer
		w, err := NewWriter(&file, columns)
		for i := 0; i < c.groups && err == nil; i++ {
			w.rows, w.group = batchRows-1, groupBytes
			e := edm.Entity{Key: edm.Key{Partition: "p", Row: fmt.Sprint(i)}, Timestamp: 130_000_000_000_000_000}
			err = w.Row(e.View(), make([]edm.Value, c.columns))
		}
		if err == nil {
			err = w.Close()
		}
		if !c.written {
			if err == nil || !strings.HasSuffix(err.Error(), "export as JSONL instead") {
				t.Errorf("%d columns and %d groups are written with error %v", c.columns, c.groups, err)
			}
			continue
		}
		if err == nil {
			_, err = NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()), 512<<20)
		}
		if err != nil {
			t.Errorf("%d columns and %d groups: %v", c.columns, c.groups, err)
		}
	}
}
