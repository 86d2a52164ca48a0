package predicate

import (
	"math"

	"github.com/tablerock-db/tablerock/edm"
)

// Truth is for how many of some rows something holds.
type Truth uint8

// The truths.
const (
	None Truth = iota // for no row
	Some              // unknown: for none, some or all
	All               // for every row
)

// not returns the truth of the negation.
func (t Truth) not() Truth { return All - t }

// Column summarises the values that some rows have under one name and of one
// type.
type Column struct {
	// Present says for how many of the rows such a value is there.
	Present Truth
	// Min and Max are bounds of the values other than NaN, in the order of the
	// type, and of that type. They may lie further out than the values; null is
	// no bound.
	Min, Max edm.Value
	// NaN says that NaN may be among the values.
	NaN bool
}

// Prune judges p for a set of rows from summaries of their columns: All if every
// row satisfies p, None if no row does, else Some. stats returns the summary of
// a property's values of a type; PartitionKey and RowKey are asked for as
// String, Timestamp as DateTime, and all three are Present in All rows.
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
	// And is as true as its falsest operand, Or as its truest.
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

// prune judges one comparison. Rows without the property do not satisfy it, so
// that it holds for all rows only if all have a value of one type and all these
// values match.
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

// mayHave reports whether t's property can have a value of the type typ.
func (t *Term) mayHave(typ edm.Type) bool {
	switch t.source {
	case sourcePartition, sourceRow:
		return typ == edm.TypeString
	case sourceTimestamp:
		return typ == edm.TypeDateTime
	}
	return true
}

// prune judges t for the values that c summarises.
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
	// Every value compares with the constant as some result from that of Min to
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

// intOf returns the content of a Boolean, DateTime, Int32 or Int64.
func intOf(v edm.Value) int64 { return int64(v.Word()) }

// floatOf returns the content of a Double.
func floatOf(v edm.Value) float64 { return math.Float64frombits(v.Word()) }

func (t *Test) pruneInts(c *Column) Truth {
	lo, hi, outside := t.IntRange()
	inside := !c.Min.IsNull() && intOf(c.Min) >= lo && !c.Max.IsNull() && intOf(c.Max) <= hi
	apart := !c.Min.IsNull() && intOf(c.Min) > hi || !c.Max.IsNull() && intOf(c.Max) < lo
	return within(inside, apart, outside)
}

// pruneFloats is pruneInts for floats. NaN is outside of every interval.
func (t *Test) pruneFloats(c *Column) Truth {
	lo, hi, outside := t.FloatRange()
	inside := !c.NaN && !c.Min.IsNull() && floatOf(c.Min) >= lo && !c.Max.IsNull() && floatOf(c.Max) <= hi
	apart := !c.Min.IsNull() && floatOf(c.Min) > hi || !c.Max.IsNull() && floatOf(c.Max) < lo
	return within(inside, apart, outside)
}

// within judges values of which it is known whether all are inside an interval,
// or all apart from it.
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
