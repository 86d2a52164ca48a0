package filter

import (
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter/ast"
)

// checker finds what is written as the grammar asks, and still no filter.
type checker struct {
	text   string
	tables bool
}

// declared returns the type that the property called name always has, 0 if it
// may have any.
func (c *checker) declared(name string) edm.Type {
	switch {
	case c.tables, name == edm.PartitionKeyName, name == edm.RowKeyName:
		return edm.TypeString
	case name == edm.TimestampName:
		return edm.TypeDateTime
	}
	return 0
}

// root checks a whole filter.
func (c *checker) root(n ast.Node) *Error {
	if err := c.node(n); err != nil {
		return err
	}
	return c.condition(n)
}

// condition refuses n if it stands alone and is no condition. The service words
// it as if n were joined with one by "and".
func (c *checker) condition(n ast.Node) *Error {
	if t := c.typeOf(n); t != edm.TypeBoolean {
		return incompatible(c.text, n.(*ast.Bare).Operand.Pos, t, edm.TypeBoolean, "And")
	}
	return nil
}

// node checks n and what is below it.
func (c *checker) node(n ast.Node) *Error {
	switch n := n.(type) {
	case *ast.Or:
		return c.chain(n.Nodes, "Or")
	case *ast.And:
		return c.chain(n.Nodes, "And")
	case *ast.Not:
		return c.root(n.Node)
	case *ast.Compare:
		return c.compare(n)
	case *ast.Bare:
		return c.bare(&n.Operand)
	}
	return nil
}

// chain checks the operands of an operator, which groups from the left.
func (c *checker) chain(nodes []ast.Node, operator string) *Error {
	left := edm.TypeBoolean
	for i, n := range nodes {
		if err := c.node(n); err != nil {
			return err
		}
		t := c.typeOf(n)
		if i == 0 {
			left = t
			continue
		}
		if left != edm.TypeBoolean || t != edm.TypeBoolean {
			at, ok := n.(*ast.Bare)
			if left != edm.TypeBoolean || !ok {
				at = nodes[i-1].(*ast.Bare)
			}
			return incompatible(c.text, at.Operand.Pos, left, t, operator)
		}
	}
	return nil
}

// typeOf returns the type of n, Boolean for a property that may have any.
func (c *checker) typeOf(n ast.Node) edm.Type {
	b, ok := n.(*ast.Bare)
	if !ok {
		return edm.TypeBoolean
	}
	if b.Operand.Kind == ast.Literal {
		return b.Operand.Value.Type()
	}
	if t := c.declared(b.Operand.Name); t != 0 {
		return t
	}
	return edm.TypeBoolean
}

// bare checks an operand that stands for a condition, but for its type.
func (c *checker) bare(o *ast.Operand) *Error {
	if o.Kind == ast.Null {
		return refusal(c.text, o.Pos, InvalidInput, messageInvalid)
	}
	return c.property(o)
}

// property refuses a property that tables do not have.
func (c *checker) property(o *ast.Operand) *Error {
	if c.tables && o.Kind == ast.Property && o.Name != TableName {
		return notImplemented(c.text, o.Pos)
	}
	return nil
}

// compare checks a comparison: one side is a property, the other a literal of
// its type if that is declared.
func (c *checker) compare(n *ast.Compare) *Error {
	for _, o := range []*ast.Operand{&n.Left, &n.Right} {
		if err := c.property(o); err != nil {
			return err
		}
	}
	if (n.Left.Kind == ast.Property) == (n.Right.Kind == ast.Property) {
		return notImplemented(c.text, n.Left.Pos)
	}
	if n.Left.Kind == ast.Null || n.Right.Kind == ast.Null {
		return nullError(c.text, n)
	}
	left, right := c.operandType(&n.Left), c.operandType(&n.Right)
	if left != 0 && right != 0 && left != right {
		return incompatible(c.text, n.Left.Pos, left, right, operatorKind(n.Op))
	}
	return nil
}

func (c *checker) operandType(o *ast.Operand) edm.Type {
	if o.Kind == ast.Property {
		return c.declared(o.Name)
	}
	return o.Value.Type()
}
