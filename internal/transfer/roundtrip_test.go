package transfer_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest"
)

// specials are the values of each type at its limits, and those that a format could change.
func specials(t testing.TB) map[string][]edm.Value {
	t.Helper()
	ticks := func(text string) edm.Value {
		at, err := edm.ParseTicks(text)
		if err != nil {
			t.Fatal(err)
		}
		return edm.DateTime(at)
	}
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	long := strings.Repeat("\u8868\"\n", 8<<10)
	all := map[string][]edm.Value{
		"String": {
			edm.String(""), edm.String(" "), edm.String("null"), edm.String("NaN"), edm.String("0"), edm.String("true"), edm.String(`"`), edm.String("\r"),
			edm.String("a,b\tc;d|e"), edm.String("a\r\nb\n"), edm.String("\x00\x01\x7f"), edm.String("\ufeff"), edm.String("\U0001F600\ue000\uffff"),
			edm.String("\\u0041\\"), edm.String("2024-02-03T16:00:00Z"), edm.String(long),
		},
		"Binary":  {edm.Binary(nil), edm.Binary([]byte{}), edm.Binary([]byte{0}), edm.Binary(every), edm.Binary(bytes.Repeat(every, 256))},
		"Boolean": {edm.Boolean(false), edm.Boolean(true)},
		"Int32":   {edm.Int32(0), edm.Int32(-1), edm.Int32(math.MinInt32), edm.Int32(math.MaxInt32)},
		"Int64":   {edm.Int64(0), edm.Int64(-1), edm.Int64(math.MinInt64), edm.Int64(math.MaxInt64), edm.Int64(1<<53 + 1), edm.Int64(5)},
		"Double": {
			edm.Double(math.NaN()), edm.Double(math.Inf(1)), edm.Double(math.Inf(-1)), edm.Double(0), edm.Double(math.Copysign(0, -1)), edm.Double(0.1),
			edm.Double(math.MaxFloat64), edm.Double(-math.MaxFloat64), edm.Double(math.SmallestNonzeroFloat64), edm.Double(math.Nextafter(1, 2)),
			edm.Double(5), edm.Double(3e9), edm.Double(1 << 53), edm.Double(1e21), edm.Double(1e-7), edm.Double(math.MaxInt64),
		},
		// Parquet has three units for times, by what a column needs.
		"Near": {ticks("1970-01-01T00:00:00Z"), ticks("1969-12-31T23:59:59.9999999Z"), ticks("2024-02-29T23:59:59.1234567Z"), ticks("2262-04-11T00:00:00Z")},
		"Far":  {ticks("1601-01-01T00:00:00Z"), ticks("9999-12-31T23:59:59.999999Z"), ticks("2024-02-03T16:00:00.5Z")},
		"Time": {edm.DateTime(0), edm.DateTime(1), edm.DateTime(edm.MaxTicks), ticks("1601-01-01T00:00:00.0000001Z"), ticks("9999-12-31T23:59:59.9999999Z")},
		"Guid": {edm.Guid(edm.GUID{}), edm.Guid(edm.GUID(bytes.Repeat([]byte{0xff}, 16))), edm.Guid(edm.GUID(every[:16]))},
	}
	for name, values := range all {
		all["Mixed"] = append(all["Mixed"], values...)
		all["Mixed"+name] = append(slices.Clone(values), edm.String(""), edm.Int64(5))
	}
	return all
}

// exactly describes a value by its bits, but for a NaN.
func exactly(v edm.Value) string {
	if f, ok := v.Double(); ok && !math.IsNaN(f) {
		return fmt.Sprintf("%v %016x", v.Type(), math.Float64bits(f))
	}
	return fmt.Sprintf("%v %x %q", v.Type(), v.Word(), v.Bytes())
}

// TestRoundTripOfSpecials exports each value of specials, and an entity without it, in each format, and
// imports the file: types and bits are the same.
func TestRoundTripOfSpecials(t *testing.T) {
	var all []edm.Entity
	for name, values := range specials(t) {
		for i, v := range values {
			all = append(all, edm.Entity{Key: edm.Key{Partition: name, Row: fmt.Sprintf("%03d", i)}, Properties: edm.Properties{{Name: name, Value: v}}})
		}
		all = append(all, edm.Entity{Key: edm.Key{Partition: name, Row: "absent"}})
	}
	for i, key := range []string{"", " ", "a,b", `say "hi"`, `"`, `""`, "'", ";|", "@type", "null", "0", "\u8868\U0001F600\ue000", "\ufeff", "%2F"} {
		all = append(all, edm.Entity{Key: edm.Key{Partition: key, Row: ""}}, edm.Entity{Key: edm.Key{Partition: fmt.Sprint("key", i), Row: key}})
	}
	st := storeOf(t, all)
	list := func(t *testing.T, st store.Store) (list []string) {
		t.Helper()
		for e, err := range store.Entities(st.Query(t.Context(), "Tab", store.Query{})) {
			if err != nil {
				t.Fatal(err)
			}
			text := fmt.Sprintf("%q %q", e.Key.Partition, e.Key.Row)
			for _, p := range e.Properties {
				text += " " + p.Name + "=" + exactly(p.Value)
			}
			list = append(list, text)
		}
		return list
	}
	want := list(t, st)
	type export func(w io.Writer) (int64, error)
	csv := func(delimiter byte) export {
		return func(w io.Writer) (int64, error) {
			return transfer.ExportCSV(t.Context(), st, "Tab", store.Query{}, w, transfer.ExportOptions{Delimiter: delimiter})
		}
	}
	for name, c := range map[string]struct {
		export export
		read   transfer.ReadOptions
	}{
		"CSV": {csv(','), transfer.ReadOptions{Format: transfer.CSV}},
		"TSV": {csv('\t'), transfer.ReadOptions{Format: transfer.CSV, Delimiter: '\t'}},
		"JSONL": {func(w io.Writer) (int64, error) {
			return transfer.ExportJSONL(t.Context(), st, "Tab", store.Query{}, w, transfer.ExportOptions{})
		}, transfer.ReadOptions{Format: transfer.JSONL}},
		"JSON": {func(w io.Writer) (int64, error) {
			return transfer.ExportJSON(t.Context(), st, "Tab", store.Query{}, w, transfer.ExportOptions{})
		}, transfer.ReadOptions{Format: transfer.JSON}},
		"Parquet": {func(w io.Writer) (int64, error) {
			return transfer.ExportParquet(t.Context(), st, "Tab", store.Query{}, w, transfer.ExportOptions{})
		}, transfer.ReadOptions{Format: transfer.Parquet}},
	} {
		t.Run(name, func(t *testing.T) {
			var file bytes.Buffer
			if n, err := c.export(&file); err != nil || n != int64(len(want)) {
				t.Fatalf("exported %d rows of %d, %v", n, len(want), err)
			}
			c.read.Name = "f"
			r := transfer.NewReader(bytes.NewReader(file.Bytes()), c.read)
			if c.read.Format == transfer.Parquet {
				r = transfer.NewParquetReader(bytes.NewReader(file.Bytes()), int64(file.Len()), c.read)
			}
			back := storetest.NewMap(nil)
			progress, err := transfer.Import(t.Context(), back, "Tab", r, transfer.ImportOptions{Mode: transfer.Insert})
			if err != nil || progress.Rows != int64(len(want)) {
				t.Fatalf("imported %d rows of %d, %v", progress.Rows, len(want), err)
			}
			if d := cmp.Diff(want, list(t, back)); d != "" {
				t.Errorf("(-want +got):\n%.2000s", d)
			}
		})
	}
}
