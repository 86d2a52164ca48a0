// Package ast is the syntax tree of the filter language.
package ast

import (
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/predicate"
)

// Node is a boolean expression: *Or, *And, *Not, *Compare or *Bare.
type Node interface {
	// AppendText appends the expression in the filter language to dst, with no
	// more parentheses than it needs.
	AppendText(dst []byte) []byte
	node()
}

// Or is two or more expressions joined by "or"; none of them is an *Or.
type Or struct{ Nodes []Node }

// And is two or more expressions joined by "and"; none of them is an *And.
type And struct{ Nodes []Node }

// Not is a negated expression.
type Not struct{ Node Node }

// Compare is a comparison, with its operands in the order of the text.
type Compare struct {
	Op          predicate.Op
	Left, Right Operand
}

// Bare is an operand that stands for a condition: a property that is true, or
// the literal true or false.
type Bare struct{ Operand Operand }

func (*Or) node()      {}
func (*And) node()     {}
func (*Not) node()     {}
func (*Compare) node() {}
func (*Bare) node()    {}

// OperandKind is what an Operand is.
type OperandKind uint8

// The kinds of Operand.
const (
	Property OperandKind = iota + 1
	Literal
	Null
)

// Operand is a property's name or a literal.
type Operand struct {
	Kind  OperandKind
	Name  string    // of a Property
	Value edm.Value // of a Literal
	Pos   int       // where it begins in the text, in bytes
}

// NewOr joins two or more nodes by "or", taking apart those that are themselves joined so.
func NewOr(nodes ...Node) Node {
	flat := make([]Node, 0, len(nodes))
	for _, n := range nodes {
		if o, ok := n.(*Or); ok {
			flat = append(flat, o.Nodes...)
		} else {
			flat = append(flat, n)
		}
	}
	return &Or{flat}
}

// NewAnd joins nodes by "and", taking apart those that are themselves joined so. One
// node stays as it is.
func NewAnd(nodes ...Node) Node {
	if len(nodes) == 1 {
		return nodes[0]
	}
	flat := make([]Node, 0, len(nodes))
	for _, n := range nodes {
		if a, ok := n.(*And); ok {
			flat = append(flat, a.Nodes...)
		} else {
			flat = append(flat, n)
		}
	}
	return &And{flat}
}

// CompareKey returns the comparison of the string property called name with s.
func CompareKey(name string, op predicate.Op, s string) Node {
	return &Compare{op, Operand{Kind: Property, Name: name}, Operand{Kind: Literal, Value: edm.String(s)}}
}
