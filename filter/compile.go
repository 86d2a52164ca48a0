package filter

import (
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/predicate"
)

// compile converts a checked tree to a predicate. It folds the names of tables,
// which are compared without regard to case.
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

// tableRow is a row whose only property is the name of a table.
type tableRow struct {
	edm.Row // nil, since predicates over tables call only Lookup
	name    edm.Value
}

func (r *tableRow) Lookup(name string) (edm.Value, bool) { return r.name, name == tableName }
