package filter

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	"github.com/tablerock-db/tablerock/edm"
)

func (o *orNode) appendText(dst []byte) []byte {
	for i, n := range o.nodes {
		if i > 0 {
			dst = append(dst, " or "...)
		}
		dst = n.appendText(dst)
	}
	return dst
}

func (a *andNode) appendText(dst []byte) []byte {
	for i, n := range a.nodes {
		if i > 0 {
			dst = append(dst, " and "...)
		}
		if _, ok := n.(*orNode); ok {
			dst = appendParenthesised(dst, n)
		} else {
			dst = n.appendText(dst)
		}
	}
	return dst
}

func (n *notNode) appendText(dst []byte) []byte {
	return appendParenthesised(append(dst, "not "...), n.node)
}

func appendParenthesised(dst []byte, n node) []byte {
	return append(n.appendText(append(dst, '(')), ')')
}

func (c *compareNode) appendText(dst []byte) []byte {
	dst = append(c.left.appendText(dst), ' ')
	dst = append(append(dst, c.op.String()...), ' ')
	return c.right.appendText(dst)
}

func (b *operandNode) appendText(dst []byte) []byte { return b.operand.appendText(dst) }

func (o *operand) appendText(dst []byte) []byte {
	switch o.kind {
	case operandProperty:
		return append(dst, o.name...)
	case operandNull:
		return append(dst, "null"...)
	}
	return appendLiteral(dst, o.value)
}

// appendLiteral appends v so that it is read back as the same value of the same
// type.
func appendLiteral(dst []byte, v edm.Value) []byte {
	switch v.Type() {
	case edm.TypeString:
		dst = append(dst, '\'')
		dst = append(dst, strings.ReplaceAll(string(v.Bytes()), "'", "''")...)
		return append(dst, '\'')
	case edm.TypeBinary:
		return append(hex.AppendEncode(append(dst, "X'"...), v.Bytes()), '\'')
	case edm.TypeBoolean:
		return strconv.AppendBool(dst, v.Word() != 0)
	case edm.TypeInt32:
		return strconv.AppendInt(dst, int64(v.Word()), 10)
	case edm.TypeInt64:
		return append(strconv.AppendInt(dst, int64(v.Word()), 10), 'L')
	case edm.TypeDouble:
		return appendDouble(dst, math.Float64frombits(v.Word()))
	case edm.TypeDateTime:
		return append(AppendDateTime(append(dst, "datetime'"...), edm.Ticks(v.Word())), '\'')
	case edm.TypeGuid:
		return append(append(append(dst, "guid'"...), edm.GUID(v.Bytes()).String()...), '\'')
	}
	return append(dst, "null"...)
}

// AppendDateTime appends the text of a DateTime that [ParseDateTime] parses.
func AppendDateTime(dst []byte, t edm.Ticks) []byte {
	if t < edm.MinTicks {
		return append(dst, textBeforeMin...)
	}
	return t.AppendText(dst)
}

// textBeforeMin replaces every DateTime literal before edm.MinTicks. No stored
// value is that early, so all such literals compare alike.
const textBeforeMin = "0001-01-01T00:00:00Z"

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
