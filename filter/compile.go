package filter

import (
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter/ast"
	"github.com/tablerock-db/tablerock/internal/predicate"
)

// compile turns a checked tree into a predicate. For tables, names are folded,
// since they are the same in every case.
func compile(n ast.Node, tables bool) *predicate.Node {
	switch n := n.(type) {
	case *ast.Or:
		return predicate.NewOr(compileAll(n.Nodes, tables)...)
	case *ast.And:
		return predicate.NewAnd(compileAll(n.Nodes, tables)...)
	case *ast.Not:
		return predicate.NewNot(compile(n.Node, tables))
	case *ast.Compare:
		if n.Left.Kind == ast.Property {
			return compileTerm(n.Left.Name, n.Op, n.Right.Value, tables)
		}
		return compileTerm(n.Right.Name, n.Op.Mirror(), n.Left.Value, tables)
	case *ast.Bare:
		if n.Operand.Kind == ast.Property {
			return predicate.NewCompare(n.Operand.Name, predicate.Eq, edm.Boolean(true))
		}
		return predicate.NewConst(n.Operand.Value.Bool())
	}
	panic("filter: unknown node")
}

func compileAll(nodes []ast.Node, tables bool) []*predicate.Node {
	kids := make([]*predicate.Node, len(nodes))
	for i, n := range nodes {
		kids[i] = compile(n, tables)
	}
	return kids
}

func compileTerm(name string, op predicate.Op, v edm.Value, tables bool) *predicate.Node {
	if tables {
		v = edm.String(edm.FoldTableName(v.Text()))
	}
	return predicate.NewCompare(name, op, v)
}

// tableRow shows a table's name as the one property of a row.
type tableRow struct {
	edm.Row // nil: predicates over tables ask for nothing else
	name    edm.Value
}

func (r *tableRow) Lookup(name string) (edm.Value, bool) { return r.name, name == TableName }
