package postgres

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres/pgtest"
)

// twelve returns an entity with twelve properties, about 250 bytes.
func twelve(p, r string) edm.Entity {
	prop := func(name string, v edm.Value) edm.Property { return edm.Property{Name: name, Value: v} }
	return edm.Entity{Key: edm.Key{Partition: p, Row: r}, Properties: edm.Properties{
		prop("Name", edm.String("Ada Lovelace")), prop("Mail", edm.String("ada@example.org")),
		prop("City", edm.String("London")), prop("Note", edm.String("wrote the first program")),
		prop("Age", edm.Int32(36)), prop("Visits", edm.Int64(1<<40)), prop("Score", edm.Double(0.5)),
		prop("Active", edm.Boolean(true)), prop("Seen", edm.DateTime(edm.MaxTicks)),
		prop("Id", edm.GuidWords(1, 2)), prop("Photo", edm.Binary(make([]byte, 32))), prop("Rank", edm.Int32(1)),
	}}
}

// cpu returns the processor time of this process, on Linux.
func cpu() time.Duration {
	text, _ := os.ReadFile("/proc/self/stat")
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// BenchmarkScan reads pages of a table of 100,000 entities, and reports the processor time of
// PostgreSQL and of this process for a row.
func BenchmarkScan(b *testing.B) {
	server := pgtest.Shared(b)
	address := server.NewDatabase(b)
	s := benchmarkStore(b, address)
	for i := range 1000 {
		ops := make([]store.Op, 100)
		for j := range ops {
			ops[j] = store.Insert(twelve(fmt.Sprintf("p%04d", i/10), fmt.Sprintf("r%08d", 100*i+j)))
		}
		if _, err := s.Apply(b.Context(), people, ops...); err != nil {
			b.Fatal(err)
		}
	}
	pgtest.Exec(b, address, "VACUUM ANALYZE tr_entities")
	for _, c := range []struct {
		name string
		q    store.Query
	}{
		{"page=1000", store.Query{Limit: 1000, BudgetBytes: 4 << 20}},
		{"page=100", store.Query{Limit: 100, BudgetBytes: 4 << 20}},
		{"page=1000/order=reverse", store.Query{Limit: 1000, Reverse: true}},
		{"page=all", store.Query{}},
		{"page=1000/filter=Age", store.Query{Limit: 1000, Filter: filter.MustParse("Age gt 30")}},
	} {
		b.Run(c.name, func(b *testing.B) {
			serverBefore, before, rows := server.CPU(), cpu(), 0
			q := c.q
			for b.Loop() {
				cursor := s.Query(b.Context(), people, q)
				for cursor.Next() {
					rows++
				}
				if err := cursor.Err(); err != nil {
					b.Fatal(err)
				}
				q.From = cursor.Resume()
				_ = cursor.Close()
			}
			b.ReportMetric(float64(server.CPU()-serverBefore)/float64(rows), "server-ns/row")
			b.ReportMetric(float64(cpu()-before)/float64(rows), "client-ns/row")
			b.ReportMetric(float64(b.Elapsed())/float64(rows), "ns/row")
		})
	}
}
