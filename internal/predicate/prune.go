package predicate

import (
	"math"

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

// Prune returns All if every row of a set satisfies p, None if no row does, else Some.
// It uses only the bounds of columns: stats returns those of a property's values of
// one type. Prune asks for PartitionKey and RowKey as String and for Timestamp as
// DateTime; all three are Present in All rows.
func (p *Program) Prune(stats func(name string, t edm.Type) Column) Truth {
	return prune(p.root, stats)
}

func prune(n *Node, stats func(string, edm.Type) Column) Truth {
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
func (t *Term) prune(stats func(string, edm.Type) Column) Truth {
	result := None
	for typ := edm.TypeString; typ <= edm.TypeGuid; typ++ {
		test := t.Test(typ)
		if test.Kind == Never || !t.mayHave(typ) {
			continue
		}
		c := stats(t.Name, typ)
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

// mayHave reports whether the property of t can have a value of type typ.
func (t *Term) mayHave(typ edm.Type) bool {
	switch t.source {
	case sourcePartition, sourceRow:
		return typ == edm.TypeString
	case sourceTimestamp:
		return typ == edm.TypeDateTime
	}
	return true
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
