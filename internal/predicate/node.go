package predicate

import (
	"strings"

	"github.com/tablerock-db/tablerock/edm"
)

// NodeKind is the kind of a Node.
type NodeKind uint8

// The kinds of Node. A Program has no Not nodes: its Compare nodes are negated
// instead.
const (
	False NodeKind = iota
	True
	Compare
	And
	Or
	Not
)

// Node is a boolean expression over Terms.
type Node struct {
	Kind NodeKind
	// Term is the comparison of a Compare node. Negated negates its result, so that a
	// row without the property satisfies the node.
	Term    *Term
	Negated bool
	// Kids are the operands of And, Or and Not.
	Kids []*Node
}

// NewConst returns the Node that is always b.
func NewConst(b bool) *Node {
	if b {
		return &Node{Kind: True}
	}
	return &Node{Kind: False}
}

// NewCompare returns the comparison of the property called name with v, which must not
// be null and whose bytes must not change. The constant for PartitionKey and RowKey must be a
// String, that for Timestamp a DateTime: package filter refuses others.
func NewCompare(name string, op Op, v edm.Value) *Node {
	return &Node{Kind: Compare, Term: newTerm(name, op, v)}
}

// NewAnd returns the conjunction of kids, true if there are none.
func NewAnd(kids ...*Node) *Node { return &Node{Kind: And, Kids: kids} }

// NewOr returns the disjunction of kids, false if there are none.
func NewOr(kids ...*Node) *Node { return &Node{Kind: Or, Kids: kids} }

// NewNot returns the negation of n.
func NewNot(n *Node) *Node { return &Node{Kind: Not, Kids: []*Node{n}} }

// Clone returns a copy of n, which can become a part of another Program.
func (n *Node) Clone() *Node {
	c := &Node{Kind: n.Kind, Negated: n.Negated}
	if n.Term != nil {
		c.Term = newTerm(n.Term.Name, n.Term.Op, n.Term.Value)
	}
	for _, k := range n.Kids {
		c.Kids = append(c.Kids, k.Clone())
	}
	return c
}

// normal returns n, negated if negate is set, in normal form: without Not nodes, with
// a constant only as the root, and without an And below an And or an Or below an Or.
func normal(n *Node, negate bool) *Node {
	switch n.Kind {
	case False, True:
		return NewConst((n.Kind == True) != negate)
	case Compare:
		if !negate {
			return n
		}
		return &Node{Kind: Compare, Term: n.Term, Negated: !n.Negated}
	case Not:
		return normal(n.Kids[0], !negate)
	}
	kind, neutral, decisive := And, True, False
	if (n.Kind == Or) != negate {
		kind, neutral, decisive = Or, False, True
	}
	kids := make([]*Node, 0, len(n.Kids))
	for _, k := range n.Kids {
		switch k = normal(k, negate); k.Kind {
		case decisive:
			return k
		case neutral:
		case kind:
			kids = append(kids, k.Kids...)
		default:
			kids = append(kids, k)
		}
	}
	switch len(kids) {
	case 0:
		return &Node{Kind: neutral}
	case 1:
		return kids[0]
	}
	return &Node{Kind: kind, Kids: kids}
}

// String returns n as text for logs and test failures.
func (n *Node) String() string {
	switch n.Kind {
	case False:
		return "false"
	case True:
		return "true"
	case Compare:
		if n.Negated {
			return "not (" + n.Term.String() + ")"
		}
		return n.Term.String()
	case Not:
		return "not (" + n.Kids[0].String() + ")"
	}
	word := " and "
	if n.Kind == Or {
		word = " or "
	}
	texts := make([]string, len(n.Kids))
	for i, k := range n.Kids {
		texts[i] = k.String()
	}
	return "(" + strings.Join(texts, word) + ")"
}
