package bulk

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest"
)

// racing is a store in which another client changes the first two rows of a partition right
// before the first Apply: one is deleted and one does not match any more. The others wait for it.
type racing struct {
	store.Store
	change sync.Once
	err    error // of the change
}

func (r *racing) Apply(ctx context.Context, table string, ops ...store.Op) ([]store.Result, error) {
	r.change.Do(func() {
		changed := edm.Entity{Key: edm.Key{Partition: "p", Row: "001"}, Properties: edm.Properties{{Name: "N", Value: edm.Int32(-1)}}}
		_, r.err = r.Store.Apply(ctx, table, store.Delete(edm.Key{Partition: "p", Row: "000"}, store.Any), store.InsertOrReplace(changed))
	})
	if r.err != nil {
		return nil, r.err
	}
	return r.Store.Apply(ctx, table, ops...)
}

// filled returns a store with a table of n rows in each of two partitions. Their property N
// is their number.
func filled(t *testing.T, n int) store.Store {
	t.Helper()
	s := storetest.NewMap(nil)
	if err := s.CreateTable(t.Context(), "Rows"); err != nil {
		t.Fatal(err)
	}
	for i := range 2 * n {
		key := edm.Key{Partition: []string{"p", "q"}[i/n], Row: fmt.Sprintf("%03d", i%n)}
		e := edm.Entity{Key: key, Properties: edm.Properties{{Name: "N", Value: edm.Int32(int32(i % n))}}}
		if _, err := s.Apply(t.Context(), "Rows", store.Insert(e)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestDelete(t *testing.T) {
	for _, c := range []struct {
		name   string
		filter string
		race   bool
		want   Deleted
		left   int64
	}{
		{"all", "", false, Deleted{Rows: 500}, 0},
		{"matches", "N ge 100", false, Deleted{Rows: 300}, 200},
		{"matches of one partition", "N ge 100 and PartitionKey eq 'q'", false, Deleted{Rows: 150}, 350},
		{"no match", "N gt 1000", false, Deleted{}, 500},
		{"all while others write", "", true, Deleted{Rows: 499}, 0},
		{"matches while others write", "N ge 0 and PartitionKey eq 'p'", true, Deleted{Rows: 248, Changed: 1}, 251},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := filled(t, 250)
			if c.race {
				s = &racing{Store: s}
			}
			e, err := filter.Parse(c.filter)
			if err != nil {
				t.Fatal(err)
			}
			last := int64(0)
			got, err := Delete(t.Context(), s, "Rows", e, func(rows int64) { last = rows })
			if err != nil || got != c.want || last != c.want.Rows {
				t.Errorf("got %+v, progress %d and error %v, want %+v", got, last, err, c.want)
			}
			if left, err := Count(t.Context(), s, "Rows", store.Query{}, func(int64) {}); err != nil || left != c.left {
				t.Errorf("%d rows are left and error %v, want %d", left, err, c.left)
			}
		})
	}
}

// TestDeleteInterrupted ends a Delete at its first progress. A second one goes on.
func TestDeleteInterrupted(t *testing.T) {
	s := filled(t, 900)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first, err := Delete(ctx, s, "Rows", filter.MustParse("N ge 0"), func(int64) { cancel() })
	if err == nil || first.Rows == 0 {
		t.Fatalf("got %+v and error %v, want some rows and an error", first, err)
	}
	second, err := Delete(t.Context(), s, "Rows", filter.MustParse("N ge 0"), func(int64) {})
	if err != nil || first.Rows+second.Rows != 1800 {
		t.Errorf("deleted %d and %d rows with error %v, want 1800", first.Rows, second.Rows, err)
	}
}
