package filter

import (
	"github.com/tablerock-db/tablerock/edm"
)

// checker finds errors that the grammar does not: wrong types and names.
type checker struct {
	text   string
	tables bool
}

// declared returns the type of the property called name, 0 if it can be any.
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
func (c *checker) root(n node) *Error {
	if err := c.node(n); err != nil {
		return err
	}
	return c.condition(n)
}

// condition returns an error if n alone is not a condition. The text of the error
// mentions "And", as that of the service does.
func (c *checker) condition(n node) *Error {
	if t := c.typeOf(n); t != edm.TypeBoolean {
		return incompatible(c.text, n.(*operandNode).operand.pos, t, edm.TypeBoolean, "And")
	}
	return nil
}

// node checks n and its descendants.
func (c *checker) node(n node) *Error {
	switch n := n.(type) {
	case *orNode:
		return c.chain(n.nodes, "Or")
	case *andNode:
		return c.chain(n.nodes, "And")
	case *notNode:
		return c.root(n.node)
	case *compareNode:
		return c.compare(n)
	case *operandNode:
		return c.bare(&n.operand)
	}
	return nil
}

// chain checks the operands of "and" or "or", from the left.
func (c *checker) chain(nodes []node, operator string) *Error {
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
			at, ok := n.(*operandNode)
			if left != edm.TypeBoolean || !ok {
				at = nodes[i-1].(*operandNode)
			}
			return incompatible(c.text, at.operand.pos, left, t, operator)
		}
	}
	return nil
}

// typeOf returns the type of n, Boolean for a property that can have any type.
func (c *checker) typeOf(n node) edm.Type {
	b, ok := n.(*operandNode)
	if !ok {
		return edm.TypeBoolean
	}
	if b.operand.kind == operandLiteral {
		return b.operand.value.Type()
	}
	if t := c.declared(b.operand.name); t != 0 {
		return t
	}
	return edm.TypeBoolean
}

// bare checks an operand that is used as a condition, except its type.
func (c *checker) bare(o *operand) *Error {
	if o.kind == operandNull {
		return refusal(c.text, o.pos, messageInvalid)
	}
	return c.property(o)
}

// property returns an error for a property that tables do not have.
func (c *checker) property(o *operand) *Error {
	if c.tables && o.kind == operandProperty && o.name != tableName {
		return notImplemented(c.text, o.pos)
	}
	return nil
}

// compare checks a comparison. One side must be a property, the other a literal, of
// the declared type if there is one.
func (c *checker) compare(n *compareNode) *Error {
	for _, o := range []*operand{&n.left, &n.right} {
		if err := c.property(o); err != nil {
			return err
		}
	}
	if (n.left.kind == operandProperty) == (n.right.kind == operandProperty) {
		return notImplemented(c.text, n.left.pos)
	}
	if n.left.kind == operandNull || n.right.kind == operandNull {
		return nullError(c.text, n)
	}
	left, right := c.operandType(&n.left), c.operandType(&n.right)
	if left != 0 && right != 0 && left != right {
		return incompatible(c.text, n.left.pos, left, right, operatorKind(n.op))
	}
	return nil
}

func (c *checker) operandType(o *operand) edm.Type {
	if o.kind == operandProperty {
		return c.declared(o.name)
	}
	return o.value.Type()
}
