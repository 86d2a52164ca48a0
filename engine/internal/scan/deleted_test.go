package scan

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/engine/internal/emptyrange"
	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/store"
)

// sorted is a source of entries with the given internal keys.
type sorted struct {
	keys [][]byte
	at   int
}

func (s *sorted) add(row string, kind codec.Kind) {
	s.keys = append(s.keys, codec.AppendTrailer(codec.AppendKey(nil, 16, "p", row), 1, kind))
}

func (s *sorted) search(key []byte) int {
	return sort.Search(len(s.keys), func(i int) bool { return bytes.Compare(s.keys[i], key) >= 0 })
}

func (s *sorted) SeekGE(key []byte) bool { s.at = s.search(key); return s.Valid() }
func (s *sorted) SeekLT(key []byte) bool { s.at = s.search(key) - 1; return s.Valid() }
func (s *sorted) Next() bool             { s.at++; return s.Valid() }
func (s *sorted) Prev() bool             { s.at--; return s.Valid() }
func (s *sorted) Valid() bool            { return s.at >= 0 && s.at < len(s.keys) }
func (s *sorted) Key() []byte            { return s.keys[s.at] }
func (s *sorted) Close() error           { return nil }
func (s *sorted) Err() error             { return nil }
func (s *sorted) Row() codec.ShapedRow {
	if _, _, kind := codec.SplitTrailer(s.Key()); kind == codec.KindDelete {
		return nil
	}
	return new(codec.Row)
}

// told is the Data of a sorted source, which takes down what it is told.
type told struct {
	*sorted
	deleted []string
}

// AddSources adds the entries as those of a file. A walk does not use files.
func (d *told) AddSources(s *Sources, _, _ []byte, _ *predicate.Program) {
	s.files, s.all = append(s.files, nil), append(s.all, d.sorted)
}

func (d *told) FoundDeleted(lower, upper []byte, n int) {
	d.deleted = append(d.deleted, fmt.Sprintf("%q to %q: %d", lower, upper, n))
}

func (d *told) FoundEmpty(_, _ []byte) {}
func (d *told) Merged(_, _ int)        {}
func (d *told) Empty() emptyrange.List { return emptyrange.List{} }
func (d *told) Close()                 {}

// TestFoundDeleted queries, in both directions, ranges of tombstones between entities. The data is told of
// each that has many, exactly where it is.
func TestFoundDeleted(t *testing.T) {
	for _, lens := range [][]int{
		{minDeletedRange},
		{minDeletedRange - 1, 1},
		{minDeletedRange + 1, 3, 2 * minDeletedRange},
	} {
		var s sorted
		var want []string
		for i, n := range lens {
			s.add(fmt.Sprint(i), codec.KindPut)
			for j := range n {
				s.add(fmt.Sprintf("%d-%04d", i, j), codec.KindDelete)
			}
			if n >= minDeletedRange {
				lower := codec.AppendKey(nil, 16, "p", fmt.Sprintf("%d-0000", i))
				upper := append(codec.AppendKey(nil, 16, "p", fmt.Sprintf("%d-%04d", i, n-1)), 0)
				want = append(want, fmt.Sprintf("%q to %q: %d", lower, upper, n))
			}
		}
		for _, reverse := range []bool{false, true} {
			d := &told{sorted: &s}
			c := New(t.Context(), 16, d, store.Query{Limit: 2 * len(lens), Reverse: reverse})
			n := 0
			for c.Next() {
				n++
			}
			if err := c.Close(); err != nil || n != len(lens) {
				t.Fatalf("%d entities, error %v, want %d", n, err, len(lens))
			}
			if reverse {
				slices.Reverse(d.deleted)
			}
			if diff := cmp.Diff(want, d.deleted); diff != "" {
				t.Errorf("ranges of %d tombstones, reverse %t, -want +got:\n%s", lens, reverse, diff)
			}
		}
	}
}
