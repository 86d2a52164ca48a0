package store_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/bench"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

type order struct {
	Region string   `table:",pk"`
	Number string   `table:",rk"`
	ETag   edm.ETag `table:",etag"`
	Total  float64
	Note   *string
}

// openOrders returns a database in memory with the table Orders.
func openOrders(tb testing.TB) *engine.DB {
	tb.Helper()
	db, err := engine.Open("db", engine.Options{FS: vfs.NewMem()})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Error(err)
		}
	})
	if err := db.CreateTable(context.Background(), "Orders"); err != nil {
		tb.Fatal(err)
	}
	return db
}

func TestStructs(t *testing.T) {
	ctx := context.Background()
	db := openOrders(t)
	note := "fragile"
	given := []order{{Region: "eu", Number: "1", Total: 5, Note: &note}, {Region: "eu", Number: "2", Total: 6}}
	results, err := store.Upsert(ctx, db, "Orders", given...)
	if err != nil || len(results) != 2 {
		t.Fatalf("got %v and %v", results, err)
	}
	got, err := store.Get[order](ctx, db, "Orders", edm.Key{Partition: "eu", Row: "1"})
	if err != nil || got.ETag != results[0].ETag || got.Total != 5 || got.Note == nil || *got.Note != note {
		t.Errorf("got %+v and %v, want %+v with the ETag %s", got, err, given[0], results[0].ETag)
	}

	// A field that is null is not kept, and a pointer can be given.
	got.Note = nil
	if _, err := store.Upsert(ctx, db, "Orders", &got); err != nil {
		t.Fatal(err)
	}
	changed, err := store.Get[order](ctx, db, "Orders", edm.Key{Partition: "eu", Row: "1"})
	if err != nil || changed.Note != nil || changed.ETag == got.ETag {
		t.Errorf("got %+v and %v after the second write of %+v", changed, err, got)
	}

	var numbers []string
	all := store.All[order](ctx, db, "Orders", store.Query{Filter: filter.MustParse("Total lt 10")})
	for range 2 { // a sequence can be ranged over again
		for o, err := range all {
			if err != nil {
				t.Fatal(err)
			}
			numbers = append(numbers, o.Number)
		}
	}
	for o := range all {
		numbers = append(numbers, o.Number)
		break
	}
	if want := []string{"1", "2", "1", "2", "1"}; !slices.Equal(numbers, want) {
		t.Errorf("got %v, want %v", numbers, want)
	}
}

// hexDigits is stored as hexadecimal digits, which it decodes in the memory that it gets.
type hexDigits string

func (s hexDigits) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, []byte(s)), nil }

func (s *hexDigits) UnmarshalText(text []byte) error {
	n, err := hex.Decode(text, text)
	*s = hexDigits(text[:n])
	return err
}

// TestStructChangesText reads a text that UnmarshalText changes from the log, and from a file.
func TestStructChangesText(t *testing.T) {
	ctx := context.Background()
	db := openOrders(t)
	type order struct {
		edm.Key
		Code hexDigits
	}
	given := order{edm.Key{Partition: "eu", Row: "1"}, "ab"}
	if _, err := store.Upsert(ctx, db, "Orders", given); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for range 2 {
			if got, err := store.Get[order](ctx, db, "Orders", given.Key); err != nil || got != given {
				t.Errorf("got %v and %v, want %v", got, err, given)
			}
		}
		if err := db.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStructFailures checks that no struct is returned beside an error.
func TestStructFailures(t *testing.T) {
	ctx := context.Background()
	db := openOrders(t)
	key := edm.Key{Partition: "eu", Row: "2"}
	bad := edm.Entity{Key: key, Properties: edm.Properties{{Name: "Total", Value: edm.String("many")}}}
	good, err := edm.Marshal(order{Region: "eu", Number: "1", Total: 5})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Apply(ctx, "Orders", store.Insert(good), store.Insert(bad)); err != nil {
		t.Fatal(err)
	}
	var field *edm.FieldError
	if o, err := store.Get[order](ctx, db, "Orders", key); !errors.As(err, &field) || o != (order{}) || !strings.Contains(err.Error(), `RowKey "2"`) {
		t.Errorf("got %+v and %v, want the FieldError of Total", o, err)
	}
	if o, err := store.Get[order](ctx, db, "Orders", edm.Key{}); !errors.Is(err, store.ErrEntityNotFound) || o != (order{}) {
		t.Errorf("got %+v and %v, want ErrEntityNotFound", o, err)
	}
	var got []order
	var failures []error
	for o, err := range store.All[order](ctx, db, "Orders", store.Query{}) {
		got, failures = append(got, o), append(failures, err)
	}
	if len(got) != 2 || failures[0] != nil || !errors.As(failures[1], &field) || got[1] != (order{}) {
		t.Errorf("got %+v and %v, want an order, then the FieldError of Total", got, failures)
	}
	failures = nil
	for o, err := range store.All[order](ctx, db, "Missing", store.Query{}) {
		if failures = append(failures, err); o != (order{}) {
			t.Errorf("got %+v beside an error", o)
		}
	}
	if len(failures) != 1 || !errors.Is(failures[0], store.ErrTableNotFound) {
		t.Errorf("got %v, want ErrTableNotFound", failures)
	}

	type wide struct {
		edm.Key
		N uint64
	}
	var op *store.OpError
	_, err = store.Upsert(ctx, db, "Orders", wide{Key: key}, wide{N: 1 << 63})
	if !errors.As(err, &op) || op.Index != 1 || op.Executed || !errors.As(err, &field) {
		t.Errorf("got %v, want the FieldError of operation 1", err)
	}
	_, err = store.Upsert(ctx, db, "Orders", wide{Key: key}, wide{})
	if !errors.As(err, &op) || op.Index != 1 {
		t.Errorf("got %v, want an error for the other partition", err)
	}
	if o, err := db.Get(ctx, "Orders", key); err != nil || !o.Properties.Get("Total").Equal(edm.String("many")) {
		t.Errorf("got %v and %v: a failed Upsert wrote", o, err)
	}
}

// BenchmarkAll reads 1,000 entities as structs, and by a loop over the cursor.
func BenchmarkAll(b *testing.B) {
	ctx := context.Background()
	db := openOrders(b)
	const n = 1000
	for i := range n / 100 {
		batch := make([]order, 100)
		for j := range batch {
			batch[j] = order{Region: "eu", Number: fmt.Sprintf("%06d", i*100+j), Total: float64(j)}
		}
		if _, err := store.Upsert(ctx, db, "Orders", batch...); err != nil {
			b.Fatal(err)
		}
	}
	byHand := func(yield func(o order, err error) bool) {
		c := db.Query(ctx, "Orders", store.Query{})
		defer c.Close()
		for c.Next() {
			r := c.Row()
			k := r.Key()
			o := order{Region: k.Partition, Number: k.Row, ETag: r.Timestamp().ETag()}
			for i := range r.Len() {
				switch name, v := r.At(i); name {
				case "Total":
					o.Total, _ = v.Double()
				case "Note":
					if text, ok := v.Text(); ok {
						o.Note = &text
					}
				}
			}
			if !yield(o, nil) {
				return
			}
		}
		if err := c.Err(); err != nil {
			yield(order{}, err)
		}
	}
	for name, all := range map[string]func(func(order, error) bool){
		"by=hand": byHand, "by=All": store.All[order](ctx, db, "Orders", store.Query{}),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			cpu := bench.CPUTime()
			for b.Loop() {
				rows := 0
				for o, err := range all {
					if rows++; err != nil || o.Region != "eu" {
						b.Fatal(o, err)
					}
				}
				if rows != n {
					b.Fatal(rows)
				}
			}
			b.ReportMetric(float64(bench.CPUTime()-cpu)/float64(b.N)/n, "cpu-ns/row")
		})
	}
}
