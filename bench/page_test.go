package bench

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

const (
	pageAccount = "bench"
	pageTable   = "People"
	pageRows    = 20_000
)

var pageKey = base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))

// fillers generate the entities of the benchmarks of pages and exports: 13 properties in 230
// bytes, and 10 properties in 1 KiB, most of which is one String.
var fillers = []struct {
	name string
	fill func() func(i int, e *edm.Entity)
}{
	{"entity=230B", func() func(int, *edm.Entity) {
		d := NewDataset(Shape{Partitions: pageRows / 1000, Rows: 1000}, 1)
		return func(i int, e *edm.Entity) { d.Fill(i, i, e) }
	}},
	{"entity=1KiB", func() func(int, *edm.Entity) {
		return func(i int, e *edm.Entity) {
			e.Key = edm.Key{Partition: fmt.Sprintf("p%05d", i/1000), Row: fmt.Sprintf("%09d", i)}
			e.Properties = edm.Properties{
				{Name: "Rating", Value: edm.Int32(int32(i))},
				{Name: "Active", Value: edm.Boolean(i%2 == 0)},
				{Name: "Price", Value: edm.Double(float64(i) + 0.25)},
				{Name: "Total", Value: edm.Int64(int64(i) * 6364136223846793005 >> 1)},
				{Name: "Made", Value: edm.DateTime(firstTicks + edm.Ticks(i)*1234567891)},
				{Name: "Id", Value: edm.GuidWords(uint64(i)<<32|0x4000, uint64(i)*0x9e3779b97f4a7c15)},
				{Name: "City", Value: edm.String(fmt.Sprintf("city %015d", i))},
				{Name: "Street", Value: edm.String(fmt.Sprintf("street of the number %020d", i))},
				{Name: "Name", Value: edm.String(fmt.Sprintf("name %025d", i))},
				{Name: "Note", Value: edm.String(strings.Repeat(fmt.Sprintf("note %04d of words ", i%10000), 46))},
			}
		}
	}},
}

// openFilled returns a database with all entities in files.
func openFilled(b *testing.B, fill func(i int, e *edm.Entity)) *engine.DB {
	b.Helper()
	db, err := engine.Open("db", engine.Options{FS: vfs.NewMem()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	if err := db.CreateTable(b.Context(), pageTable); err != nil {
		b.Fatal(err)
	}
	ops := make([]store.Op, 0, 100)
	for i := range pageRows {
		var e edm.Entity
		fill(i, &e)
		ops = append(ops, store.Insert(e))
		if len(ops) == cap(ops) {
			if _, err := db.Apply(b.Context(), pageTable, ops...); err != nil {
				b.Fatal(err)
			}
			ops = ops[:0]
		}
	}
	if err := db.Compact(b.Context()); err != nil {
		b.Fatal(err)
	}
	return db
}

// reportCPU reports the processor time of an entity.
func reportCPU(b *testing.B, before time.Duration, entities int) {
	b.ReportMetric(float64(CPUTime()-before)/float64(entities), "cpu-ns/entity")
}

// discard is a ResponseWriter that discards the body.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkPage measures a page of 1,000 entities of files, without a connection.
func BenchmarkPage(b *testing.B) {
	for _, f := range fillers {
		b.Run(f.name, func(b *testing.B) {
			db := openFilled(b, f.fill())
			now := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
			h, err := server.New(server.Options{
				Accounts: []server.Account{{Name: pageAccount, Keys: []string{pageKey}, Store: db}},
				Now:      func() time.Time { return now },
			})
			if err != nil {
				b.Fatal(err)
			}
			credential, err := sharedkey.NewCredential(pageAccount, pageKey)
			if err != nil {
				b.Fatal(err)
			}
			for _, level := range []string{"nometadata", "minimalmetadata", "fullmetadata"} {
				b.Run("level="+level, func(b *testing.B) {
					r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/"+pageAccount+"/"+pageTable+"()", http.NoBody)
					r.Header.Set("X-Ms-Version", "2019-02-02")
					r.Header.Set("Accept", "application/json;odata="+level)
					if err := credential.SignRequest(r, now); err != nil {
						b.Fatal(err)
					}
					b.ReportAllocs()
					before, n := CPUTime(), 0
					for b.Loop() {
						w := discard{header: http.Header{}}
						h.ServeHTTP(&w, r)
						if w.status != http.StatusOK {
							b.Fatalf("status %d", w.status)
						}
						n++
					}
					reportCPU(b, before, 1000*n)
				})
			}
		})
	}
}

// BenchmarkExport measures exports of entities of files.
func BenchmarkExport(b *testing.B) {
	for _, f := range fillers {
		b.Run(f.name, func(b *testing.B) {
			db := openFilled(b, f.fill())
			for _, c := range []struct {
				name string
				run  func(w io.Writer) (int64, error)
			}{
				{"format=jsonl", func(w io.Writer) (int64, error) {
					return transfer.ExportJSONL(b.Context(), db, pageTable, store.Query{}, w, transfer.ExportOptions{})
				}},
				{"format=csv", func(w io.Writer) (int64, error) {
					return transfer.ExportCSV(b.Context(), db, pageTable, store.Query{}, w, transfer.ExportOptions{})
				}},
			} {
				b.Run(c.name, func(b *testing.B) {
					b.ReportAllocs()
					before, n := CPUTime(), 0
					for b.Loop() {
						rows, err := c.run(io.Discard)
						if err != nil || rows != pageRows {
							b.Fatalf("%d rows: %v", rows, err)
						}
						n += pageRows
					}
					reportCPU(b, before, n)
				})
			}
		})
	}
}
