package filter

import (
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/predicate"
)

// seed returns the seed of a random test, which TABLEROCK_SEED can set, and logs it.
func seed(t testing.TB) uint64 {
	s := uint64(1)
	if text := os.Getenv("TABLEROCK_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("TABLEROCK_SEED: %v", err)
		}
		s = n
	}
	t.Logf("TABLEROCK_SEED=%d", s)
	return s
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 2)) }

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

var (
	longA = strings.Repeat("a", edm.MaxKeyUnits)

	// legalKeys are legal parts of keys.
	legalKeys = []string{
		"", " ", "a", "a ", "aa", "ab", "b", "ba", "\uD7FF", "\U0001F600", "\U0010FFFF", "\uE000", "\uFFFF", "a\uFFFF",
		"a\U0001F600", "a\uE000", longA, longA[1:], longA[1:] + "b", longA[1:] + "\uD7FF", longA[1:] + "\uE000",
		longA[2:] + "\U0001F600", longA[2:],
	}
	// otherKeys are not legal, but a filter may have them.
	otherKeys = []string{
		"\x00", "a\x01", "a\x1fb", "\x02a", "a/b", "a\x7f", longA + "b", longA + "\x01", longA[1:] + "\U0001F600",
		longA[1:] + "\U0001F600b", longA[1:] + "\uFFFFb", longA + longA, longA[1:] + "\uD7FF\U0001F600",
	}
	names   = []string{"A", "B", "C", "Größe", "_x", "and"}
	doubles = []float64{
		0, math.Copysign(0, -1), 1, -1, 0.5, 1.5, -2.5, 5, 1 << 31, 1 << 53, 1<<53 + 2, -(1 << 53), 1 << 62, 1<<63 - 1024, 1 << 63,
		-(1 << 63), -(1 << 63) - 2048, 1e300, -1e300, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(1), math.Inf(-1), math.NaN(),
	}
	int64s = []int64{
		0, 1, -1, 5, math.MaxInt32, math.MinInt32, 1 << 31, 1 << 53, 1<<53 + 1, 1<<53 - 1, -(1<<53 + 1), 1<<62 + 1,
		math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 - 511, math.MaxInt64 - 512, math.MaxInt64 - 1023, math.MinInt64, math.MinInt64 + 1,
	}
	texts = []string{"", "a", "ab", "b", "'", "it''s", "a\x01", "\uD7FF", "\uE000", "\uFFFF", "\U0001F600", "a\U0001F600", "a\uE000"}
	ticks = []edm.Ticks{0, 1, 133_000_000_000_000_000, 133_000_000_000_000_001, edm.MaxTicks}
)

// randomValue returns a value of any type, or of type t if that is not 0.
func randomValue(r *rand.Rand, t edm.Type) edm.Value {
	if t == 0 {
		t = edm.Type(1 + r.IntN(8))
	}
	switch t {
	case edm.TypeString:
		return edm.String(pick(r, texts))
	case edm.TypeBinary:
		return edm.Binary([]byte(pick(r, texts)))
	case edm.TypeBoolean:
		return edm.Boolean(r.IntN(2) == 0)
	case edm.TypeInt32:
		return edm.Int32(int32(pick(r, int64s)))
	case edm.TypeInt64:
		return edm.Int64(pick(r, int64s) + r.Int64N(2))
	case edm.TypeDouble:
		return edm.Double(pick(r, doubles))
	case edm.TypeDateTime:
		return edm.DateTime(pick(r, ticks))
	}
	return edm.GuidWords(r.Uint64N(2)<<63|r.Uint64N(2), r.Uint64N(2)<<63|r.Uint64N(2))
}

func randomEntity(r *rand.Rand) edm.Entity {
	e := edm.Entity{
		Key:       edm.Key{Partition: pick(r, legalKeys), Row: pick(r, legalKeys)},
		Timestamp: pick(r, ticks),
	}
	for _, i := range r.Perm(len(names))[:r.IntN(len(names))] {
		e.Properties = append(e.Properties, edm.Property{Name: names[i], Value: randomValue(r, 0)})
	}
	return e
}

var ops = []predicate.Op{predicate.Eq, predicate.Ne, predicate.Lt, predicate.Le, predicate.Gt, predicate.Ge}

// randomNode returns a filter of at most depth levels. With keys it compares only
// PartitionKey and RowKey.
func randomNode(r *rand.Rand, depth int, keys bool) node {
	if depth > 0 {
		n := r.IntN(7)
		kids := []node{randomNode(r, depth-1, keys)}
		for range 1 + r.IntN(3) {
			kids = append(kids, randomNode(r, depth-1, keys))
		}
		switch {
		case n < 2:
			return newAnd(kids...)
		case n < 4:
			return newOr(kids...)
		case n < 5:
			return &notNode{node: kids[0]}
		}
	}
	return randomLeaf(r, keys)
}

func randomLeaf(r *rand.Rand, keys bool) node {
	name, value := pick(r, names), randomValue(r, 0)
	n := r.IntN(10)
	if keys {
		n %= 4
	}
	switch {
	case n < 4:
		name, value = pick(r, []string{edm.PartitionKeyName, edm.RowKeyName}), edm.String(pick(r, legalKeys))
		if r.IntN(4) == 0 {
			value = edm.String(pick(r, otherKeys))
		}
	case n == 4:
		name, value = edm.TimestampName, randomValue(r, edm.TypeDateTime)
	case n == 5 && r.IntN(2) == 0:
		return &operandNode{operand: operand{kind: operandLiteral, value: edm.Boolean(r.IntN(2) == 0)}}
	case n == 5:
		return &operandNode{operand: operand{kind: operandProperty, name: name}}
	}
	c := &compareNode{op: pick(r, ops), left: operand{kind: operandProperty, name: name}, right: operand{kind: operandLiteral, value: value}}
	if r.IntN(4) == 0 {
		c.left, c.right = c.right, c.left
	}
	return c
}
