package postgres

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres/pgtest"
)

// benchmarkStore returns a store on a new database, with the table people.
func benchmarkStore(b *testing.B, address string) *Store {
	b.Helper()
	o := &Options{AllowAsync: true}
	if err := Init(b.Context(), address, o); err != nil {
		b.Fatal(err)
	}
	d, err := Connect(b.Context(), address, o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { d.Close() })
	s, err := d.Account(b.Context(), "bench")
	if err != nil {
		b.Fatal(err)
	}
	if err := s.CreateTable(b.Context(), people); err != nil {
		b.Fatal(err)
	}
	return s
}

// BenchmarkOperations reports the processor time of PostgreSQL and of this process for a call,
// with 16 callers, on a server that syncs each commit. Each write is in a partition of its own.
//
//	go test ./store/postgres -run '^$' -bench 'Operations|Scan' -benchtime 5000x
func BenchmarkOperations(b *testing.B) {
	server := pgtest.Start(b)
	s := benchmarkStore(b, server.NewDatabase(b))
	var inserted atomic.Int64
	apply := func(ops ...store.Op) error {
		_, err := s.Apply(b.Context(), people, ops...)
		return err
	}
	next := func(i int64) edm.Entity { return twelve(fmt.Sprintf("p%07d", i), "r") }
	for _, c := range []struct {
		name string
		call func(i int64) error // i counts the calls
	}{
		{"insert", func(int64) error { return apply(store.Insert(next(inserted.Add(1)))) }},
		{"get", func(i int64) error {
			_, err := s.Get(b.Context(), people, next(1+i*7919%inserted.Load()).Key)
			return err
		}},
		{"replace", func(i int64) error { return apply(store.Replace(next(1+i%inserted.Load()), store.Any)) }},
		{"upsert", func(i int64) error { return apply(store.InsertOrReplace(next(1 + i%inserted.Load()))) }},
		{"merge", func(i int64) error { return apply(store.Merge(next(1+i%inserted.Load()), store.Any)) }},
		{"batch=100", func(i int64) error {
			var ops []store.Op
			for row := range 100 {
				ops = append(ops, store.Insert(twelve(fmt.Sprintf("batch%d", i), fmt.Sprintf("r%03d", row))))
			}
			return apply(ops...)
		}},
	} {
		var calls atomic.Int64
		b.Run(c.name, func(b *testing.B) {
			serverBefore, before := server.CPU(), cpu()
			b.SetParallelism(8) // of two processors: 16 callers
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := c.call(calls.Add(1)); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(server.CPU()-serverBefore)/float64(b.N), "server-ns/op")
			b.ReportMetric(float64(cpu()-before)/float64(b.N), "client-ns/op")
		})
	}
}
