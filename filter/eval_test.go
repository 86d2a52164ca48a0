package filter

import (
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/internal/race"
)

func TestMatchRandom(t *testing.T) {
	race.SkipOneGoroutine(t)
	r := newRand(seed(t))
	for range 3000 {
		root := randomNode(r, r.IntN(4), r.IntN(3) == 0)
		e := newExpr(root, false)
		for range 20 {
			entity := randomEntity(r)
			checkMatch(t, e, &entity)
		}
	}
}

// checkMatch compares every way to evaluate e on an entity with naive, and checks
// that the ranges of e contain the key if e keeps the entity.
func checkMatch(t *testing.T, e *Expr, entity *edm.Entity) {
	t.Helper()
	want := naive(e.compiled().root, entity)
	row := entity.View()
	if got := e.Match(row); got != want {
		t.Fatalf("%s\non %+v\nMatch = %v, want %v", e, *entity, got, want)
	}
	bound := e.compiled().program.Bind(func(name string) int {
		for i, p := range entity.Properties {
			if p.Name == name {
				return i
			}
		}
		return -1
	})
	if got := bound.Match(row); got != want {
		t.Fatalf("%s\non %+v\nBinding.Match = %v, want %v", e, *entity, got, want)
	}
	if got := treeMatch(e.compiled().program.Root(), row); got != want {
		t.Fatalf("%s\non %+v\nits predicate %v = %v, want %v", e, *entity, e.compiled().program.Root(), got, want)
	}
	if inRanges(entity.Key, e.Ranges()) {
		checkResidual(t, e, entity)
	}
	if want && !inRanges(entity.Key, e.Ranges()) {
		t.Fatalf("%s\nkeeps %q, which is in none of %q", e, entity.Key, e.Ranges())
	}
}

// treeMatch evaluates a predicate term by term, as a reader of columns does.
func treeMatch(n *predicate.Node, row edm.Row) bool {
	switch n.Kind {
	case predicate.True, predicate.False:
		return n.Kind == predicate.True
	case predicate.And, predicate.Or:
		for _, k := range n.Kids {
			if treeMatch(k, row) == (n.Kind == predicate.Or) {
				return n.Kind == predicate.Or
			}
		}
		return n.Kind == predicate.And
	}
	v, _ := row.Lookup(n.Term.Name)
	switch n.Term.Name {
	case edm.PartitionKeyName:
		v = edm.String(row.Key().Partition)
	case edm.RowKeyName:
		v = edm.String(row.Key().Row)
	case edm.TimestampName:
		v = edm.DateTime(row.Timestamp())
	}
	return n.Term.Test(v.Type()).Value(v) != n.Negated
}

func inRanges(k edm.Key, ranges []Range) bool {
	for _, r := range ranges {
		if naiveInside(k, r) {
			return true
		}
	}
	return false
}

func TestMatchRules(t *testing.T) {
	e := edm.Entity{
		Key:       edm.Key{Partition: "p", Row: "r"},
		Timestamp: edm.MinTicks + 5,
		Properties: edm.Properties{
			{Name: "s", Value: edm.String("x")},
			{Name: "empty", Value: edm.String("")},
			{Name: "t", Value: edm.Boolean(true)},
			{Name: "f", Value: edm.Boolean(false)},
			{Name: "i", Value: edm.Int32(5)},
			{Name: "l", Value: edm.Int64(1<<53 + 1)},
			{Name: "d", Value: edm.Double(5)},
			{Name: "nan", Value: edm.Double(nan())},
			{Name: "when", Value: edm.DateTime(mustTicks(t, "2008-07-10T00:00:00.1234567Z"))},
			{Name: "g", Value: edm.Guid(edm.GUID{0xa4, 0x55})},
			{Name: "b", Value: edm.Binary([]byte{1, 2})},
			{Name: "high", Value: edm.String("\uE000")},
			{Name: "pair", Value: edm.String("\U0001F600")},
		},
	}
	for _, tt := range []struct {
		text string
		want bool
	}{
		{"missing eq 1", false},
		{"missing ne 1", false},
		{"missing ne ''", false},
		{"not (missing ge 1)", true},
		{"not (missing ne 1)", true},
		{"not not missing eq 1", false},
		{"missing", false},
		{"not missing", true},
		{"s lt ''", false},
		{"s ge ''", true},
		{"empty ge ''", true},
		{"empty ne ''", false},
		{"s eq 'X'", false},
		{"s eq 'x '", false},
		{"s gt 'X'", true},
		{"when ne ''", true},
		{"when ge ''", false},
		{"i ne 'x'", true},
		{"i eq '5'", false},
		{"t", true},
		{"f", false},
		{"i", false},
		{"not i", true},
		{"t gt false", true},
		{"f lt true", true},
		{"t eq True", true},
		{"t eq 1", false},
		{"d eq 5", true},
		{"i eq 5.0", true},
		{"i eq 5L", true},
		{"i ne 5d", false},
		{"l eq 9007199254740993L", true},
		{"l eq 9007199254740992.0", false},
		{"l gt 9007199254740992.0", true},
		{"l lt 9007199254740994.0", true},
		{"d lt 5.000000000000001", true},
		{"i lt INF", true},
		{"i gt -INF", true},
		{"i eq NaN", false},
		{"i ne NaN", true},
		{"nan eq NaN", false},
		{"nan ne NaN", true},
		{"nan ne 1", true},
		{"nan lt 1 or nan ge 1", false},
		{"not (nan lt 1)", true},
		{"when eq datetime'2008-07-10T00:00:00.1234567Z'", true},
		{"when gt datetime'2008-07-10T00:00:00.1234566Z'", true},
		{"when eq datetime'2008-07-10T02:00:00.1234567+02:00'", true},
		{"Timestamp gt datetime'0001-01-01T00:00:00Z'", true},
		{"Timestamp le datetime'1601-01-01T00:00:00.0000005'", true},
		{"g eq guid'A4550000-0000-0000-0000-000000000000'", true},
		{"g gt guid'a4540000-ffff-ffff-ffff-ffffffffffff'", true},
		{"b eq X'0102'", true},
		{"b eq binary'0102'", true},
		{"b gt X'01'", true},
		{"b lt X'0103'", true},
		{"pair lt '\uE000'", true},
		{"high gt '\U0001F600'", true},
		{"5 eq i", true},
		{"4 lt i", true},
		{"6 lt i", false},
		{"'q' gt PartitionKey", true},
		{"PartitionKey eq 'p' and RowKey eq 'r'", true},
		{"PartitionKey eq 'P'", false},
		{"false", false},
		{"true", true},
		{"(true and RowKey eq '1') or (false or t)", true},
		{"f eq true or t eq true and f eq true", false},
		{"not f eq true and t", true},
	} {
		x := MustParse(tt.text)
		if got := x.Match(e.View()); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.text, got, tt.want)
		}
		if got := naive(x.root, &e); got != tt.want {
			t.Errorf("%s: naive gives %v, want %v", tt.text, got, tt.want)
		}
	}
}

func nan() float64 { return doubles[len(doubles)-1] }

func mustTicks(t *testing.T, s string) edm.Ticks {
	t.Helper()
	ticks, err := edm.ParseTicks(s)
	if err != nil {
		t.Fatal(err)
	}
	return ticks
}

func TestNilKeepsEverything(t *testing.T) {
	var e *Expr
	entity := edm.Entity{}
	if !e.Match(entity.View()) || !e.MatchTable("x") || e.condition() != nil || e.String() != "" {
		t.Error("a nil filter does not keep every row")
	}
	if r := e.Ranges(); len(r) != 1 || r[0] != (Range{}) {
		t.Errorf("Ranges() = %v, want one without bounds", r)
	}
}

func TestAnd(t *testing.T) {
	race.SkipOneGoroutine(t)
	a, b := MustParse("x eq 1 or y eq 2"), MustParse("not (x eq 3)")
	if And(nil, nil) != nil || And(a, nil) != a || And(nil, b) != b {
		t.Error("And with nil is not the other filter")
	}
	if got, want := And(a, b).String(), "(x eq 1 or y eq 2) and not (x eq 3)"; got != want {
		t.Errorf("And = %s, want %s", got, want)
	}
	r := newRand(seed(t))
	for range 500 {
		x, y := newExpr(randomNode(r, 2, false), false), newExpr(randomNode(r, 2, false), false)
		both := And(x, y)
		for range 10 {
			entity := randomEntity(r)
			want := naive(x.root, &entity) && naive(y.root, &entity)
			if got := both.Match(entity.View()); got != want {
				t.Fatalf("And(%s, %s) on %v = %v, want %v", x, y, entity, got, want)
			}
			checkMatch(t, both, &entity)
		}
	}
}

// TestAndOfMany adds conditions in a loop, as programs do that exclude a list of values.
func TestAndOfMany(t *testing.T) {
	one, keys := MustParse("A ne 1"), MustParse("PartitionKey gt 'a'")
	add := func(n int, first bool) *Expr {
		e := keys
		for range n {
			if first {
				e = And(one, e)
			} else {
				e = And(e, one)
			}
		}
		return e
	}
	const n = 1000
	for first, want := range map[bool]string{
		false: keys.String() + strings.Repeat(" and A ne 1", n),
		true:  strings.Repeat("A ne 1 and ", n) + keys.String(),
	} {
		e := add(n, first)
		var users sync.WaitGroup // the first of them compiles it
		for range 4 {
			users.Go(func() {
				parsed := MustParse(want)
				if e.String() != want || e.Cost() != parsed.Cost() || !slices.Equal(e.Ranges(), parsed.Ranges()) {
					t.Errorf("And of %d filters is %.100s, cost %d, ranges %v; want %.100s", n, e, e.Cost(), e.Ranges(), want)
				}
				for key, value := range map[string]int32{"a": 0, "b": 1, "c": 2} {
					entity := edm.Entity{Key: edm.Key{Partition: key}, Properties: edm.Properties{{Name: "A", Value: edm.Int32(value)}}}
					if got := e.Match(entity.View()); got != (key == "c") {
						t.Errorf("%s matches %v: %v", e, entity, got)
					}
				}
			})
		}
		users.Wait()
		// Each And that compiled the whole filter would make n*n/2 comparisons.
		if got := testing.AllocsPerRun(1, func() { add(n, first).Cost() }); got > 50*n {
			t.Errorf("And of %d filters allocates %v times", n, got)
		}
	}
}

func TestMatchTable(t *testing.T) {
	for _, tt := range []struct {
		text, name string
		want       bool
	}{
		{"TableName eq 'abc'", "abc", true},
		{"'abc' eq TableName", "abc", true},
		{"TableName eq 'abc'", "abd", false},
		{"TableName eq 'ABC'", "abC", true},
		{"TableName ge 'p' and TableName lt 'p{'", "Prefix", true},
		{"TableName ge 'p' and TableName lt 'p{'", "q", false},
		{"'p' le TableName and 'p{' gt TableName", "p", true},
		{"not (TableName eq 'abc')", "xyz", true},
		{"true", "abc", true},
		{"false", "abc", false},
	} {
		e, err := ParseTables(tt.text)
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		if got := e.MatchTable(tt.name); got != tt.want {
			t.Errorf("%s on %q: got %v, want %v", tt.text, tt.name, got, tt.want)
		}
	}
}

// allocations returns how often f allocates. Some allocations are not f's: the race detector
// empties the pool with the keys of rows at random. So the least of several counts is taken.
func allocations(f func()) float64 {
	least := testing.AllocsPerRun(100, f)
	for range 4 {
		least = min(least, testing.AllocsPerRun(100, f))
	}
	return least
}

func TestMatchDoesNotAllocate(t *testing.T) {
	e := MustParse("PartitionKey eq 'p' and RowKey ge 'a' and not (Total lt 5L) and (Name ne 'x' or Missing eq true) " +
		"and Timestamp ge datetime'2020-01-01T00:00:00Z'")
	entity := benchEntity()
	row := entity.View()
	if !e.Match(row) {
		t.Fatal("the entity does not match")
	}
	if n := allocations(func() { e.Match(row) }); n != 0 {
		t.Errorf("Match allocates %v times", n)
	}
	b := e.compiled().program.Bind(func(name string) int { return map[string]int{"Total": 1, "Name": 0, "Missing": -1}[name] })
	b.Match(row)
	if n := allocations(func() { b.Match(row) }); n != 0 {
		t.Errorf("Binding.Match allocates %v times", n)
	}
}

func benchEntity() edm.Entity {
	return edm.Entity{
		Key:       edm.Key{Partition: "p", Row: "row-000123"},
		Timestamp: 133_000_000_000_000_000,
		Properties: edm.Properties{
			{Name: "Name", Value: edm.String("some name")},
			{Name: "Total", Value: edm.Double(50.5)},
			{Name: "Paid", Value: edm.Boolean(false)},
			{Name: "Count", Value: edm.Int32(12)},
		},
	}
}

// TestPruneRandom prunes sets of entities by the bounds of their columns, and checks
// the result on each entity.
func TestPruneRandom(t *testing.T) {
	r := newRand(seed(t))
	var seen [3]int
	for range 4000 {
		e := newExpr(randomNode(r, r.IntN(3), false), false)
		entities := make([]edm.Entity, 1+r.IntN(4))
		for i := range entities {
			entities[i] = randomEntity(r)
			if i > 0 && r.IntN(2) == 0 {
				entities[i] = entities[i-1]
			}
		}
		loose := r.IntN(4) == 0
		p := e.compiled().program
		columns := func(names []string) predicate.Columns {
			return func(property int, typ edm.Type) predicate.Column {
				name := edm.TimestampName
				if property != predicate.Timestamp {
					name = names[property]
				}
				c := boundsOf(entities, name, typ)
				if loose {
					c.Min, c.NaN = edm.Value{}, true
				}
				return c
			}
		}
		got := p.Prune(columns(p.Names()))
		if less := p.ForBounds(); less != nil && less.Prune(columns(less.Names())) == predicate.None {
			for i := range entities {
				if naive(e.root, &entities[i]) {
					t.Fatalf("%s\non %v\nis excluded by %v", e, entities, less.Root())
				}
			}
		}
		seen[got]++
		for i := range entities {
			if match := naive(e.root, &entities[i]); match && got == predicate.None || !match && got == predicate.All {
				t.Fatalf("%s\non %v\npruned to %d, but row %d gives %v", e, entities, got, i, match)
			}
		}
	}
	if seen[predicate.None] < 200 || seen[predicate.Some] < 200 || seen[predicate.All] < 200 {
		t.Errorf("results None, Some, All: %v, want at least 200 of each", seen)
	}
}

// boundsOf returns the exact bounds of the values of one property and type.
func boundsOf(entities []edm.Entity, name string, typ edm.Type) predicate.Column {
	var c predicate.Column
	n := 0
	for i := range entities {
		v, ok := naiveOperand(operand{kind: operandProperty, name: name}, &entities[i])
		if !ok || v.Type() != typ {
			continue
		}
		n++
		if f, isDouble := v.Double(); typ == edm.TypeDouble && isDouble && math.IsNaN(f) {
			c.NaN = true
			continue
		}
		if c.Min.IsNull() || naiveCompare(v, predicate.Lt, c.Min) {
			c.Min = v
		}
		if c.Max.IsNull() || naiveCompare(v, predicate.Gt, c.Max) {
			c.Max = v
		}
	}
	switch n {
	case 0:
	case len(entities):
		c.Present = predicate.All
	default:
		c.Present = predicate.Some
	}
	return c
}
