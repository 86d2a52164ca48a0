package transfer

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/internal/transfer/internal/textfile"
)

// TestHostileRecords reads records that would take far more memory than any entity. The
// reader must reject each of them and read the next record.
func TestHostileRecords(t *testing.T) {
	race.SkipOneGoroutine(t)
	const large = textfile.MaxRecordBytes - 100
	for _, c := range []struct {
		name, text string
		format     Format
		lines      int64
	}{
		{"cells", strings.Repeat(",", large) + "\n", CSV, 1},
		{"quoted cells", strings.Repeat(`"",`, large/3) + "\n", CSV, 1},
		{"quotes", `p,r,"` + strings.Repeat(`""`, large/2) + `"` + "\n", CSV, 1},
		{"lines in quotes", `p,r,"` + strings.Repeat("\n", large) + `"` + "\n", CSV, large + 1},
		{"a long line", strings.Repeat("x", 10*large) + "\n", CSV, 1},
		{"members", "{" + strings.Repeat(`"a":null,`, large/9) + `"b":1}` + "\n", JSONL, 1},
		{"names", "{" + manyNames(large/12) + `"b":1}` + "\n", JSONL, 1},
		{"depth", `{"odata.x":` + strings.Repeat("[", large) + "\n", JSONL, 1},
		{"digits", `{"PartitionKey":"p","RowKey":"r","N":` + strings.Repeat("1", large-50) + "}\n", JSONL, 1},
		{"exponent", `{"PartitionKey":"p","RowKey":"r","N":1e` + strings.Repeat("9", large-50) + "}\n", JSONL, 1},
		{"a long name", `{"` + strings.Repeat("n", large) + `":1}` + "\n", JSONL, 1},
		{"escapes", `{"PartitionKey":"p","RowKey":"r","N":"` + strings.Repeat(`\u0001`, large/6-10) + "\"}\n", JSONL, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, good := c.text, `{"PartitionKey":"p","RowKey":"r"}`+"\n"
			if c.format == CSV {
				text, good = "PartitionKey,RowKey,S\n"+c.text, "p,r,s\n"
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r := NewReader(io.MultiReader(strings.NewReader(text), strings.NewReader(good)), ReadOptions{Name: "f", Format: c.format})
			_, err := r.Next()
			runtime.ReadMemStats(&after)
			var line *LineError
			if !errors.As(err, &line) || !errors.Is(err, edm.ErrInvalid) && !errors.Is(err, edm.ErrTooLarge) {
				t.Fatalf("got %v, want a LineError", err)
			}
			if n := len(err.Error()); n > 1000 {
				t.Errorf("a message of %d bytes", n)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 12*textfile.MaxRecordBytes {
				t.Errorf("%d MiB allocated for a record of %d", n>>20, len(c.text)>>20)
			}
			rec, err := r.Next()
			if err != nil || rec.Entity.Key != (edm.Key{Partition: "p", Row: "r"}) {
				t.Errorf("the next record: %+v, %v", rec, err)
			}
		})
	}
}

// manyNames returns n members with distinct names.
func manyNames(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`"`)
		for ; i > 0; i /= 26 {
			b.WriteByte(byte('a' + i%26))
		}
		b.WriteString(`_":1,`)
	}
	return b.String()
}
