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
