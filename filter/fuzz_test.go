package filter

import (
	"errors"
	"math/rand/v2"
	"testing"
	"unicode/utf8"

	"github.com/tablerock-db/tablerock/edm"
)

func addTexts(add func(text string)) {
	for _, text := range []string{
		"", "PartitionKey eq 'a' and RowKey ge 'x'", "not (a eq 1 or b ne 2L) and c lt 3.5", "'x' le RowKey", "aaa bbb ccc",
		"a eq datetime'2008-07-10T00:00:00Z' or a eq guid'a455c695-df98-5678-aaaa-81d3367e5a34' or a eq X'0123'", "not not true",
		"PartitionKey gt 'a\x01' or (PartitionKey eq '\uE000' and RowKey lt '\U0001F600')", "a eq -INF or a ne NaN or a eq null",
		"((((a))))", "f(a) eq 1", "a eq 'it''s", "a eq 1e400", "a add 1 eq 2",
	} {
		add(text)
	}
}

// FuzzParse checks that Parse fails with an *Error of bounded length, or returns a
// filter whose text parses to an equal filter.
func FuzzParse(f *testing.F) {
	addTexts(func(text string) { f.Add(text) })
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := ParseTables(text); err != nil && !errors.As(err, new(*Error)) {
			t.Fatalf("ParseTables: %T", err)
		}
		e, err := Parse(text)
		if err != nil {
			var refusal *Error
			if !errors.As(err, &refusal) {
				t.Fatalf("%T", err)
			}
			if refusal.Position < 0 || refusal.Position > len(text) || len(refusal.Message) > 2*len(text)+256 {
				t.Fatalf("%+v", refusal)
			}
			return
		}
		if e == nil {
			return
		}
		if !utf8.ValidString(text) {
			t.Fatal("took invalid UTF-8")
		}
		again, err := Parse(e.String())
		if err != nil {
			t.Fatalf("%q, the text of %q: %v", e, text, err)
		}
		if !equalNodes(e.root, again.root) {
			t.Fatalf("%q gives %q, which gives %q", text, e, again)
		}
		checkRanges(t, e)
	})
}

// FuzzEval compares a filter with naive on entities with the values of its literals
// and on others.
func FuzzEval(f *testing.F) {
	addTexts(func(text string) { f.Add(text, uint64(1)) })
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		if len(text) > 4096 {
			return
		}
		e, err := Parse(text)
		if err != nil || e == nil {
			return
		}
		r := newRand(seed)
		var literals []compareNode
		collect(e.root, &literals)
		for range 20 {
			entity := randomEntity(r)
			for range r.IntN(4) {
				if len(literals) > 0 {
					put(r, &entity, pick(r, literals))
				}
			}
			if edm.CheckKey(entity.Key) == nil {
				checkMatch(t, e, &entity)
			}
		}
	})
}

// collect appends the comparisons of n to out.
func collect(n node, out *[]compareNode) {
	switch n := n.(type) {
	case *orNode:
		for _, k := range n.nodes {
			collect(k, out)
		}
	case *andNode:
		for _, k := range n.nodes {
			collect(k, out)
		}
	case *notNode:
		collect(n.node, out)
	case *compareNode:
		*out = append(*out, *n)
	}
}

// put sets the property that c compares to the literal or a value near it.
func put(r *rand.Rand, e *edm.Entity, c compareNode) {
	name, v := c.left.name, c.right.value
	if c.left.kind == operandLiteral {
		name, v = c.right.name, c.left.value
	}
	text, _ := v.Text()
	if r.IntN(3) == 0 {
		text += pick(r, legalKeys)
	}
	switch name {
	case edm.PartitionKeyName:
		e.Key.Partition = text
		return
	case edm.RowKeyName:
		e.Key.Row = text
		return
	case edm.TimestampName:
		when, _ := v.DateTime()
		e.Timestamp = max(when, edm.MinTicks)
		return
	}
	switch v.Type() {
	case edm.TypeInt32, edm.TypeInt64:
		n, _ := v.Int64()
		v = pick(r, []edm.Value{v, edm.Int64(n), edm.Int64(n + 1), edm.Double(float64(n))})
	case edm.TypeDouble:
		f, _ := v.Double()
		v = pick(r, []edm.Value{v, edm.Int64(int64(f))})
	case edm.TypeString:
		v = edm.String(text)
	}
	for i := range e.Properties {
		if e.Properties[i].Name == name {
			e.Properties[i].Value = v
			return
		}
	}
	e.Properties = append(e.Properties, edm.Property{Name: name, Value: v})
}

// equalNodes reports whether a and b are equal trees, whatever their positions in the
// text.
func equalNodes(a, b node) bool {
	all := func(a, b []node) bool {
		for i := range min(len(a), len(b)) {
			if !equalNodes(a[i], b[i]) {
				return false
			}
		}
		return len(a) == len(b)
	}
	operand := func(a, b operand) bool {
		return a.kind == b.kind && a.name == b.name && a.value.Equal(b.value)
	}
	switch a := a.(type) {
	case *orNode:
		b, ok := b.(*orNode)
		return ok && all(a.nodes, b.nodes)
	case *andNode:
		b, ok := b.(*andNode)
		return ok && all(a.nodes, b.nodes)
	case *notNode:
		b, ok := b.(*notNode)
		return ok && equalNodes(a.node, b.node)
	case *compareNode:
		b, ok := b.(*compareNode)
		return ok && a.op == b.op && operand(a.left, b.left) && operand(a.right, b.right)
	case *operandNode:
		b, ok := b.(*operandNode)
		return ok && operand(a.operand, b.operand)
	}
	return false
}

// TestStringRandom checks that the text of a random tree parses to an equal tree.
func TestStringRandom(t *testing.T) {
	r := newRand(seed(t))
	for range 2000 {
		e := newExpr(randomNode(r, r.IntN(4), false), false)
		again, err := Parse(e.String())
		if err != nil {
			t.Fatalf("%q: %v", e, err)
		}
		if !equalNodes(e.root, again.root) {
			t.Fatalf("%q gives %q", e, again)
		}
	}
}
