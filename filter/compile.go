package filter

import (
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/predicate"
)

// compile turns a checked tree into a predicate. For tables, names are folded,
// since they are the same in every case.
func compile(n node, tables bool) *predicate.Node {
	switch n := n.(type) {
	case *orNode:
		return predicate.NewOr(compileAll(n.nodes, tables)...)
	case *andNode:
		return predicate.NewAnd(compileAll(n.nodes, tables)...)
	case *notNode:
		return predicate.NewNot(compile(n.node, tables))
	case *compareNode:
		if n.left.kind == operandProperty {
			return compileTerm(n.left.name, n.op, n.right.value, tables)
		}
		return compileTerm(n.right.name, n.op.Mirror(), n.left.value, tables)
	case *operandNode:
		if n.operand.kind == operandProperty {
			return predicate.NewCompare(n.operand.name, predicate.Eq, edm.Boolean(true))
		}
		b, _ := n.operand.value.Bool()
		return predicate.NewConst(b)
	}
	panic("filter: unknown node")
}

func compileAll(nodes []node, tables bool) []*predicate.Node {
	kids := make([]*predicate.Node, len(nodes))
	for i, n := range nodes {
		kids[i] = compile(n, tables)
	}
	return kids
}

func compileTerm(name string, op predicate.Op, v edm.Value, tables bool) *predicate.Node {
	if tables {
		v = edm.String(edm.FoldTableName(string(v.Bytes())))
	}
	return predicate.NewCompare(name, op, v)
}

// tableRow shows a table's name as the one property of a row.
type tableRow struct {
	edm.Row // nil: predicates over tables ask for nothing else
	name    edm.Value
}

func (r *tableRow) Lookup(name string) (edm.Value, bool) { return r.name, name == tableName }
