package filter

import (
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/predicate"
)

// node is a boolean expression of the syntax tree: an *orNode, *andNode,
// *notNode, *compareNode or *operandNode.
type node interface {
	// appendText appends the expression in the filter language to dst, with no
	// more parentheses than it needs.
	appendText(dst []byte) []byte
}

// orNode joins two or more expressions by "or". None of them is an *orNode.
type orNode struct{ nodes []node }

// andNode joins two or more expressions by "and". None of them is an *andNode.
type andNode struct{ nodes []node }

// notNode is a negated expression.
type notNode struct{ node node }

// compareNode is a comparison, with its operands in the order of the text.
type compareNode struct {
	op          predicate.Op
	left, right operand
}

// operandNode is an operand used as a condition: a property compared with true,
// or the literal true or false.
type operandNode struct{ operand operand }

type operandKind uint8

const (
	operandProperty operandKind = iota + 1
	operandLiteral
	operandNull
)

// operand is the name of a property, a literal or null.
type operand struct {
	kind  operandKind
	name  string    // of an operandProperty
	value edm.Value // of an operandLiteral
	pos   int       // byte offset in the text
}

// newOr joins two or more nodes by "or" and flattens those that are *orNode.
func newOr(nodes ...node) node {
	flat := make([]node, 0, len(nodes))
	for _, n := range nodes {
		if o, ok := n.(*orNode); ok {
			flat = append(flat, o.nodes...)
		} else {
			flat = append(flat, n)
		}
	}
	return &orNode{flat}
}

// newAnd joins nodes by "and" and flattens those that are *andNode. It returns a
// single node unchanged.
func newAnd(nodes ...node) node {
	if len(nodes) == 1 {
		return nodes[0]
	}
	flat := make([]node, 0, len(nodes))
	for _, n := range nodes {
		if a, ok := n.(*andNode); ok {
			flat = append(flat, a.nodes...)
		} else {
			flat = append(flat, n)
		}
	}
	return &andNode{flat}
}

// compareKey returns the comparison of the string property called name with s.
func compareKey(name string, op predicate.Op, s string) node {
	return &compareNode{op, operand{kind: operandProperty, name: name}, operand{kind: operandLiteral, value: edm.String(s)}}
}
