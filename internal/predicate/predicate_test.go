package predicate

import (
	"bytes"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/edm"
)

var allOps = []Op{Eq, Ne, Lt, Le, Gt, Ge}

// newRand returns a random source seeded with TABLEROCK_SEED, or a fixed default, and
// logs the seed.
func newRand(t *testing.T) *rand.Rand {
	seed := uint64(1)
	if text := os.Getenv("TABLEROCK_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("TABLEROCK_SEED: %v", err)
		}
		seed = n
	}
	t.Logf("TABLEROCK_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 3))
}

func TestOp(t *testing.T) {
	for _, tt := range []struct {
		op                   Op
		less, equal, greater bool
		mirror, negated      Op
		word                 string
	}{
		{Eq, false, true, false, Eq, Ne, "eq"},
		{Ne, true, false, true, Ne, Eq, "ne"},
		{Lt, true, false, false, Gt, Ge, "lt"},
		{Le, true, true, false, Ge, Gt, "le"},
		{Gt, false, false, true, Lt, Le, "gt"},
		{Ge, false, true, true, Le, Lt, "ge"},
	} {
		if tt.op.Accepts(-1) != tt.less || tt.op.Accepts(0) != tt.equal || tt.op.Accepts(1) != tt.greater {
			t.Errorf("%v accepts the wrong results", tt.op)
		}
		if tt.op.Mirror() != tt.mirror || tt.op.Negate() != tt.negated || tt.op.String() != tt.word {
			t.Errorf("%v: mirror %v, negated %v, word %s", tt.op, tt.op.Mirror(), tt.op.Negate(), tt.op)
		}
	}
}

// TestNumbers compares the numbers of one list with each other, in all three types,
// and checks the results by exact arithmetic.
func TestNumbers(t *testing.T) {
	ints := []int64{0, 1, -1, 7, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64}
	floats := []float64{math.Copysign(0, -1), 0.5, -0.5, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64}
	for _, e := range []uint{24, 31, 52, 53, 54, 60, 62} {
		for d := int64(-2); d <= 2; d++ {
			ints = append(ints, 1<<e+d, -(1<<e)+d)
		}
	}
	for _, d := range []int64{1, 255, 256, 511, 512, 513, 1023, 1024, 1025} {
		ints = append(ints, math.MaxInt64-d, math.MinInt64+d)
	}
	for _, i := range ints {
		f := float64(i)
		floats = append(floats, f, math.Nextafter(f, math.Inf(1)), math.Nextafter(f, math.Inf(-1)))
	}
	var values []edm.Value
	for _, i := range ints {
		values = append(values, edm.Int64(i))
		if int64(int32(i)) == i {
			values = append(values, edm.Int32(int32(i)))
		}
	}
	for _, f := range floats {
		values = append(values, edm.Double(f))
	}
	for _, c := range values {
		for _, op := range allOps {
			term := NewCompare("x", op, c).Term
			for _, v := range values {
				if got, want := term.Test(v.Type()).Value(v), exact(v, op, c); got != want {
					t.Fatalf("%#v %v %#v: got %v, want %v", v, op, c, got, want)
				}
			}
		}
	}
}

func exact(v edm.Value, op Op, c edm.Value) bool {
	number := func(v edm.Value) *big.Float {
		f := new(big.Float).SetPrec(2200)
		if v.Type() == edm.TypeDouble {
			return f.SetFloat64(floatOf(v))
		}
		return f.SetInt64(intOf(v))
	}
	for _, x := range []edm.Value{v, c} {
		if x.Type() == edm.TypeDouble && math.IsNaN(floatOf(x)) {
			return op == Ne
		}
	}
	return op.Accepts(number(v).Cmp(number(c)))
}

func TestMismatch(t *testing.T) {
	values := []edm.Value{
		edm.String("1"), edm.Binary([]byte("1")), edm.Boolean(true), edm.Int32(1), edm.DateTime(1), edm.GuidWords(0, 1),
	}
	for _, c := range values {
		for _, op := range allOps {
			term := NewCompare("x", op, c).Term
			for _, v := range values {
				if v.Type() == c.Type() {
					continue
				}
				if got := term.Test(v.Type()).Value(v); got != (op == Ne) {
					t.Errorf("%#v %v %#v: got %v", v, op, c, got)
				}
			}
			if term.Test(0).Value(edm.Value{}) {
				t.Errorf("null %v %#v: got true", op, c)
			}
		}
	}
}

func TestOrders(t *testing.T) {
	for _, ascending := range [][]edm.Value{
		{
			edm.String(""), edm.String("A"), edm.String("a"), edm.String("a\x00"), edm.String("ab"), edm.String("é"), edm.String("\uD7FF"),
			edm.String("\U0001F600"), edm.String("\U0001F600a"), edm.String("\U0010FFFF"), edm.String("\uE000"), edm.String("\uFFFF"),
		},
		{edm.Binary(nil), edm.Binary([]byte{0}), edm.Binary([]byte{0, 0}), edm.Binary([]byte{0xEE}), edm.Binary([]byte{0xF0}), edm.Binary([]byte{0xFF})},
		{edm.Boolean(false), edm.Boolean(true)},
		{edm.DateTime(-1), edm.DateTime(0), edm.DateTime(1), edm.DateTime(edm.MaxTicks)},
		{edm.GuidWords(0, 0), edm.GuidWords(0, 1), edm.GuidWords(0, 1<<63), edm.GuidWords(1, 0), edm.GuidWords(1<<63, 0), edm.GuidWords(1<<63, 1)},
	} {
		for i, v := range ascending {
			for j, c := range ascending {
				for _, op := range allOps {
					want := op.Accepts(min(max(i-j, -1), 1))
					if got := NewCompare("x", op, c).Term.Test(v.Type()).Value(v); got != want {
						t.Errorf("%#v %v %#v: got %v, want %v", v, op, c, got, want)
					}
				}
			}
		}
	}
}

// randomNode returns a random expression over the Booleans in names.
func randomNode(r *rand.Rand, depth int, names []string) *Node {
	kind := NodeKind(r.IntN(6))
	if depth == 0 {
		kind = Compare
	}
	switch kind {
	case True, False:
		return NewConst(kind == True)
	case Not:
		return NewNot(randomNode(r, depth-1, names))
	case And, Or:
		kids := make([]*Node, r.IntN(4))
		for i := range kids {
			kids[i] = randomNode(r, depth-1, names)
		}
		if kind == And {
			return NewAnd(kids...)
		}
		return NewOr(kids...)
	}
	return NewCompare(names[r.IntN(len(names))], []Op{Eq, Ne}[r.IntN(2)], randomValue(r))
}

// randomValue returns a Boolean or a short or long String.
func randomValue(r *rand.Rand) edm.Value {
	texts := []string{"", "a", "a\x00", "12345678", "123456789", "12345678x"}
	if i := r.IntN(2 * len(texts)); i < len(texts) {
		return edm.String(texts[i])
	}
	return edm.Boolean(r.IntN(2) == 0)
}

// value evaluates the uncompiled n for e.
func value(n *Node, e *edm.Entity) bool {
	switch n.Kind {
	case True, False:
		return n.Kind == True
	case Not:
		return !value(n.Kids[0], e)
	case And, Or:
		for _, k := range n.Kids {
			if value(k, e) == (n.Kind == Or) {
				return n.Kind == Or
			}
		}
		return n.Kind == And
	}
	v, ok := e.Properties.Lookup(n.Term.Name)
	return ok && v.Equal(n.Term.Value) == (n.Term.Op == Eq)
}

// randomEntity returns an entity with some properties of names.
func randomEntity(r *rand.Rand, names []string) (e edm.Entity) {
	for _, name := range names {
		if r.IntN(3) > 0 {
			e.Properties = append(e.Properties, edm.Property{Name: name, Value: randomValue(r)})
		}
	}
	return e
}

func TestProgramRandom(t *testing.T) {
	r := newRand(t)
	names := []string{"a", "b", "c", "d"}
	for range 3000 {
		n := randomNode(r, r.IntN(5), names)
		text := n.String()
		p := Compile(n)
		checkNormal(t, p.Root(), true)
		for range 10 {
			e := randomEntity(r, names)
			want := value(n, &e)
			if got := p.Match(e.View()); got != want {
				t.Fatalf("%s on %v: got %v, want %v", text, e.Properties, got, want)
			}
			b := p.Bind(func(name string) int {
				for i := range e.Properties {
					if e.Properties[i].Name == name {
						return i
					}
				}
				return -1
			})
			if got := b.Match(e.View()); got != want {
				t.Fatalf("%s on %v, bound: got %v, want %v", text, e.Properties, got, want)
			}
		}
	}
}

// checkNormal checks the form that Root promises.
func checkNormal(t *testing.T, n *Node, top bool) {
	t.Helper()
	switch n.Kind {
	case Not:
		t.Fatalf("%v contains a Not", n)
	case True, False:
		if !top {
			t.Fatalf("%v below the top", n)
		}
	case And, Or:
		if len(n.Kids) < 2 {
			t.Fatalf("%v has %d operands", n, len(n.Kids))
		}
		for _, k := range n.Kids {
			if k.Kind == n.Kind {
				t.Fatalf("%v is not flat", n)
			}
			checkNormal(t, k, false)
		}
	}
}

// countingRow counts how often its keys are read.
type countingRow struct {
	edm.Row
	partitions, rows int
}

func (c *countingRow) AppendPartition(dst []byte) []byte {
	c.partitions++
	return c.Row.AppendPartition(dst)
}

func (c *countingRow) AppendRow(dst []byte) []byte {
	c.rows++
	return c.Row.AppendRow(dst)
}

func TestKeysAreReadOnce(t *testing.T) {
	key := func(name string, op Op, s string) *Node { return NewCompare(name, op, edm.String(s)) }
	p := Compile(NewAnd(
		key("PartitionKey", Ge, "a"), key("PartitionKey", Le, "z"), key("PartitionKey", Ne, "q"),
		NewOr(NewCompare("Timestamp", Lt, edm.DateTime(5)), key("RowKey", Eq, "r"))))
	e := edm.Entity{Key: edm.Key{Partition: "p", Row: "r"}, Timestamp: 9}
	row := &countingRow{Row: e.View()}
	if !p.Match(row) || row.partitions != 1 || row.rows != 1 {
		t.Errorf("read the PartitionKey %d times and the RowKey %d times", row.partitions, row.rows)
	}
	e.Timestamp = 1
	row = &countingRow{Row: e.View()}
	if !p.Match(row) || row.rows != 0 {
		t.Errorf("read the RowKey %d times without need", row.rows)
	}
	e.Key.Partition = "q"
	if p.Match(e.View()) {
		t.Error("matched the key of the row before")
	}
}

func TestNames(t *testing.T) {
	cmpTo := func(name string) *Node { return NewCompare(name, Eq, edm.Int32(1)) }
	p := Compile(NewOr(cmpTo("b"), NewAnd(cmpTo("a"), NewNot(cmpTo("b"))), NewCompare("RowKey", Eq, edm.String("x"))))
	got := map[string]int{}
	for _, name := range p.Names() {
		got[name]++
	}
	if diff := cmp.Diff(map[string]int{"a": 1, "b": 1}, got); diff != "" {
		t.Errorf("Names: (-want +got)\n%s", diff)
	}
}

// TestJoined counts the comparisons of a row after those with Strings were joined, and compares
// their result with that of the others.
func TestJoined(t *testing.T) {
	equals := func(name, text string) *Node { return NewCompare(name, Eq, edm.String(text)) }
	differs := func(text string) *Node { return NewCompare("a", Ne, edm.String(text)) }
	x, y := equals("a", "x"), equals("a", "y")
	for _, c := range []struct {
		node *Node
		want int
	}{
		{NewOr(x, y), 1},
		{NewOr(x, equals("b", "y")), 2},
		{NewOr(x, equals("b", "x"), y, equals("b", "y"), equals("RowKey", "x"), equals("RowKey", "y")), 3},
		{NewAnd(NewOr(x, y), NewCompare("b", Gt, edm.Int32(1))), 2},
		{NewAnd(x, y), 2},
		{NewNot(NewOr(x, y)), 1},
		{NewOr(x, NewNot(y)), 2},
		{NewAnd(x, NewNot(y)), 2},
		{NewAnd(differs("x"), differs("y"), NewOr(differs("x"), differs("y"))), 3},
		{NewAnd(differs("x"), NewNot(y)), 2},
		{NewNot(NewAnd(differs("x"), differs("y"))), 1},
		{NewOr(x, NewCompare("b", Gt, edm.String("y"))), 2},
		{NewOr(x, NewCompare("a", Eq, edm.Int32(1))), 2},
	} {
		if p := Compile(c.node.Clone()); len(p.steps) != c.want || p.Root().String() != normal(c.node, false).String() {
			t.Errorf("%v: %d comparisons of a row, want %d; the root is %v", c.node, len(p.steps), c.want, p.Root())
		}
		for _, v := range []edm.Value{{}, edm.String("x"), edm.String("y"), edm.String("z"), edm.Int32(1)} {
			var e edm.Entity
			if v.Type() != 0 {
				e.Properties = edm.Properties{{Name: "a", Value: v}}
			}
			if got, want := Compile(c.node.Clone()).Match(e.View()), value(c.node, &e); got != want {
				t.Errorf("%v of %#v is %v, want %v", c.node, v, got, want)
			}
		}
	}
}

// TestTermsOfRows checks what a Program says of each of its terms, for a row that does not have
// the property b.
func TestTermsOfRows(t *testing.T) {
	terms := []*Node{
		NewCompare("a", Ge, edm.Int32(3)), NewCompare("b", Ne, edm.Int32(3)), NewCompare("Timestamp", Gt, edm.DateTime(5)),
		NewCompare("PartitionKey", Eq, edm.String("p")), NewCompare("RowKey", Eq, edm.String("x")),
	}
	e := edm.Entity{Key: edm.Key{Partition: "p", Row: "r"}, Timestamp: 6, Properties: edm.Properties{{Name: "-"}, {Name: "a", Value: edm.Int32(3)}}}
	p := Compile(NewAnd(terms...))
	b := p.Bind(func(name string) int { return slices.Index([]string{"-", "a"}, name) })
	for i, want := range []struct {
		property int
		matches  bool
	}{{1, true}, {Absent, false}, {sourceTimestamp, true}, {sourcePartition, true}, {sourceRow, false}} {
		term := terms[i].Term
		if got := b.Property(term); got != want.property {
			t.Errorf("%v compares property %d, want %d", term, got, want.property)
		}
		if got := b.Test(term, e.View()); got != want.matches {
			t.Errorf("%v: %v, want %v", term, got, want.matches)
		}
	}
	if p.Columns() != nil {
		t.Errorf("columns %q of a Program that compares keys", p.Columns())
	}
	p = Compile(NewAnd(terms[2].Clone(), terms[1].Clone(), terms[0].Clone()))
	if want := append(slices.Clip(p.Names()), edm.TimestampName); !slices.Equal(p.Columns(), want) || len(want) != 3 {
		t.Errorf("columns %q, want %q", p.Columns(), want)
	}
	for _, k := range p.Root().Kids {
		if got := p.Columns()[p.Column(k.Term)]; got != k.Term.Name {
			t.Errorf("%v compares the column %s", k.Term, got)
		}
	}
}

func TestPrune(t *testing.T) {
	i := func(lo, hi int64) Column { return Column{Present: All, Min: edm.Int64(lo), Max: edm.Int64(hi)} }
	f := func(lo, hi float64, hasNaN bool) Column {
		return Column{Present: All, Min: edm.Double(lo), Max: edm.Double(hi), NaN: hasNaN}
	}
	s := func(lo, hi string) Column { return Column{Present: All, Min: edm.String(lo), Max: edm.String(hi)} }
	some := func(c Column) Column { c.Present = Some; return c }
	x := func(op Op, v edm.Value) *Node { return NewCompare("x", op, v) }
	five := edm.Int32(5)
	for _, tt := range []struct {
		node *Node
		typ  edm.Type
		c    Column
		want Truth
	}{
		{x(Eq, five), edm.TypeInt64, i(1, 4), None},
		{x(Eq, five), edm.TypeInt64, i(5, 5), All},
		{x(Eq, five), edm.TypeInt64, i(4, 6), Some},
		{x(Ne, five), edm.TypeInt64, i(1, 4), All},
		{x(Ne, five), edm.TypeInt64, i(5, 5), None},
		{x(Ge, five), edm.TypeInt64, i(5, 9), All},
		{x(Gt, five), edm.TypeInt64, i(5, 9), Some},
		{x(Lt, five), edm.TypeInt64, i(5, 9), None},
		{x(Lt, five), edm.TypeInt64, some(i(1, 4)), Some},
		{x(Lt, five), edm.TypeInt64, some(i(5, 9)), None},
		{x(Lt, five), edm.TypeInt64, Column{Present: None}, None},
		{x(Lt, five), edm.TypeInt64, Column{Present: All}, Some},
		{x(Lt, five), edm.TypeInt64, Column{Present: All, Min: edm.Int64(7)}, None},
		{x(Ge, five), edm.TypeInt64, Column{Present: All, Min: edm.Int64(7)}, Some},
		{x(Ge, edm.Int32(-1)), edm.TypeInt64, Column{Present: All, Max: edm.Int64(4)}, Some},
		{x(Lt, edm.Int32(-5)), edm.TypeInt64, Column{Present: All, Max: edm.Int64(4)}, Some},
		// Rows without the property satisfy a negation.
		{NewNot(x(Lt, five)), edm.TypeInt64, some(i(1, 4)), Some},
		{NewNot(x(Lt, five)), edm.TypeInt64, i(1, 4), None},
		{NewNot(x(Lt, five)), edm.TypeInt64, some(i(5, 9)), All},
		{NewNot(x(Lt, five)), edm.TypeInt64, Column{}, All},
		{NewNot(x(Ne, five)), edm.TypeInt64, Column{}, All},
		{x(Le, five), edm.TypeDouble, f(4, 6, false), Some},
		{x(Ge, five), edm.TypeDouble, Column{Present: All, Min: edm.Double(3)}, Some},
		{x(Ge, edm.Int32(-1)), edm.TypeDouble, Column{Present: All, Max: edm.Double(4)}, Some},
		{x(Lt, edm.Int32(-5)), edm.TypeDouble, Column{Present: All, Max: edm.Double(4)}, Some},
		// NaN matches only Ne.
		{x(Ge, five), edm.TypeDouble, f(5, 9, false), All},
		{x(Ge, five), edm.TypeDouble, f(5, 9, true), Some},
		{x(Lt, five), edm.TypeDouble, f(5, 9, true), None},
		{x(Ne, five), edm.TypeDouble, f(5, 5, true), Some},
		{x(Ne, five), edm.TypeDouble, f(6, 9, true), All},
		{x(Eq, edm.Double(0)), edm.TypeDouble, f(math.Copysign(0, -1), 0, false), All},
		// Other types match only Ne.
		{x(Ne, five), edm.TypeString, s("a", "b"), All},
		{x(Ge, five), edm.TypeString, s("a", "b"), None},
		{x(Ge, edm.String("b")), edm.TypeString, s("b", "c"), All},
		{x(Gt, edm.String("c")), edm.TypeString, s("b", "c"), None},
		{x(Eq, edm.String("b")), edm.TypeString, s("b", "c"), Some},
		{x(Ne, edm.String("b")), edm.TypeString, s("c", "d"), All},
		{x(Lt, edm.String("\uE000")), edm.TypeString, s("\U0001F600", "\U0010FFFF"), All},
		{x(Le, edm.GuidWords(2, 0)), edm.TypeGuid, Column{Present: All, Min: edm.GuidWords(1, 0), Max: edm.GuidWords(2, 0)}, All},
		{NewAnd(x(Ge, five), x(Lt, edm.Int32(9))), edm.TypeInt64, i(5, 8), All},
		{NewAnd(x(Ge, five), x(Lt, edm.Int32(9))), edm.TypeInt64, i(5, 9), Some},
		{NewAnd(x(Ge, five), x(Lt, edm.Int32(9))), edm.TypeInt64, i(9, 9), None},
		{NewOr(x(Lt, five), x(Gt, edm.Int32(9))), edm.TypeInt64, i(5, 9), None},
		{NewOr(x(Lt, five), x(Gt, edm.Int32(9))), edm.TypeInt64, i(10, 11), All},
		// Only the column of DateTimes is of the Timestamp, and none is of a key.
		{
			NewCompare("Timestamp", Ne, edm.DateTime(5)), edm.TypeDateTime,
			Column{Present: All, Min: edm.DateTime(5), Max: edm.DateTime(5)},
			None,
		},
		{NewCompare("PartitionKey", Eq, edm.String("a")), edm.TypeString, s("b", "c"), Some},
		{NewCompare("RowKey", Eq, edm.String("a")), edm.TypeString, s("b", "c"), Some},
		{NewOr(NewCompare("RowKey", Eq, edm.String("a")), NewCompare("RowKey", Eq, edm.String("e"))), edm.TypeString, s("b", "c"), Some},
		{NewOr(x(Eq, edm.String("b")), x(Eq, edm.String("e")), NewCompare("y", Eq, five)), edm.TypeString, s("b", "c"), Some},
		{NewConst(true), edm.TypeInt64, Column{}, All},
		{NewConst(false), edm.TypeInt64, Column{}, None},
	} {
		text := tt.node.String()
		p := Compile(tt.node)
		got := p.Prune(func(property int, typ edm.Type) Column {
			if property == Timestamp && typ != edm.TypeDateTime || property < 0 && property != Timestamp {
				t.Errorf("%s: Prune asks for the %v of property %d", text, typ, property)
			}
			if (property < 0 || p.Names()[property] == "x") && typ == tt.typ {
				return tt.c
			}
			return Column{}
		})
		if got != tt.want {
			t.Errorf("%s with %v %+v: got %d, want %d", text, tt.typ, tt.c, got, tt.want)
		}
	}
}

// TestForBounds checks which operands of a condition remain for the bounds of columns.
func TestForBounds(t *testing.T) {
	x := func(i int) *Node { return NewCompare("x", Eq, edm.Int32(int32(i))) }
	row := func() *Node { return NewCompare("RowKey", Ne, edm.String("r")) }
	many := func(n int) (list []*Node) {
		for i := range n {
			list = append(list, x(i))
		}
		return list
	}
	for _, tt := range []struct {
		name string
		node *Node
		want *Node // nil: no Program
	}{
		{"comparison", x(1), x(1)},
		{"timestamp", NewCompare("Timestamp", Gt, edm.DateTime(5)), NewCompare("Timestamp", Gt, edm.DateTime(5))},
		{"key", row(), nil},
		{"true", NewConst(true), nil},
		{"false", NewConst(false), NewConst(false)},
		{"key and comparison", NewAnd(row(), x(1)), x(1)},
		{"key or comparison", NewOr(row(), x(1)), nil},
		{"alternatives beside a key", NewAnd(row(), NewOr(x(1), NewAnd(row(), x(2)))), NewOr(x(1), NewAnd(row(), x(2)))},
		{"alternative of a key alone", NewAnd(x(1), NewOr(x(1), row())), x(1)},
		{"as many as allowed", NewOr(many(maxBoundsTerms)...), NewOr(many(maxBoundsTerms)...)},
		{"one more", NewOr(many(maxBoundsTerms + 1)...), nil},
		{"one more in conjunction", NewAnd(many(maxBoundsTerms + 1)...), NewAnd(many(maxBoundsTerms)...)},
		{"a long operand", NewAnd(x(1), NewOr(many(maxBoundsTerms)...), x(2)), NewAnd(x(1), x(2))},
	} {
		p := Compile(tt.node)
		got := p.ForBounds()
		if tt.want == nil {
			if got != nil {
				t.Errorf("%s: got %v, want none", tt.name, got.Root())
			}
			continue
		}
		want := Compile(tt.want).Root().String()
		if got == nil || got.Root().String() != want {
			t.Errorf("%s: got %v, want %s", tt.name, got, want)
		} else if whole := p.Root().String() == want; whole != (got == p) {
			t.Errorf("%s: the whole program is a copy, or the other is not", tt.name)
		}
	}
}

func TestTestRanges(t *testing.T) {
	if lo, hi, outside := NewCompare("x", Gt, edm.Int32(4)).Term.Test(edm.TypeInt64).intRange(); lo != 5 || hi != math.MaxInt64 || outside {
		t.Errorf("gt 4 is [%d, %d], outside %v", lo, hi, outside)
	}
	if lo, hi, outside := NewCompare("x", Ne, edm.Double(4)).Term.Test(edm.TypeDouble).floatRange(); lo != 4 || hi != 4 || !outside {
		t.Errorf("ne 4 is [%v, %v], outside %v", lo, hi, outside)
	}
	if term := NewCompare("x", Lt, edm.Binary([]byte{2})).Term; !term.Test(edm.TypeBinary).Bytes([]byte{1}) || !bytes.Equal(term.Value.Bytes(), []byte{2}) {
		t.Error("X'01' is not less than X'02'")
	}
}
