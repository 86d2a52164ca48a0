package filter

import (
	"strings"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/predicate"
)

// Tree is a filter as a tree, for programs that show or build filters.
type Tree struct {
	// Op is and, or or not; the operator of a comparison, such as ge; or "" for a constant
	// condition.
	Op    string
	Items []Tree    // of and, or or not
	Name  string    // the property of a comparison
	Value edm.Value // the constant of a comparison, or the Boolean of a constant condition
}

// Tree returns e as a tree. A property that is a condition by itself becomes a comparison
// with true, and constants are on the right. The tree of a nil Expr is the condition true.
func (e *Expr) Tree() Tree {
	if e == nil {
		return Tree{Value: edm.Boolean(true)}
	}
	return treeOf(e.compiled().root)
}

func treeOf(n node) Tree {
	switch n := n.(type) {
	case *orNode:
		return Tree{Op: "or", Items: treesOf(n.nodes)}
	case *andNode:
		return Tree{Op: "and", Items: treesOf(n.nodes)}
	case *notNode:
		return Tree{Op: "not", Items: []Tree{treeOf(n.node)}}
	case *compareNode:
		if n.left.kind == operandProperty {
			return Tree{Op: n.op.String(), Name: n.left.name, Value: n.right.value}
		}
		return Tree{Op: n.op.Mirror().String(), Name: n.right.name, Value: n.left.value}
	case *operandNode:
		if n.operand.kind == operandProperty {
			return Tree{Op: predicate.Eq.String(), Name: n.operand.name, Value: edm.Boolean(true)}
		}
		return Tree{Value: n.operand.value}
	}
	return Tree{}
}

func treesOf(nodes []node) []Tree {
	list := make([]Tree, len(nodes))
	for i, n := range nodes {
		list[i] = treeOf(n)
	}
	return list
}

// AppendText appends the text of t. It does not check names and types: Parse does. An and or
// or without items is true or false.
func (t Tree) AppendText(dst []byte) []byte {
	switch t.Op {
	case "and", "or":
		if len(t.Items) == 0 {
			return appendLiteral(dst, edm.Boolean(t.Op == "and"))
		}
		for i, item := range t.Items {
			if i > 0 {
				dst = append(append(append(dst, ' '), t.Op...), ' ')
			}
			if t.Op == "and" && len(t.Items) > 1 && item.isOr() {
				dst = append(item.AppendText(append(dst, '(')), ')')
			} else {
				dst = item.AppendText(dst)
			}
		}
		return dst
	case "not":
		dst = append(dst, "not ("...)
		for _, item := range t.Items {
			dst = item.AppendText(dst)
		}
		return append(dst, ')')
	case "":
		return appendLiteral(dst, t.Value)
	}
	if t.Name == "not" { // in front it is the operator
		return append(append(append(appendLiteral(dst, t.Value), ' '), mirrored.Replace(t.Op)...), " not"...)
	}
	dst = append(append(dst, t.Name...), ' ')
	return appendLiteral(append(append(dst, t.Op...), ' '), t.Value)
}

// mirrored replaces an operator by the one with the same meaning for exchanged operands.
var mirrored = strings.NewReplacer("lt", "gt", "le", "ge", "gt", "lt", "ge", "le")

// isOr reports whether the text of t is an or. That of a group of one is the text of its item.
func (t Tree) isOr() bool {
	for len(t.Items) == 1 && t.Op != "not" {
		t = t.Items[0]
	}
	return t.Op == "or"
}
