package lsm

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/bound"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/runs"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestSpansOfClippedFiles reads the spans of a source of which one file is clipped where
// another one begins, in both directions.
func TestSpansOfClippedFiles(t *testing.T) {
	o := smallOptions()
	o.FileBytes, o.TierRuns, o.GroupBytes = 1<<20, 3, 512
	h := newHarness(t, vfs.NewMem(), o, 34)
	for _, c := range []struct{ from, to int }{{0, 600}, {201, 400}} {
		for n := c.from; n < c.to; n += 2 {
			h.write(orderedKey(n), h.text(n, 300))
		}
		h.flush()
	}
	for cut := 130; cut <= 150; cut += 2 {
		checkClipped(t, h, cut)
	}
	h.finish()
}

// checkClipped clips the file with even keys at cut and at 450.
func checkClipped(t *testing.T, h *harness, cut int) {
	v := h.tree.Version()
	defer v.Unref()
	var ssts []*runs.SST
	for _, r := range v.runs {
		for _, s := range r.SSTs {
			rest := []*runs.SST{s}
			if bytes.Equal(r.SSTs[0].Lo, orderedKey(0)) {
				var err error
				rest, err = s.Without(orderedKey(cut), orderedKey(450), 0)
				must(t, err)
			}
			ssts = append(ssts, rest...)
		}
	}
	clipped, err := newVersion(h.tree, ssts)
	must(t, err)
	lower, upper := orderedKey(0), orderedKey(1000)
	var want [][]byte
	for n := range 600 {
		if n%2 == 0 && (n < cut || n >= 450) || n%2 == 1 && n > 200 && n < 400 {
			want = append(want, orderedKey(n))
		}
	}
	for _, reverse := range []bool{false, true} {
		for _, extend := range []bool{false, true} {
			sources := clipped.Sources(nil, sstable.IterOptions{Lower: lower, Upper: upper, Snapshot: h.seq})
			if len(sources) != 1 {
				t.Fatalf("%d sources", len(sources))
			}
			got := spanKeys(t, sources[0], lower, upper, reverse, extend)
			must(t, sources[0].Close())
			if reverse {
				slices.Reverse(got)
			}
			if !slices.EqualFunc(got, want, bytes.Equal) {
				t.Errorf("clipped at %d, reverse %v, extended %v: %d keys, want %d", cut, reverse, extend, len(got), len(want))
			}
		}
	}
}

// spanKeys returns the keys of all rows in the spans of s. With extend, it extends spans as far as
// it can.
func spanKeys(t *testing.T, s *Source, lower, upper []byte, reverse, extend bool) (keys [][]byte) {
	t.Helper()
	at, find, rows, to := lower, s.SpanGE, s.Selected(), upper
	move := rows.Next
	if reverse {
		at, find, move, to = upper, s.SpanLT, rows.Prev, lower
	}
	var sel *sstable.Selector
	if extend {
		sel = sstable.NewSelector(predicate.Compile(predicate.NewCompare("RowKey", predicate.Ne, edm.String("none"))))
	}
	for find(at) {
		it, err := s.SpanIterator()
		must(t, err)
		if extend && s.Span().Selectable() {
			it.Extend(s.Span(), reverse, to, 1<<20)
		}
		span := *s.Span()
		if bytes.Compare(span.Lower, span.Upper) >= 0 || !span.Selectable() {
			t.Fatalf("span from %q to %q", span.Lower, span.Upper)
		}
		w := sstable.Window{Lower: span.Lower, Upper: span.Upper, Reverse: reverse, ByRows: true}
		_, _, err = it.Select(&span, &w, sel)
		for {
			must(t, err)
			for ok := move(); ok; ok = move() {
				user, _ := bound.Split(rows.Key())
				keys = append(keys, bytes.Clone(user))
			}
			if !it.More() {
				break
			}
			_, _, err = it.SelectNext(sel)
		}
		if at = bytes.Clone(span.Upper); reverse {
			at = bytes.Clone(span.Lower)
		}
	}
	return keys
}

// TestSpanAfterFailure asks a source that has failed for a span. Without one, the query would
// go on without the rows of the source.
func TestSpanAfterFailure(t *testing.T) {
	h := newHarness(t, vfs.NewMem(), smallOptions(), 35)
	for n := range 100 {
		h.write(orderedKey(n), h.text(n, 300))
	}
	h.flush()
	v := h.tree.Version()
	for _, reverse := range []bool{false, true} {
		lower, upper := orderedKey(0), orderedKey(1000)
		s := v.Sources(nil, sstable.IterOptions{Lower: lower, Upper: upper, Snapshot: h.seq})[0]
		s.err = errors.New("bad sector")
		found := false
		if reverse {
			found = s.SpanLT(upper)
		} else {
			found = s.SpanGE(lower)
		}
		if !found || s.Span().Selectable() {
			t.Errorf("reverse %v: found %v, want a span whose rows are read one by one", reverse, found)
		}
		if !reverse { // the rows can be read after all, and the next span is behind them
			end := append(bytes.Clone(s.ssts[0].Hi), 0)
			if !s.SeekGE(lower) {
				t.Fatal(s.Err())
			}
			if first, ok := s.it.SpanGE(lower); !ok || first.Upper == nil || bytes.Compare(first.Upper, end) >= 0 {
				t.Fatal("the first sstable has one group")
			}
			if s.SpanGE(end) && bytes.Compare(s.Span().Upper, end) <= 0 {
				t.Errorf("the span from %x on ends at %x", end, s.Span().Upper)
			}
		}
		must(t, s.Close())
	}
	v.Unref()
	h.finish()
}

// TestNewerThan compares spans of runs. A compaction writes older versions to a run with a greater
// number, but in a higher tier.
func TestNewerThan(t *testing.T) {
	source := func(tier uint32, run uint64) *Source {
		return &Source{ssts: []*runs.SST{{Meta: manifest.File{Tier: tier, Run: run}}}}
	}
	for _, c := range []struct {
		tier, otherTier uint32
		run, otherRun   uint64
		want            bool
	}{
		{0, 0, 5, 4, true},
		{0, 0, 4, 5, false},
		{0, 0, 5, 5, false},
		{0, 1, 4, 5, true},
		{1, 0, 5, 4, false},
		{manifest.BottomTier, 1, 5, 4, false},
	} {
		if got := source(c.tier, c.run).NewerThan(source(c.otherTier, c.otherRun)); got != c.want {
			t.Errorf("run %d of tier %d is newer than run %d of tier %d: %v, want %v", c.run, c.tier, c.otherRun, c.otherTier, got, c.want)
		}
	}
}
