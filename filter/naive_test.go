package filter

import (
	"bytes"
	"math"
	"math/big"
	"slices"
	"unicode/utf16"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/predicate"
)

// naive evaluates the tree of a filter without the code of this package. It compares
// numbers as fractions and strings as code units.
func naive(n node, e *edm.Entity) bool {
	switch n := n.(type) {
	case *orNode:
		return slices.ContainsFunc(n.nodes, func(k node) bool { return naive(k, e) })
	case *andNode:
		return !slices.ContainsFunc(n.nodes, func(k node) bool { return !naive(k, e) })
	case *notNode:
		return !naive(n.node, e)
	case *operandNode:
		v, ok := naiveOperand(n.operand, e)
		b, isBool := v.Bool()
		return ok && isBool && b
	case *compareNode:
		left, ok1 := naiveOperand(n.left, e)
		right, ok2 := naiveOperand(n.right, e)
		return ok1 && ok2 && naiveCompare(left, n.op, right)
	}
	panic("unknown node")
}

func naiveOperand(o operand, e *edm.Entity) (edm.Value, bool) {
	if o.kind == operandLiteral {
		return o.value, true
	}
	switch o.name {
	case "PartitionKey":
		return edm.String(e.Key.Partition), true
	case "RowKey":
		return edm.String(e.Key.Row), true
	case "Timestamp":
		return edm.DateTime(e.Timestamp), true
	}
	for _, p := range e.Properties {
		if p.Name == o.name {
			return p.Value, !p.Value.IsNull()
		}
	}
	return edm.Value{}, false
}

func naiveCompare(a edm.Value, op predicate.Op, b edm.Value) bool {
	isNumber := func(v edm.Value) bool {
		return v.Type() == edm.TypeInt32 || v.Type() == edm.TypeInt64 || v.Type() == edm.TypeDouble
	}
	isNaN := func(v edm.Value) bool {
		f, ok := v.Double()
		return ok && math.IsNaN(f)
	}
	var c int
	switch {
	case isNumber(a) && isNumber(b):
		if isNaN(a) || isNaN(b) {
			return op == predicate.Ne
		}
		c = naiveNumber(a).Cmp(naiveNumber(b))
	case a.Type() != b.Type():
		return op == predicate.Ne
	case a.Type() == edm.TypeString:
		c = slices.Compare(utf16.Encode([]rune(string(a.Bytes()))), utf16.Encode([]rune(string(b.Bytes()))))
	case a.Type() == edm.TypeBinary:
		c = bytes.Compare(a.Bytes(), b.Bytes())
	case a.Type() == edm.TypeBoolean:
		c = int(a.Word()) - int(b.Word())
	case a.Type() == edm.TypeDateTime:
		c = big.NewInt(int64(a.Word())).Cmp(big.NewInt(int64(b.Word())))
	case a.Type() == edm.TypeGuid:
		c = slices.Compare([]byte(a.String()), []byte(b.String()))
	}
	switch op {
	case predicate.Eq:
		return c == 0
	case predicate.Ne:
		return c != 0
	case predicate.Lt:
		return c < 0
	case predicate.Le:
		return c <= 0
	case predicate.Gt:
		return c > 0
	case predicate.Ge:
		return c >= 0
	}
	panic("unknown operator")
}

func naiveNumber(v edm.Value) *big.Float {
	f := new(big.Float).SetPrec(200)
	if x, ok := v.Double(); ok {
		return f.SetFloat64(x)
	}
	n, _ := v.Int64()
	return f.SetInt64(n)
}

// naiveKeyCompare orders keys by code units.
func naiveKeyCompare(a, b edm.Key) int {
	units := func(s string) []uint16 { return utf16.Encode([]rune(s)) }
	if c := slices.Compare(units(a.Partition), units(b.Partition)); c != 0 {
		return c
	}
	return slices.Compare(units(a.Row), units(b.Row))
}

// naiveReached reports whether k is after the bound b, which is not Unbounded.
func naiveReached(k edm.Key, b Bound) bool {
	partition := naiveKeyCompare(edm.Key{Partition: k.Partition}, edm.Key{Partition: b.Key.Partition})
	switch b.Kind {
	case BeforePartition:
		return partition >= 0
	case BeforeRow:
		return naiveKeyCompare(k, b.Key) >= 0
	case AfterRow:
		return naiveKeyCompare(k, b.Key) > 0
	case AfterPartition:
		return partition > 0
	}
	panic("unbounded")
}

func naiveInside(k edm.Key, r Range) bool {
	return (r.From.Kind == Unbounded || naiveReached(k, r.From)) && (r.To.Kind == Unbounded || !naiveReached(k, r.To))
}
