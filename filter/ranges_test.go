package filter

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/race"
)

// Bounds for expectations.
func atPartition(p string) Bound    { return Bound{BeforePartition, edm.Key{Partition: p}} }
func afterPartition(p string) Bound { return Bound{AfterPartition, edm.Key{Partition: p}} }
func atRow(p, r string) Bound       { return Bound{BeforeRow, edm.Key{Partition: p, Row: r}} }
func afterRow(p, r string) Bound    { return Bound{AfterRow, edm.Key{Partition: p, Row: r}} }

func TestRanges(t *testing.T) {
	var open Bound
	all := []Range{{}}
	for _, tt := range []struct {
		text string
		want []Range
	}{
		{"A eq 1", all},
		{"true", all},
		{"not (A eq 1)", all},
		{"Timestamp gt datetime'2020-01-01T00:00:00Z'", all},
		{"false", nil},
		{"A eq 1 and false", nil},
		{"PartitionKey eq 'a'", []Range{{atPartition("a"), afterPartition("a")}}},
		{"'a' eq PartitionKey", []Range{{atPartition("a"), afterPartition("a")}}},
		{"PartitionKey gt 'a'", []Range{{afterPartition("a"), open}}},
		{"'a' lt PartitionKey", []Range{{afterPartition("a"), open}}},
		{"PartitionKey ge 'a'", []Range{{atPartition("a"), open}}},
		{"PartitionKey lt 'a'", []Range{{open, atPartition("a")}}},
		{"PartitionKey le 'a'", []Range{{open, afterPartition("a")}}},
		{"PartitionKey ne 'a'", []Range{{open, atPartition("a")}, {afterPartition("a"), open}}},
		{"not (PartitionKey eq 'a')", []Range{{open, atPartition("a")}, {afterPartition("a"), open}}},
		{"not (PartitionKey ne 'a')", []Range{{atPartition("a"), afterPartition("a")}}},
		{"not (PartitionKey lt 'a' or PartitionKey gt 'b')", []Range{{atPartition("a"), afterPartition("b")}}},
		{"PartitionKey ge 'a' and PartitionKey lt 'b'", []Range{{atPartition("a"), atPartition("b")}}},
		{"PartitionKey ge 'a' and PartitionKey le 'a'", []Range{{atPartition("a"), afterPartition("a")}}},
		{"PartitionKey gt 'a' and PartitionKey lt 'a'", nil},
		{"PartitionKey eq 'a' and PartitionKey eq 'b'", nil},
		{"PartitionKey eq 'a' or PartitionKey eq 'b'", []Range{{atPartition("a"), afterPartition("a")}, {atPartition("b"), afterPartition("b")}}},
		{
			"PartitionKey eq 'b' or PartitionKey eq 'a' or PartitionKey eq 'b'",
			[]Range{{atPartition("a"), afterPartition("a")}, {atPartition("b"), afterPartition("b")}},
		},
		{"PartitionKey le 'a' or PartitionKey gt 'a'", all},
		{"PartitionKey eq 'a' or A eq 1", all},
		{"PartitionKey eq 'a' and A eq 1", []Range{{atPartition("a"), afterPartition("a")}}},

		{"RowKey eq 'x'", all},
		{"RowKey eq 'x' and RowKey eq 'y'", nil},
		{"PartitionKey ge 'a' and RowKey ge 'x'", []Range{{atPartition("a"), open}}},
		{"PartitionKey eq 'a' and RowKey eq 'x'", []Range{{atRow("a", "x"), afterRow("a", "x")}}},
		{"PartitionKey eq 'a' and RowKey ge 'x'", []Range{{atRow("a", "x"), afterPartition("a")}}},
		{"PartitionKey eq 'a' and RowKey gt 'x'", []Range{{afterRow("a", "x"), afterPartition("a")}}},
		{"PartitionKey eq 'a' and RowKey lt 'x'", []Range{{atPartition("a"), atRow("a", "x")}}},
		{"PartitionKey eq 'a' and RowKey le 'x'", []Range{{atPartition("a"), afterRow("a", "x")}}},
		{"PartitionKey eq 'a' and RowKey ne 'x'", []Range{{atPartition("a"), atRow("a", "x")}, {afterRow("a", "x"), afterPartition("a")}}},
		{"PartitionKey eq 'a' and not (RowKey ge 'x')", []Range{{atPartition("a"), atRow("a", "x")}}},
		{"PartitionKey eq 'a' and RowKey ge 'p' and RowKey lt 'q'", []Range{{atRow("a", "p"), atRow("a", "q")}}},
		{"PartitionKey eq 'a' and (RowKey eq '1' or RowKey eq '2')", []Range{{atRow("a", "1"), afterRow("a", "1")}, {atRow("a", "2"), afterRow("a", "2")}}},
		{"PartitionKey eq 'a' and (RowKey eq '1' or A eq 2)", []Range{{atPartition("a"), afterPartition("a")}}},
		{
			"(PartitionKey eq 'a' and RowKey eq '1') or (PartitionKey eq 'b' and RowKey eq '2')",
			[]Range{{atRow("a", "1"), afterRow("a", "1")}, {atRow("b", "2"), afterRow("b", "2")}},
		},
		{
			"(PartitionKey eq 'a' or PartitionKey eq 'b') and RowKey eq '1'",
			[]Range{{atRow("a", "1"), afterRow("a", "1")}, {atRow("b", "1"), afterRow("b", "1")}},
		},
		{"not (PartitionKey ne 'a' or RowKey lt 'x')", []Range{{atRow("a", "x"), afterPartition("a")}}},

		// Comparisons of the whole key.
		{"PartitionKey gt 'a' or (PartitionKey eq 'a' and RowKey ge 'x')", []Range{{atRow("a", "x"), open}}},
		{"PartitionKey ge 'a' and (PartitionKey gt 'a' or RowKey gt 'x')", []Range{{afterRow("a", "x"), open}}},
		{
			"(PartitionKey gt 'a' or (PartitionKey eq 'a' and RowKey ge 'x')) and (PartitionKey lt 'b' or (PartitionKey eq 'b' and RowKey le 'y'))",
			[]Range{{atRow("a", "x"), afterRow("b", "y")}},
		},
		{"not (PartitionKey lt 'a' or (PartitionKey eq 'a' and RowKey lt 'x'))", []Range{{atRow("a", "x"), open}}},
		{
			"(PartitionKey eq 'a' and RowKey ge 'x') or (PartitionKey gt 'a' and PartitionKey lt 'c') or (PartitionKey eq 'c' and RowKey lt 'z')",
			[]Range{{atRow("a", "x"), atRow("c", "z")}},
		},

		// The empty key is the least.
		{"PartitionKey ge ''", all},
		{"PartitionKey lt ''", nil},
		{"PartitionKey eq ''", []Range{{open, afterPartition("")}}},
		{"PartitionKey le ''", []Range{{open, afterPartition("")}}},
		{"PartitionKey ne ''", []Range{{afterPartition(""), open}}},
		{"PartitionKey eq '' and RowKey eq ''", []Range{{open, afterRow("", "")}}},
		{"PartitionKey eq '' and RowKey gt ''", []Range{{afterRow("", ""), afterPartition("")}}},
		{"PartitionKey eq 'a' and RowKey ge ''", []Range{{atPartition("a"), afterPartition("a")}}},
		{"PartitionKey eq 'a' and RowKey lt ''", nil},
		{"PartitionKey eq 'a' and RowKey eq ''", []Range{{atPartition("a"), afterRow("a", "")}}},

		// Keys that cannot be stored.
		{"PartitionKey ge 'a\x01b'", []Range{{afterPartition("a"), open}}},
		{"PartitionKey gt 'a\x1f'", []Range{{afterPartition("a"), open}}},
		{"PartitionKey lt 'a\x01b'", []Range{{open, afterPartition("a")}}},
		{"PartitionKey le 'a\x01b'", []Range{{open, afterPartition("a")}}},
		{"PartitionKey eq 'a\x01b'", nil},
		{"PartitionKey ne 'a\x01b'", all},
		{"PartitionKey lt '\x00'", []Range{{open, afterPartition("")}}},
		{"PartitionKey eq 'a' and RowKey gt 'r\x00\x02'", []Range{{afterRow("a", "r"), afterPartition("a")}}},
		{"PartitionKey ge 'a\uFFFF'", []Range{{atPartition("a\uFFFF"), open}}},
		{"PartitionKey ge 'a/\x7f'", []Range{{atPartition("a/\x7f"), open}}},
		{"PartitionKey ge '" + longA + "'", []Range{{atPartition(longA), open}}},
		{"PartitionKey eq '" + longA + "b'", nil},
		{"PartitionKey ge '" + longA + "b'", []Range{{afterPartition(longA), open}}},
		{"PartitionKey lt '" + longA + "b'", []Range{{open, afterPartition(longA)}}},
		{"PartitionKey lt '" + longA[1:] + "\U0001F600'", []Range{{open, atPartition(longA[1:] + "\uE000")}}},
		{"PartitionKey gt '" + longA[1:] + "\U0001F600'", []Range{{atPartition(longA[1:] + "\uE000"), open}}},
		{"PartitionKey eq '" + longA[2:] + "\U0001F600'", []Range{{atPartition(longA[2:] + "\U0001F600"), afterPartition(longA[2:] + "\U0001F600")}}},

		// Order by code unit: U+1F600 is before U+E000.
		{"PartitionKey ge '\U0001F600' and PartitionKey lt '\uE000'", []Range{{atPartition("\U0001F600"), atPartition("\uE000")}}},
		{"PartitionKey ge '\uE000' and PartitionKey lt '\U0001F600'", nil},
	} {
		if diff := cmp.Diff(tt.want, MustParse(tt.text).Ranges()); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tt.text, diff)
		}
	}
}

func TestKeys(t *testing.T) {
	bounds := []Bound{
		{},
		atPartition(""), atPartition("a"), afterPartition("a"), afterPartition("b"), atPartition("b"),
		atRow("a", "x"), afterRow("a", "x"), atRow("b", "y"), afterRow("b", "y"), afterRow("", ""), atRow("a\x01", "x"), afterRow("a", "x\x02"),
	}
	if Keys(Bound{}, Bound{}) != nil {
		t.Error("Keys without bounds keeps less than everything")
	}
	r := newRand(seed(t))
	for _, from := range bounds {
		for _, to := range bounds {
			e := Keys(from, to)
			for range 100 {
				entity := randomEntity(r)
				if r.IntN(2) == 0 {
					entity.Key = edm.Key{Partition: pick(r, []string{"", "a", "b", "c"}), Row: pick(r, []string{"", "x", "y", "z"})}
				}
				if got, want := e.Match(entity.View()), naiveInside(entity.Key, Range{from, to}); got != want {
					t.Fatalf("Keys(%v, %v) = %s\non %q: got %v, want %v", from, to, e, entity.Key, got, want)
				}
			}
			if e != nil && len(e.Ranges()) > 1 {
				t.Errorf("Keys(%v, %v) has the ranges %v", from, to, e.Ranges())
			}
		}
	}
	e := Keys(atRow("a", "x"), afterRow("b", "y"))
	if diff := cmp.Diff([]Range{{atRow("a", "x"), afterRow("b", "y")}}, e.Ranges()); diff != "" {
		t.Errorf("ranges of Keys: (-want +got)\n%s", diff)
	}
	both := And(e, MustParse("PartitionKey eq 'a' and A gt 5"))
	if diff := cmp.Diff([]Range{{atRow("a", "x"), afterPartition("a")}}, both.Ranges()); diff != "" {
		t.Errorf("ranges of And: (-want +got)\n%s", diff)
	}
}

// TestRangesRandom checks that the ranges of filters over keys are in order, and
// contain the keys that match. Ranges within one partition contain no others.
func TestRangesRandom(t *testing.T) {
	race.SkipOneGoroutine(t)
	r := newRand(seed(t))
	inside := 0
	for range 4000 {
		e := newExpr(randomNode(r, 1+r.IntN(3), true), false)
		checkRanges(t, e)
		for range 10 {
			entity := randomEntity(r)
			checkMatch(t, e, &entity)
			for _, g := range e.Ranges() {
				if g.From.Key.Partition != g.To.Key.Partition || g.From.Kind == Unbounded || g.To.Kind == Unbounded {
					continue
				}
				entity.Key.Partition = g.To.Key.Partition
				if edm.CheckKey(entity.Key) != nil || !naiveInside(entity.Key, g) {
					continue
				}
				if inside++; !naive(e.root, &entity) {
					t.Fatalf("%s\nrange %q holds %q, which does not match", e, g, entity.Key)
				}
			}
		}
	}
	if inside < 500 {
		t.Errorf("%d keys were within ranges of one partition, want at least 500", inside)
	}
}

// checkRanges checks the properties of Ranges that every filter has.
func checkRanges(t *testing.T, e *Expr) {
	t.Helper()
	ranges := e.Ranges()
	if len(ranges) > maxRanges {
		t.Fatalf("%s\nhas %d ranges", e, len(ranges))
	}
	for i, g := range ranges {
		for _, b := range []Bound{g.From, g.To} {
			for _, s := range []string{b.Key.Partition, b.Key.Row} {
				if edm.UTF16Len(s) > edm.MaxKeyUnits || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' }) {
					t.Fatalf("%s\nhas a bound with the key %q", e, s)
				}
			}
		}
		if g.From.Kind != Unbounded && g.To.Kind != Unbounded && compareBounds(g.From, g.To) >= 0 {
			t.Fatalf("%s\nhas the empty range %q", e, g)
		}
		if i > 0 && (g.From.Kind == Unbounded || ranges[i-1].To.Kind == Unbounded || compareBounds(ranges[i-1].To, g.From) >= 0) {
			t.Fatalf("%s\nhas adjacent ranges %q and %q", e, ranges[i-1], g)
		}
	}
}

// compareBounds compares two bounds.
func compareBounds(a, b Bound) int {
	if c := edm.Compare(a.Key.Partition, b.Key.Partition); c != 0 {
		return c
	}
	inner := func(k BoundKind) bool { return k == BeforeRow || k == AfterRow }
	if inner(a.Kind) && inner(b.Kind) {
		if c := edm.Compare(a.Key.Row, b.Key.Row); c != 0 {
			return c
		}
	}
	return int(a.Kind) - int(b.Kind)
}

// TestWidenRandom checks that each step of widen keeps all keys, and that halve joins
// spans.
func TestWidenRandom(t *testing.T) {
	race.SkipOneGoroutine(t)
	r := newRand(seed(t))
	for range 2000 {
		e := newExpr(randomNode(r, 3, true), false)
		set, _ := keysOf(e.compiled().program.Root())
		halved := set.halve()
		rows := slices.Clone(set)
		n := 1 + r.IntN(3)
		for i := range rows {
			rows[i].rows = rows[i].rows.coalesce(n)
		}
		for _, wide := range []struct {
			step string
			set  keySet
		}{{"halve", halved}, {"coalesce", rows}, {"widen", slices.Clone(set).widen(maxSpans + 1)}} {
			for range 20 {
				k := randomEntity(r).Key
				if set.contains(k) && !wide.set.contains(k) {
					t.Fatalf("%s\n%s loses %q", e, wide.step, k)
				}
			}
		}
		if n := spansWithRows(set); spansWithRows(halved) != (n+1)/2 {
			t.Fatalf("%s\nhas %d spans with rows, halved %d", e, n, spansWithRows(halved))
		}
		if trailing := set[len(set)-1].rows == nil; trailing && halved[len(halved)-1].rows != nil {
			t.Fatalf("%s\ncontains no keys at the end, but halved it does", e)
		}
	}
}

// contains reports whether s contains k, which is legal.
func (s keySet) contains(k edm.Key) bool {
	reached := func(text string, p textBound) bool {
		return p.kind == atStart || p.kind == beforeText && edm.Compare(text, p.text) >= 0 || p.kind == afterText && edm.Compare(text, p.text) > 0
	}
	rows := s[0].rows
	for _, g := range s[1:] {
		if reached(k.Partition, g.from) {
			rows = g.rows
		}
	}
	return slices.ContainsFunc(rows, func(r span) bool { return reached(k.Row, r.from) && !reached(k.Row, r.to) })
}

// spansWithRows counts the spans of s that have rows.
func spansWithRows(s keySet) int {
	n := 0
	for _, g := range s {
		if len(g.rows) > 0 {
			n++
		}
	}
	return n
}

// TestRangesMany checks that the ranges of long filters are at most 256 and still
// narrow.
func TestRangesMany(t *testing.T) {
	race.SkipOneGoroutine(t)
	chain := func(n int, condition func(i int) string) string {
		conditions := make([]string, n)
		for i := range conditions {
			conditions[i] = condition(i)
		}
		return "(" + strings.Join(conditions, " or ") + ")"
	}
	shuffled := func(i int) string { return fmt.Sprintf("%06d", (i*1009)%4000) }
	sorted := func(i int) string { return fmt.Sprintf("%06d", i) }
	for _, tt := range []struct {
		name, text string
		hit        func(i int) edm.Key // a key in the filter, for 0 <= i < 300
		n          int                 // number of keys outside the filter to test
		other      func(i int) edm.Key
		misses     int // least number of them that are in no range
	}{
		{
			"shuffled partitions", chain(4000, func(i int) string { return "PartitionKey eq '" + shuffled(i) + "'" }),
			func(i int) edm.Key { return edm.Key{Partition: sorted(i)} }, 4000, func(i int) edm.Key { return edm.Key{Partition: sorted(i) + "x"} }, 250,
		},
		{
			"shuffled rows", "PartitionKey eq 'p' and " + chain(4000, func(i int) string { return "RowKey eq '" + shuffled(i) + "'" }),
			func(i int) edm.Key { return edm.Key{Partition: "p", Row: sorted(i)} }, 4000,
			func(i int) edm.Key { return edm.Key{Partition: "p", Row: sorted(i) + "x"} }, 250,
		},
		{
			"more partitions than a set has spans", chain(12000, func(i int) string { return "PartitionKey eq '" + sorted(i) + "'" }),
			func(i int) edm.Key { return edm.Key{Partition: sorted(i)} }, 12000, func(i int) edm.Key { return edm.Key{Partition: sorted(i) + "x"} }, 250,
		},
		{
			"all but many partitions", "not " + chain(1000, func(i int) string { return "PartitionKey eq '" + shuffled(i) + "'" }),
			func(i int) edm.Key { return edm.Key{Partition: sorted(i) + "x"} }, 0, nil, 0,
		},
		{
			"partitions times rows", chain(300, func(i int) string { return "PartitionKey eq '" + shuffled(i) + "'" }) +
				" and " + chain(300, func(i int) string { return "RowKey eq '" + shuffled(i) + "'" }),
			func(i int) edm.Key { return edm.Key{Partition: shuffled(i), Row: shuffled(299 - i)} }, 300,
			func(i int) edm.Key { return edm.Key{Partition: "000000" + sorted(i)} }, 300,
		},
	} {
		e := MustParse(tt.text)
		checkRanges(t, e)
		for i := range 300 {
			if k := tt.hit(i); !inRanges(k, e.Ranges()) {
				t.Errorf("%s: %q is in no range", tt.name, k)
			}
		}
		misses := 0
		for i := range tt.n {
			if !inRanges(tt.other(i), e.Ranges()) {
				misses++
			}
		}
		if misses < tt.misses {
			t.Errorf("%s: %d of %d keys outside the filter are in no range; want at least %d", tt.name, misses, tt.n, tt.misses)
		}
	}
}

// TestRangesMemory parses a filter of 64 KiB that combines many partitions with many rows.
func TestRangesMemory(t *testing.T) {
	chain := func(name string, n int) string {
		conditions := make([]string, n)
		for i := range conditions {
			conditions[i] = fmt.Sprintf("%s eq '%03x'", name, i)
		}
		return "(" + strings.Join(conditions, " or ") + ")"
	}
	text := chain("PartitionKey", 1250) + " and RowKey eq 'x' or " + chain("RowKey", 1650) + " and RowKey ne 'y'"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	e := MustParse(text)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 20<<20 {
		t.Errorf("a filter of %d bytes allocates %d bytes", len(text), n)
	}
	checkRanges(t, e)
	for _, k := range []edm.Key{{Partition: "000", Row: "x"}, {Partition: "4e1", Row: "x"}, {Partition: "z", Row: "671"}, {Row: "000"}} {
		entity := edm.Entity{Key: k}
		if !e.Match(entity.View()) || !inRanges(k, e.Ranges()) {
			t.Errorf("%q is in no range", k)
		}
	}
}
