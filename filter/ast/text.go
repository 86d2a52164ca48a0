package ast

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	"github.com/tablerock-db/tablerock/edm"
)

// AppendText is part of Node.
func (o *Or) AppendText(dst []byte) []byte {
	for i, n := range o.Nodes {
		if i > 0 {
			dst = append(dst, " or "...)
		}
		dst = n.AppendText(dst)
	}
	return dst
}

// AppendText is part of Node.
func (a *And) AppendText(dst []byte) []byte {
	for i, n := range a.Nodes {
		if i > 0 {
			dst = append(dst, " and "...)
		}
		if _, ok := n.(*Or); ok {
			dst = appendParenthesised(dst, n)
		} else {
			dst = n.AppendText(dst)
		}
	}
	return dst
}

// AppendText is part of Node.
func (n *Not) AppendText(dst []byte) []byte {
	return appendParenthesised(append(dst, "not "...), n.Node)
}

func appendParenthesised(dst []byte, n Node) []byte {
	return append(n.AppendText(append(dst, '(')), ')')
}

// AppendText is part of Node.
func (c *Compare) AppendText(dst []byte) []byte {
	dst = append(c.Left.appendText(dst), ' ')
	dst = append(append(dst, c.Op.String()...), ' ')
	return c.Right.appendText(dst)
}

// AppendText is part of Node.
func (b *Bare) AppendText(dst []byte) []byte { return b.Operand.appendText(dst) }

func (o *Operand) appendText(dst []byte) []byte {
	switch o.Kind {
	case Property:
		return append(dst, o.Name...)
	case Null:
		return append(dst, "null"...)
	}
	return appendLiteral(dst, o.Value)
}

// appendLiteral appends v so that it is read back as the same value of the same
// type.
func appendLiteral(dst []byte, v edm.Value) []byte {
	switch v.Type() {
	case edm.TypeString:
		dst = append(dst, '\'')
		dst = append(dst, strings.ReplaceAll(v.Text(), "'", "''")...)
		return append(dst, '\'')
	case edm.TypeBinary:
		return append(hex.AppendEncode(append(dst, "X'"...), v.Bytes()), '\'')
	case edm.TypeBoolean:
		return strconv.AppendBool(dst, v.Bool())
	case edm.TypeInt32:
		return strconv.AppendInt(dst, v.Int64(), 10)
	case edm.TypeInt64:
		return append(strconv.AppendInt(dst, v.Int64(), 10), 'L')
	case edm.TypeDouble:
		return appendDouble(dst, v.Double())
	case edm.TypeDateTime:
		dst = append(dst, "datetime'"...)
		if t := v.DateTime(); t < edm.MinTicks {
			dst = append(dst, BeforeAll...)
		} else {
			dst = t.AppendText(dst)
		}
		return append(dst, '\'')
	case edm.TypeGuid:
		return append(v.Guid().AppendText(append(dst, "guid'"...)), '\'')
	}
	return append(dst, "null"...)
}

// BeforeAll is the text of every DateTime literal before 1601, which are alike
// to a filter since no such moment can be stored.
const BeforeAll = "0001-01-01T00:00:00Z"

func appendDouble(dst []byte, f float64) []byte {
	switch {
	case f != f:
		return append(dst, "NaN"...)
	case math.IsInf(f, 0):
		if f < 0 {
			dst = append(dst, '-')
		}
		return append(dst, "INF"...)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'g', -1, 64)
	for _, c := range dst[start:] {
		if c == '.' || c == 'e' {
			return dst
		}
	}
	return append(dst, ".0"...)
}
