package filter

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/race"
)

// many returns a filter of n keys of a partition.
func many(n int) string { return "PartitionKey eq 'p' and " + anyOf(n, "RowKey eq '%d'") }

// anyOf joins n comparisons, each with its number, by or.
func anyOf(n int, format string) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(format, i))
	}
	return "(" + strings.Join(list, " or ") + ")"
}

func TestResidual(t *testing.T) {
	// More spans of rows than a keySet has: the ranges of each partition become one.
	product := anyOf(100, "PartitionKey eq '%d'") + " and " + anyOf(200, "RowKey eq '%03d'")
	gap := anyOf(100, "PartitionKey eq '%d'") + " and (RowKey lt '100' or RowKey gt '150') and " + anyOf(250, "RowKey eq '%03d' and N eq 1")
	for _, c := range []struct{ text, want string }{
		{"PartitionKey eq 'a'", ""},
		{"PartitionKey ge 'a' and PartitionKey lt 'b'", ""},
		{"PartitionKey eq 'a' and RowKey ge '1'", ""},
		{"PartitionKey eq 'a' and RowKey eq '1'", ""},
		{"PartitionKey eq '' and RowKey eq ''", ""},
		{"PartitionKey eq 'a' and not (RowKey lt '1')", ""},
		{"PartitionKey eq 'a' and N gt 5", "N gt 5"},
		{"N gt 5 and PartitionKey eq 'a' and S eq 'x'", "N gt 5 and S eq 'x'"},
		{"PartitionKey ge 'a' and RowKey ge '1'", "RowKey ge '1'"},
		{"RowKey eq '1'", "RowKey eq '1'"},
		{"PartitionKey ne 'a'", ""},
		{"PartitionKey eq 'a' or PartitionKey eq 'b'", ""},
		{"(PartitionKey eq 'a' and RowKey eq '1') or (PartitionKey eq 'b' and RowKey eq '2')", ""},
		{"PartitionKey eq 'a' and (RowKey eq '1' or RowKey eq '2') and N gt 5", "N gt 5"},
		{"N gt 5 and (PartitionKey eq 'a' or PartitionKey eq 'b') and (RowKey lt '1' or RowKey gt '2')", "N gt 5"},
		{"(PartitionKey eq 'a' or N gt 5) and RowKey eq '1'", "(PartitionKey eq 'a' or N gt 5) and RowKey eq '1'"},
		{"(PartitionKey eq 'a' or RowKey eq '1') and PartitionKey le 'b'", "PartitionKey eq 'a' or RowKey eq '1'"},
		{"(PartitionKey eq 'a' and N gt 5) or PartitionKey eq 'b'", "(PartitionKey eq 'a' and N gt 5) or PartitionKey eq 'b'"},
		{many(maxRanges), ""},
		{many(maxRanges + 1), strings.TrimPrefix(many(maxRanges+1), "PartitionKey eq 'p' and ")},
		{product, product},
		{gap, gap},
		{"N gt 5", "N gt 5"},
	} {
		want := ""
		if c.want != "" {
			want = MustParse(c.want).compiled().program.Root().String()
		}
		got := ""
		if p := MustParse(c.text).condition(); p != nil {
			got = p.Root().String()
		}
		if got != want {
			t.Errorf("Residual of %.200s: got %.200q, want %.200q", c.text, got, want)
		}
	}
	if p := (*Expr)(nil).condition(); p != nil {
		t.Errorf("Residual of no filter: got %v", p.Root())
	}
}

// checkResidual checks that the residual condition of e gives the same result as e
// for an entity in the ranges of e.
func checkResidual(t *testing.T, e *Expr, ent *edm.Entity) {
	t.Helper()
	p := e.condition()
	got := p == nil || p.Match(ent.View())
	if want := e.Match(ent.View()); got != want {
		t.Errorf("%s of %+v: residual says %v, the filter %v", e, ent, got, want)
	}
}

// TestKeysWithoutComparisons compares the ranges that Keys takes from its bounds with
// the ranges of comparisons.
func TestKeysWithoutComparisons(t *testing.T) {
	var bounds []Bound
	for _, kind := range []BoundKind{Unbounded, BeforePartition, BeforeRow, AfterRow, AfterPartition} {
		for _, key := range []edm.Key{
			{},
			{Partition: "a"},
			{Row: "a"},
			{Partition: "a", Row: "b"},
			{Partition: "a", Row: "c"},
			{Partition: "b", Row: "a"},
			{Partition: "a\x01", Row: "a"},
		} {
			bounds = append(bounds, Bound{kind, key})
		}
	}
	plain := 0
	for _, from := range bounds {
		for _, to := range bounds {
			if !plainRange(from, to) {
				continue
			}
			plain++
			got, want := Keys(from, to), compareKeys(from, to)
			if len(want.Ranges()) != 1 || want.Ranges()[0] != got.Ranges()[0] || got.condition() != nil {
				t.Errorf("Keys(%v, %v): got the ranges %v, want %v", from, to, got.Ranges(), want.Ranges())
			}
			e := edm.Entity{Key: edm.Key{Partition: "a", Row: "bb"}}
			if in := inRanges(e.Key, got.Ranges()); in != got.Match(e.View()) || in != want.Match(e.View()) {
				t.Errorf("Keys(%v, %v): %v lies within: %v; they match: %v, %v", from, to, e.Key, in, got.Match(e.View()), want.Match(e.View()))
			}
			if got.String() != want.String() {
				t.Errorf("Keys(%v, %v): got %s, want %s", from, to, got, want)
			}
		}
	}
	if plain < 50 {
		t.Errorf("%d pairs are plain ranges, want at least 50", plain)
	}
}

// TestAndOfKeys checks that a range of keys and other filters select the same
// rows as all comparisons in one filter.
func TestAndOfKeys(t *testing.T) {
	race.SkipOneGoroutine(t)
	bound := func(kind BoundKind, row string) Bound { return Bound{kind, edm.Key{Partition: "b", Row: row}} }
	r := newRand(seed(t))
	inside := 0
	for i := range 2000 {
		keys := Keys(bound(BeforePartition, ""), bound(AfterPartition, ""))
		if i%2 == 0 {
			keys = Keys(bound(AfterRow, "x"), bound(BeforeRow, "z"))
		}
		exprs := []*Expr{keys}
		for range 1 + r.IntN(2) {
			exprs = append(exprs, newExpr(randomNode(r, r.IntN(3), i%3 == 0), false))
		}
		r.Shuffle(len(exprs), func(i, j int) { exprs[i], exprs[j] = exprs[j], exprs[i] })
		var got *Expr
		var roots []node
		for _, e := range exprs {
			got = And(got, e)
			roots = append(roots, e.compiled().root)
		}
		want := newExpr(newAnd(roots...), false)
		if !slices.Equal(got.Ranges(), want.Ranges()) {
			t.Fatalf("%s: got the ranges %v, want %v", got, got.Ranges(), want.Ranges())
		}
		for range 10 {
			entity := randomEntity(r)
			entity.Key = edm.Key{Partition: "b", Row: pick(r, []string{"a", "x", "y", "z"})}
			checkMatch(t, got, &entity)
			if !inRanges(entity.Key, got.Ranges()) {
				continue
			}
			inside++
			p := got.condition()
			if match := p == nil || p.Match(entity.View()); match != want.Match(entity.View()) {
				t.Fatalf("%s\nwithin its ranges: the condition is %v for %v", got, match, entity)
			}
		}
	}
	if inside < 500 {
		t.Errorf("%d keys are within the ranges, want at least 500", inside)
	}
}

// TestAllocationsOfKeys checks that a filter that is parsed once and limited to the keys of each
// query is not compiled again.
func TestAllocationsOfKeys(t *testing.T) {
	parsed := MustParse("Total gt 50 and (Paid eq false or Name ge 'n')")
	ranges := 0
	if got := testing.AllocsPerRun(100, func() {
		key := edm.Key{Partition: "p"}
		e := And(parsed, Keys(Bound{BeforePartition, key}, Bound{AfterPartition, key}))
		if e.condition() == parsed.condition() {
			ranges += len(e.Ranges())
		}
	}); got > 10 {
		t.Errorf("a filter of a partition allocates %v times, want at most 10", got)
	}
	if ranges == 0 {
		t.Error("the condition is not that of the parsed filter")
	}
}

// TestCost counts the comparisons that remain for a row within the ranges.
func TestCost(t *testing.T) {
	for _, c := range []struct {
		text string
		want int
	}{
		{"", 0},
		{"a eq 1", 1},
		{"PartitionKey eq 'p' and RowKey ge 'r'", 0},
		{"PartitionKey eq 'p' and a eq 1", 1},
		{"not (a eq 1 and b eq 2) or c", 3},
		{"a eq '" + strings.Repeat("x", 31) + "'", 1},
		{"a eq X'" + strings.Repeat("00", 320) + "'", 11},
		{"a eq '" + strings.Repeat("x", 320) + "' and b eq 1", 12},
		{"a eq '" + strings.Repeat("x", 320) + "' or a eq 'y' or a eq 'z'", 13},
	} {
		e, err := Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Cost(); got != c.want {
			t.Errorf("cost of %.40s is %d, want %d", c.text, got, c.want)
		}
	}
	tables, err := ParseTables("TableName eq 'a' or TableName eq 'b'")
	if err != nil || tables.Cost() != 2 {
		t.Errorf("cost of a filter over tables is %d, want 2, error %v", tables.Cost(), err)
	}
	if got := Keys(Bound{BeforeRow, edm.Key{Partition: "a", Row: "b"}}, Bound{AfterRow, edm.Key{Partition: "c", Row: "d"}}).Cost(); got != 0 {
		t.Errorf("cost of a range of keys is %d", got)
	}
}
