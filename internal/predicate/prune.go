package predicate

import (
	"math"
	"slices"

	"github.com/tablerock-db/tablerock/edm"
)

// Truth is how many rows of a set satisfy a condition.
type Truth uint8

// The truths.
const (
	None Truth = iota // no row
	Some              // unknown: none, some or all
	All               // every row
)

// not returns the truth of the negation.
func (t Truth) not() Truth { return All - t }

// Column is the bounds of the values that a set of rows has under one name and of one
// type.
type Column struct {
	// Present is how many of the rows have such a value.
	Present Truth
	// Min and Max are bounds of the values except NaN, of the same type and in its
	// order. They may be wider than the values. Null means no bound.
	Min, Max edm.Value
	// NaN means that there may be NaN among the values.
	NaN bool
}

// Columns returns the bounds of the values that a set of rows has of one property and
// one type. The property is an index of Program.Names, or Timestamp.
type Columns func(property int, t edm.Type) Column

// Timestamp is what Columns gets for the Timestamp, which is a DateTime that all rows
// have.
const Timestamp = sourceTimestamp

// Prune returns All if every row of a set satisfies p, None if no row does, else Some.
// It uses only the bounds of columns. It knows nothing of keys.
func (p *Program) Prune(stats Columns) Truth {
	return prune(p.root, stats)
}

func prune(n *Node, stats Columns) Truth {
	switch n.Kind {
	case False:
		return None
	case True:
		return All
	case Compare:
		if n.Negated {
			return n.Term.prune(stats).not()
		}
		return n.Term.prune(stats)
	}
	// The result of And is that of its least true operand, the result of Or that of
	// its most true one.
	decisive, result := None, All
	if n.Kind == Or {
		decisive, result = All, None
	}
	for _, k := range n.Kids {
		switch t := prune(k, stats); t {
		case decisive:
			return t
		case Some:
			result = Some
		}
	}
	return result
}

// prune evaluates one comparison. A row without the property does not satisfy it, so
// all rows do only if all have a value of one type and all these values match.
func (t *Term) prune(stats Columns) Truth {
	if t.onKey() {
		return Some
	}
	result := None
	for typ := edm.TypeString; typ <= edm.TypeGuid; typ++ {
		test := t.Test(typ)
		if test.Kind == Never || t.source == sourceTimestamp && typ != edm.TypeDateTime {
			continue
		}
		c := stats(t.source, typ)
		if c.Present == None {
			continue
		}
		switch match := test.prune(&c); {
		case match == All && c.Present == All:
			return All
		case match != None:
			result = Some
		}
	}
	return result
}

// onKey reports whether t compares PartitionKey or RowKey.
func (t *Term) onKey() bool { return t.source == sourcePartition || t.source == sourceRow }

// maxBoundsTerms bounds the cost of a Program that ForBounds returns. Sets of rows that
// it excludes cost the scan nothing else.
const maxBoundsTerms = 32

// ForBounds returns a Program for Prune that excludes sets of rows at a bounded cost: every
// row that satisfies p satisfies it too. It consists of the operands of the And that p is
// that bounds can exclude, with at most 32 comparisons. It is nil if there is none, and p
// if these are all.
func (p *Program) ForBounds() *Program {
	kids := []*Node{p.root}
	if p.root.Kind == And {
		kids = p.root.Kids
	}
	var useful []*Node
	terms := 0
	for _, k := range kids {
		if n := k.terms(maxBoundsTerms - terms + 1); terms+n <= maxBoundsTerms && k.excludable() {
			terms += n
			useful = append(useful, k)
		}
	}
	switch len(useful) {
	case 0:
		return nil
	case len(kids):
		return p
	}
	for i, k := range useful {
		useful[i] = k.Clone()
	}
	return Compile(NewAnd(useful...))
}

// terms counts the comparisons of n, up to limit.
func (n *Node) terms(limit int) int {
	if n.Kind == Compare {
		return 1
	}
	count := 0
	for _, k := range n.Kids {
		if count >= limit {
			break
		}
		count += k.terms(limit - count)
	}
	return count
}

// excludable reports whether Prune can return None for n.
func (n *Node) excludable() bool {
	switch n.Kind {
	case Compare:
		return !n.Term.onKey()
	case And:
		return slices.ContainsFunc(n.Kids, (*Node).excludable)
	case Or:
		return !slices.ContainsFunc(n.Kids, func(k *Node) bool { return !k.excludable() })
	}
	return n.Kind == False
}

// prune evaluates t for the values within c.
func (t *Test) prune(c *Column) Truth {
	switch t.Kind {
	case Never:
		return None
	case Always:
		return All
	case Ints:
		return t.pruneInts(c)
	case Floats:
		return t.pruneFloats(c)
	}
	// The result of comparing a value with the constant is between that of Min and
	// that of Max.
	least, most := -1, 1
	if !c.Min.IsNull() {
		least = t.compare(c.Min)
	}
	if !c.Max.IsNull() {
		most = t.compare(c.Max)
	}
	var possible Op
	for r := least; r <= most; r++ {
		possible |= 1 << (r + 1)
	}
	switch {
	case possible&t.op == 0:
		return None
	case possible&^t.op == 0:
		return All
	}
	return Some
}

func (t *Test) compare(v edm.Value) int {
	if t.Kind == Guids {
		return t.compareWords(v.Word(), v.Word2())
	}
	return t.compareBytes(v.Bytes())
}

// intOf returns the value of a Boolean, DateTime, Int32 or Int64.
func intOf(v edm.Value) int64 { return int64(v.Word()) }

// floatOf returns the value of a Double.
func floatOf(v edm.Value) float64 { return math.Float64frombits(v.Word()) }

func (t *Test) pruneInts(c *Column) Truth {
	lo, hi, outside := t.intRange()
	inside := !c.Min.IsNull() && intOf(c.Min) >= lo && !c.Max.IsNull() && intOf(c.Max) <= hi
	apart := !c.Min.IsNull() && intOf(c.Min) > hi || !c.Max.IsNull() && intOf(c.Max) < lo
	return within(inside, apart, outside)
}

// pruneFloats is pruneInts for floats. NaN is outside every interval.
func (t *Test) pruneFloats(c *Column) Truth {
	lo, hi, outside := t.floatRange()
	inside := !c.NaN && !c.Min.IsNull() && floatOf(c.Min) >= lo && !c.Max.IsNull() && floatOf(c.Max) <= hi
	apart := !c.Min.IsNull() && floatOf(c.Min) > hi || !c.Max.IsNull() && floatOf(c.Max) < lo
	return within(inside, apart, outside)
}

// within returns the Truth for values that are all inside an interval, all outside, or
// not known to be either.
func within(inside, apart, outside bool) Truth {
	result := Some
	switch {
	case apart:
		result = None
	case inside:
		result = All
	}
	if outside {
		return result.not()
	}
	return result
}
