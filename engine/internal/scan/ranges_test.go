package scan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine/internal/emptyrange"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/store"
)

var parts = []string{"", "a", "aa", "b", "\ud7ff", "\U0001F600", "\ue000"}

// TestQueryRanges compares the ranges of random queries with every key. A key that
// the query returns must be in exactly one range, keys of other tables in none, and
// the ranges must be in the order of the query.
func TestQueryRanges(t *testing.T) {
	const seed = 1
	r := rand.New(rand.NewPCG(seed, 0))
	var used state // of the query before
	part := func() string { return parts[r.IntN(len(parts))] }
	for i := range 3000 {
		var text string
		for k := range 1 + r.IntN(3) {
			if k > 0 {
				text += []string{" and ", " or "}[r.IntN(2)]
			}
			text += fmt.Sprintf("%s %s '%s'", []string{"PartitionKey", "RowKey"}[r.IntN(2)],
				[]string{"eq", "lt", "le", "gt", "ge", "ne"}[r.IntN(6)], part())
		}
		q := store.Query{Reverse: r.IntN(2) == 0}
		if r.IntN(4) > 0 {
			q.Filter = filter.MustParse(text)
		}
		if r.IntN(2) == 0 {
			q.From = &edm.Key{Partition: part(), Row: part()}
		}
		ranges := rangesOf(&used, q)
		for k := range ranges {
			if bytes.Compare(ranges[k].lower, ranges[k].upper) >= 0 {
				t.Fatalf("seed %d, query %d: range %d of %q is empty", seed, i, k, text)
			}
			if k == 0 {
				continue
			}
			a, b := ranges[k-1], ranges[k]
			if q.Reverse {
				a, b = b, a
			}
			if bytes.Compare(a.upper, b.lower) > 0 {
				t.Fatalf("seed %d, query %d: ranges %d and %d of %q overlap or are in the wrong order", seed, i, k-1, k, text)
			}
		}
		for _, p := range parts {
			for _, row := range parts {
				e := edm.Entity{Key: edm.Key{Partition: p, Row: row}}
				want := q.From == nil || q.Reverse && e.Key.Compare(*q.From) <= 0 || !q.Reverse && e.Key.Compare(*q.From) >= 0
				if q.Filter != nil {
					want = want && q.Filter.Match(e.View())
				}
				if in := count(ranges, codec.AppendKey(nil, 16, p, row)); want && in != 1 || in > 1 {
					t.Fatalf("seed %d, query %d: %v is in %d ranges of %+v, filter %q", seed, i, e.Key, in, q, text)
				}
				for _, other := range []uint32{15, 17} {
					if in := count(ranges, codec.AppendKey(nil, other, p, row)); in != 0 {
						t.Fatalf("seed %d, query %d: %v of table %d is in a range", seed, i, e.Key, other)
					}
				}
			}
		}
	}
}

// rangesOf returns the ranges of a query that uses the memory of another one.
func rangesOf(s *state, q store.Query) []keyRange {
	s.reset()
	s.q, s.table = q, 16
	s.setRanges()
	return s.rest
}

func count(ranges []keyRange, key []byte) (n int) {
	for _, r := range ranges {
		if bytes.Compare(r.lower, key) <= 0 && bytes.Compare(key, r.upper) < 0 {
			n++
		}
	}
	return n
}

// TestPointRange gets the ranges of a filter for one key, with and without a From
// after the key.
func TestPointRange(t *testing.T) {
	q := store.Query{Filter: filter.MustParse("PartitionKey eq 'p' and RowKey eq 'r'")}
	var used state
	ranges := rangesOf(&used, q)
	if len(ranges) != 1 || count(ranges, codec.AppendKey(nil, 16, "p", "r")) != 1 || count(ranges, codec.AppendKey(nil, 16, "p", "ra")) != 0 {
		t.Errorf("ranges are %x", ranges)
	}
	q.From = &edm.Key{Partition: "p", Row: "s"}
	if ranges := rangesOf(&used, q); len(ranges) != 0 {
		t.Errorf("ranges after the key are %x", ranges)
	}
}

// broken is a source that has one row and then fails.
type broken struct {
	key  []byte
	err  error
	done bool
}

func (b *broken) SeekGE([]byte) bool   { return true }
func (b *broken) SeekLT([]byte) bool   { return true }
func (b *broken) Next() bool           { b.done = true; return false }
func (b *broken) Prev() bool           { b.done = true; return false }
func (b *broken) Valid() bool          { return !b.done }
func (b *broken) Key() []byte          { return b.key }
func (b *broken) Row() codec.ShapedRow { return new(codec.Row) }
func (b *broken) Close() error         { return nil }
func (b *broken) Err() error {
	if b.done {
		return b.err
	}
	return nil
}

// AddSources implements Data.
func (b *broken) AddSources(s *Sources, _, _ []byte, _ *predicate.Program) { s.all = append(s.all, b) }

// brokenData is the Data of a broken source.
type brokenData struct{ *broken }

func (brokenData) FoundDeleted(_, _ []byte, _ int) {}
func (brokenData) FoundEmpty(_, _ []byte)          {}
func (brokenData) Merged(_, _ int)                 {}
func (brokenData) Empty() emptyrange.List          { return emptyrange.List{} }
func (brokenData) Close()                          {}

// TestFailureAfterEndOfContext ends ctx before a row that cannot be read. There is no
// resume key, so Err must be the failure: the error of ctx would look like the end
// of the result.
func TestFailureAfterEndOfContext(t *testing.T) {
	failure := errors.New("broken")
	key := codec.AppendTrailer(codec.AppendKey(nil, 16, "p", "r"), 1, codec.KindPut)
	ctx, cancel := context.WithCancel(t.Context())
	c := New(ctx, 16, brokenData{&broken{key: key, err: failure}}, store.Query{})
	defer c.Close()
	if !c.Next() {
		t.Fatalf("Next: %v", c.Err())
	}
	cancel()
	if c.Next() || c.Resume() != nil || !errors.Is(c.Err(), failure) {
		t.Errorf("resume at %v, error %v, want %v", c.Resume(), c.Err(), failure)
	}
}
