package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres/internal/scan"
	"github.com/tablerock-db/tablerock/store/postgres/internal/wire"
	"github.com/tablerock-db/tablerock/store/postgres/pgtest"
)

// longPartition returns an entity of a partition whose name is too long for tr_entities.
func longPartition(first string) edm.Entity {
	return edm.Entity{Key: edm.Key{Partition: first + strings.Repeat("\u4e00", 1000), Row: "x"}}
}

// TestLongKeyAppears inserts the first long key of a table while a query runs, before the
// position of the query. Its rows stay in order.
func TestLongKeyAppears(t *testing.T) {
	t.Parallel()
	s := openURL(t, pgtest.Shared(t).NewDatabase(t), &Options{AllowAsync: true})
	s.makeTable(t)
	const rows = 1100 // more than one chunk
	for i := 0; i < rows; i += 100 {
		var ops []store.Op
		for j := range 100 {
			ops = append(ops, store.Insert(one(fmt.Sprintf("%04d", i+j), 1)))
		}
		s.apply(t, ops...)
	}
	for _, reverse := range []bool{false, true} {
		long := longPartition("a")
		if reverse {
			long = longPartition("z")
		}
		account := &scan.Account{Name: s.account, Shapes: &s.db.shapes, Read: s.read, Usable: s.usable}
		c := scan.Query(t.Context(), account, people, store.Query{Reverse: reverse})
		var got []string
		for c.Next() {
			if got = append(got, c.Row().Key().Partition[:1]+c.Row().Key().Row); len(got) == 1 {
				s.apply(t, store.Insert(long))
			}
		}
		if reverse {
			slices.Reverse(got)
		}
		if c.Err() != nil || !slices.IsSorted(got) || len(got) != rows {
			t.Errorf("reverse %v: %d rows, in order %v, error %v; want %d in order", reverse, len(got), slices.IsSorted(got), c.Err(), rows)
		}
		_ = c.Close()
		s.apply(t, store.Delete(long.Key, store.Any))
		s.run(t, "UPDATE tr_tables SET long = false")
	}
}

// TestLongPartitionDeleted deletes the next long partition between the two statements of a
// query that find it.
func TestLongPartitionDeleted(t *testing.T) {
	t.Parallel()
	for _, q := range []struct {
		reverse bool
		after   int // reads that end with the first of the two statements
		gone    string
		want    []string
	}{
		{false, 3, "a", []string{"b", "c"}},
		{true, 2, "c", []string{"b", "a"}},
	} {
		s := openURL(t, pgtest.Shared(t).NewDatabase(t), &Options{AllowAsync: true})
		s.makeTable(t)
		for _, p := range []string{"a", "b", "c"} {
			s.apply(t, store.Insert(longPartition(p)))
		}
		reads := 0
		read := func(ctx context.Context, f func(c *wire.Conn) error) error {
			err := s.read(ctx, f)
			if reads++; reads == q.after {
				s.apply(t, store.Delete(longPartition(q.gone).Key, store.Any))
			}
			return err
		}
		account := &scan.Account{Name: s.account, Shapes: &s.db.shapes, Read: read, Usable: s.usable}
		c := scan.Query(t.Context(), account, people, store.Query{Reverse: q.reverse})
		var got []string
		for c.Next() {
			got = append(got, c.Row().Key().Partition[:1])
		}
		if c.Err() != nil || !slices.Equal(got, q.want) {
			t.Errorf("reverse %v: got %v, error %v, want %v", q.reverse, got, c.Err(), q.want)
		}
		_ = c.Close()
	}
}

// TestLastPartitionDeleted deletes the last long partition of a range between the two statements of a query
// that find it. The next one, whose name begins with the same bytes, is not of the range.
func TestLastPartitionDeleted(t *testing.T) {
	t.Parallel()
	low, high := longPartition("p"), longPartition("p")
	low.Key.Partition += "1"
	high.Key.Partition += "2"
	var open filter.Bound
	for _, q := range []struct {
		query store.Query
		after int // reads that end with the first of the two statements
		last  edm.Entity
	}{
		{store.Query{Filter: filter.Keys(open, filter.Bound{Kind: filter.AfterPartition, Key: low.Key})}, 3, low},
		{store.Query{Filter: filter.Keys(filter.Bound{Kind: filter.BeforePartition, Key: high.Key}, open), Reverse: true}, 2, high},
	} {
		s := openURL(t, pgtest.Shared(t).NewDatabase(t), &Options{AllowAsync: true})
		s.makeTable(t)
		s.apply(t, store.Insert(low))
		s.apply(t, store.Insert(high))
		reads := 0
		read := func(ctx context.Context, f func(c *wire.Conn) error) error {
			err := s.read(ctx, f)
			if reads++; reads == q.after {
				s.apply(t, store.Delete(q.last.Key, store.Any))
			}
			return err
		}
		account := &scan.Account{Name: s.account, Shapes: &s.db.shapes, Read: read, Usable: s.usable}
		c := scan.Query(t.Context(), account, people, q.query)
		for c.Next() {
			key := c.Row().Key()
			t.Errorf("reverse %v: the query returns the row %q, which is not of its range", q.query.Reverse, key.Partition[len(key.Partition)-1:])
		}
		if err := c.Err(); err != nil || reads < q.after {
			t.Errorf("reverse %v: %d reads, error %v", q.query.Reverse, reads, err)
		}
		_ = c.Close()
	}
}

// TestResumeBetweenLongPartitions ends the ctx of a query after each row. The query that resumes it returns the
// next row, also if the last one is the first row of its partition.
func TestResumeBetweenLongPartitions(t *testing.T) {
	t.Parallel()
	s := openURL(t, pgtest.Shared(t).NewDatabase(t), &Options{AllowAsync: true})
	s.makeTable(t)
	want := []string{"a", "b", "c"}
	for _, p := range want {
		e := longPartition(p)
		e.Key.Row = ""
		s.apply(t, store.Insert(e))
	}
	for _, reverse := range []bool{false, true} {
		var got []string
		var from *edm.Key
		for more := true; more && len(got) < 10; {
			ctx, cancel := context.WithCancel(t.Context())
			c := s.Query(ctx, people, store.Query{From: from, Reverse: reverse})
			if c.Next() {
				got = append(got, c.Row().Key().Partition[:1])
			}
			cancel()
			for c.Next() {
				t.Error("a row after the end of the ctx")
			}
			from = c.Resume()
			more = from != nil
			_ = c.Close()
		}
		if reverse {
			slices.Reverse(got)
		}
		if !slices.Equal(got, want) {
			t.Errorf("reverse %v: the rows are of %v, want %v", reverse, got, want)
		}
	}
}

// TestResumeBeforeLongKey ends the ctx of a query while it looks for the first row of its second range. The next
// row has a long key, and a row after it is so large that it needs two reads.
func TestResumeBeforeLongKey(t *testing.T) {
	t.Parallel()
	s := openURL(t, pgtest.Shared(t).NewDatabase(t), &Options{AllowAsync: true})
	s.makeTable(t)
	entity := func(p, r string) edm.Entity { return edm.Entity{Key: edm.Key{Partition: p, Row: r}} }
	large := entity("b", "m")
	large.Properties = edm.Properties{{Name: "B", Value: edm.Binary(make([]byte, 10_000))}}
	s.apply(t, store.Insert(entity("a", "1")))
	s.apply(t, store.Insert(entity("b", "a"+strings.Repeat("\u4e00", 1000))), store.Insert(large))
	f, err := filter.Parse("PartitionKey eq 'a' or PartitionKey eq 'b'")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	rowsOf := func(c store.Cursor) {
		for c.Next() {
			got = append(got, c.Row().Key().Row[:1])
		}
		_ = c.Close()
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reads := 0
	read := func(ctx context.Context, f func(c *wire.Conn) error) error {
		err := s.read(ctx, f)
		if reads++; reads == 3 { // the first one of the second range
			cancel()
		}
		return err
	}
	c := scan.Query(ctx, &scan.Account{Name: s.account, Shapes: &s.db.shapes, Read: read, Usable: s.usable}, people, store.Query{Filter: f})
	rowsOf(c)
	if !slices.Equal(got, []string{"1"}) || c.Resume() == nil {
		t.Fatalf("before the end of the ctx: rows %v, resume %v, error %v", got, c.Resume(), c.Err())
	}
	rowsOf(s.Query(t.Context(), people, store.Query{Filter: f, From: c.Resume()}))
	if want := []string{"1", "a", "m"}; !slices.Equal(got, want) {
		t.Errorf("the query and the one that resumes it return the rows %v, want %v", got, want)
	}
}

// TestLongRowKeysOverSocket replaces the entities of a batch whose RowKeys are as long as those
// of tr_entities can be. The buffers of a socket are small: answers with keys would fill it
// before the server has read the batch.
func TestLongRowKeysOverSocket(t *testing.T) {
	t.Parallel()
	b := openDatabase(t)
	_, s := b.connect(pgtest.SocketURL(t, b.url))
	batch := func(kind store.OpKind, size int) (ops []store.Op) {
		for i := range 100 {
			e := edm.Entity{
				Key:        edm.Key{Partition: "p", Row: fmt.Sprintf("%s%03d", strings.Repeat("中", 860), i)},
				Properties: edm.Properties{{Name: "B", Value: edm.Binary(make([]byte, size))}},
			}
			ops = append(ops, store.Op{Kind: kind, Entity: e, IfMatch: store.Any})
		}
		return ops
	}
	_, err := s.Apply(t.Context(), people, batch(store.OpInsertOrReplace, 10)...)
	b.must(err)
	ended := make(chan error, 1)
	go func() {
		_, err := s.Apply(context.WithoutCancel(t.Context()), people, batch(store.OpReplace, 39_000)...)
		ended <- err
	}()
	select {
	case err := <-ended:
		b.must(err)
	case <-time.After(time.Minute):
		t.Error("the batch has no answer")
		pgtest.Exec(t, b.url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'ClientWrite'")
		<-ended
	}
}
