package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest"
)

// unusualEntities returns entities with every type, and with texts that CSV and JSON
// must escape.
func unusualEntities(t testing.TB) []edm.Entity {
	guid, err := edm.ParseGUID("a455c695-df98-5678-aaaa-81d3367e5a34")
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{
		"", " ", "a,b", `say "hi"`, `"`, `""`, "line\nline", "line\r\nline\r", "\u8868\U0001F600\ue000", "\ufeff", "'", ";\t|",
		"@type", "\x00\x01\x7f", "null", "5",
	}
	var all []edm.Entity
	for i, s := range texts {
		key := strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7f {
				return '_'
			}
			return r
		}, s)
		all = append(all, edm.Entity{Key: edm.Key{Partition: key, Row: fmt.Sprint(i)}, Properties: edm.Properties{
			{Name: "Text", Value: edm.String(s)},
			{Name: "\u00e9t\u00e9", Value: edm.Binary([]byte(s))},
		}})
	}
	return append(
		all,
		edm.Entity{Key: edm.Key{Partition: "", Row: ""}},
		edm.Entity{Key: edm.Key{Partition: "types", Row: "1"}, Properties: edm.Properties{
			{Name: "Int32", Value: edm.Int32(math.MinInt32)},
			{Name: "Int64", Value: edm.Int64(math.MinInt64)},
			{Name: "Double", Value: edm.Double(0.1)},
			{Name: "Boolean", Value: edm.Boolean(false)},
			{Name: "DateTime", Value: edm.DateTime(edm.MaxTicks)},
			{Name: "Guid", Value: edm.Guid(guid)},
			{Name: "Mixed", Value: edm.Int64(5)},
		}},
		edm.Entity{Key: edm.Key{Partition: "types", Row: "2"}, Properties: edm.Properties{
			{Name: "Mixed", Value: edm.String("5")}, {Name: "Double", Value: edm.Double(math.Copysign(0, -1))},
		}},
		edm.Entity{Key: edm.Key{Partition: "types", Row: "3"}, Properties: edm.Properties{
			{Name: "Mixed", Value: edm.String("")}, {Name: "Double", Value: edm.Double(math.NaN())},
		}},
		edm.Entity{Key: edm.Key{Partition: "types", Row: "4"}, Properties: edm.Properties{
			{Name: "Mixed", Value: edm.Double(5)}, {Name: "Double", Value: edm.Double(math.Inf(-1))}, {Name: "Int64", Value: edm.Int64(1 << 53)},
		}},
	)
}

func storeOf(t testing.TB, entities []edm.Entity) store.Store {
	t.Helper()
	st := storetest.NewMap(nil)
	if err := st.CreateTable(t.Context(), "Tab"); err != nil {
		t.Fatal(err)
	}
	for _, e := range entities {
		if _, err := st.Apply(t.Context(), "Tab", store.Insert(e)); err != nil {
			t.Fatal(err)
		}
	}
	return st
}

// sortedEntities describes the entities of Tab, without Timestamps and with sorted
// properties.
func sortedEntities(t testing.TB, st store.Store) []string {
	t.Helper()
	var got []string
	for e, err := range store.Entities(st.Query(t.Context(), "Tab", store.Query{})) {
		if err != nil {
			t.Fatal(err)
		}
		sorted := edm.Properties{}
		for _, p := range e.Properties {
			i := len(sorted)
			for i > 0 && edm.Compare(sorted[i-1].Name, p.Name) > 0 {
				i--
			}
			sorted = append(sorted[:i:i], append(edm.Properties{p}, sorted[i:]...)...)
		}
		e.Properties = sorted
		got = append(got, describe(e))
	}
	return got
}

func TestRoundTrip(t *testing.T) {
	st := storeOf(t, unusualEntities(t))
	want := sortedEntities(t, st)
	for _, f := range []transfer.Format{transfer.CSV, transfer.JSONL} {
		text := exportText(t, st, f)
		back := storetest.NewMap(nil)
		r := transfer.NewReader(strings.NewReader(text), transfer.ReadOptions{Name: "f", Format: f})
		progress, err := transfer.Import(t.Context(), back, "Tab", r, transfer.ImportOptions{Mode: transfer.Insert})
		if err != nil || int(progress.Rows) != len(want) {
			t.Errorf("format %d: import: %d rows, %v\n%s", f, progress.Rows, err, text)
			continue
		}
		if d := cmp.Diff(want, sortedEntities(t, back)); d != "" {
			t.Errorf("format %d (-want +got):\n%s\n%s", f, d, text)
		}
		if again := exportText(t, back, f); withoutTimestamps(again) != withoutTimestamps(text) {
			t.Errorf("format %d: exported again as\n%s\nfirst as\n%s", f, again, text)
		}
	}
}

// withoutTimestamps removes the Timestamps of a Map, whose clock is constant.
func withoutTimestamps(text string) string {
	for {
		i := strings.Index(text, "2024-02-03T16:00:00")
		if i < 0 {
			return text
		}
		end := i + strings.Index(text[i:], "Z") + 1
		text = text[:i] + text[end:]
	}
}

func TestExportText(t *testing.T) {
	st := storeOf(t, []edm.Entity{
		{Key: edm.Key{Partition: "p", Row: "1"}, Properties: edm.Properties{{Name: "b", Value: edm.Int64(5)}, {Name: "a", Value: edm.String("x,y")}}},
		{
			Key:        edm.Key{Partition: "p", Row: "2"},
			Properties: edm.Properties{{Name: "b", Value: edm.Int32(6)}, {Name: "c", Value: edm.Boolean(true)}, {Name: "a", Value: edm.String("")}},
		},
	})
	const csv = "PartitionKey,RowKey,Timestamp,a,b,b@type,c@Edm.Boolean\n" +
		"p,1,2024-02-03T16:00:00.0000001Z,\"x,y\",5,Edm.Int64,\n" +
		"p,2,2024-02-03T16:00:00.0000002Z,\"\",6,Edm.Int32,true\n"
	const jsonl = `{"PartitionKey":"p","RowKey":"1","Timestamp":"2024-02-03T16:00:00.0000001Z","b@odata.type":"Edm.Int64","b":"5","a":"x,y"}` + "\n" +
		`{"PartitionKey":"p","RowKey":"2","Timestamp":"2024-02-03T16:00:00.0000002Z","b":6,"c":true,"a":""}` + "\n"
	if d := cmp.Diff(csv, exportText(t, st, transfer.CSV)); d != "" {
		t.Errorf("CSV (-want +got):\n%s", d)
	}
	if d := cmp.Diff(jsonl, exportText(t, st, transfer.JSONL)); d != "" {
		t.Errorf("JSONL (-want +got):\n%s", d)
	}
}

// full is a Writer that fails after size bytes.
type full struct{ size int }

var errFull = errors.New("disk full")

func (f *full) Write(p []byte) (int, error) {
	if len(p) > f.size {
		return f.size, errFull
	}
	f.size -= len(p)
	return len(p), nil
}

func TestExportErrors(t *testing.T) {
	st := storeOf(t, unusualEntities(t))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, export := range map[string]func(context.Context, transfer.Querier, string, store.Query, *full) error{
		"CSV": func(ctx context.Context, src transfer.Querier, table string, q store.Query, w *full) error {
			_, err := transfer.ExportCSV(ctx, src, table, q, w, transfer.ExportOptions{})
			return err
		},
		"JSONL": func(ctx context.Context, src transfer.Querier, table string, q store.Query, w *full) error {
			_, err := transfer.ExportJSONL(ctx, src, table, q, w, transfer.ExportOptions{})
			return err
		},
	} {
		if err := export(t.Context(), st, "Tab", store.Query{}, &full{100}); !errors.Is(err, errFull) {
			t.Errorf("%s to a full disk: %v", name, err)
		}
		if err := export(t.Context(), st, "Missing", store.Query{}, &full{1 << 20}); !errors.Is(err, store.ErrTableNotFound) {
			t.Errorf("%s of a missing table: %v", name, err)
		}
		if err := export(cancelled, st, "Tab", store.Query{}, &full{1 << 20}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s with an ended context: %v", name, err)
		}
	}
}

func TestExportProgress(t *testing.T) {
	var entities []edm.Entity
	for i := range 2500 {
		entities = append(entities, edm.Entity{Key: edm.Key{Partition: "p", Row: fmt.Sprintf("%05d", i)}})
	}
	st := storeOf(t, entities)
	var seen []int64
	var out bytes.Buffer
	rows, err := transfer.ExportJSONL(t.Context(), st, "Tab", store.Query{}, &out,
		transfer.ExportOptions{Progress: func(rows, _ int64) { seen = append(seen, rows) }})
	if err != nil || rows != 2500 || bytes.Count(out.Bytes(), []byte("\n")) != 2500 {
		t.Errorf("%d rows, %v, in %d lines; want 2500", rows, err, bytes.Count(out.Bytes(), []byte("\n")))
	}
	if d := cmp.Diff([]int64{1000, 2000}, seen); d != "" {
		t.Errorf("progress (-want +got):\n%s", d)
	}
	for name, export := range map[string]func(context.Context, transfer.Querier, string, store.Query, io.Writer, transfer.ExportOptions) (int64, error){
		"CSV": transfer.ExportCSV, "Parquet": transfer.ExportParquet,
	} {
		var calls []string
		_, err := export(t.Context(), st, "Tab", store.Query{}, io.Discard, transfer.ExportOptions{
			Searched: func(rows int64) { calls = append(calls, fmt.Sprint("searched ", rows)) },
			Progress: func(rows, _ int64) { calls = append(calls, fmt.Sprint("written ", rows)) },
		})
		if err != nil || len(calls) < 3 || !slices.Equal(calls[:3], []string{"searched 1000", "searched 2000", "written 1000"}) {
			t.Errorf("%s: calls %q, %v", name, calls, err)
		}
	}
}

// TestWidestCSV exports as many properties of two types as a CSV file can have, and one more. An
// import reads what an export writes.
func TestWidestCSV(t *testing.T) {
	race.SkipOneGoroutine(t)
	const most, each = (100_000 - 3) / 2, 250
	var entities []edm.Entity
	for i := range 2 * most {
		if i%each == 0 || i == most {
			entities = append(entities, edm.Entity{Key: edm.Key{Partition: "p", Row: fmt.Sprint(i)}})
		}
		v := edm.Int32(1)
		if i >= most {
			v = edm.Boolean(true)
		}
		e := &entities[len(entities)-1]
		e.Properties = append(e.Properties, edm.Property{Name: fmt.Sprint("P", i%most), Value: v})
	}
	for range 2 {
		var file bytes.Buffer
		rows, err := transfer.ExportCSV(t.Context(), storeOf(t, entities), "Tab", store.Query{}, &file, transfer.ExportOptions{})
		if wide := len(entities[0].Properties) > each; wide != (err != nil) {
			t.Fatalf("%d rows, error %v", rows, err)
		} else if !wide {
			if _, err := transfer.NewReader(&file, transfer.ReadOptions{Format: transfer.CSV}).Next(); err != nil {
				t.Fatal(err)
			}
		}
		last := &entities[len(entities)-1]
		entities[0].Properties = append(entities[0].Properties, edm.Property{Name: "Other", Value: edm.Int32(1)})
		last.Properties = append(last.Properties, edm.Property{Name: "Other", Value: edm.Boolean(true)})
	}
}
