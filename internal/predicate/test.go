package predicate

import (
	"bytes"
	"math"

	"github.com/tablerock-db/tablerock/edm"
)

// TestKind is the representation of values that a Test compares.
type TestKind uint8

// The kinds of Test.
const (
	Never  TestKind = iota // no value matches
	Always                 // every value matches
	Ints                   // Boolean, Int32, Int64 and DateTime, as int64
	Floats                 // Double
	Texts                  // String, as UTF-8
	Blobs                  // Binary
	Guids                  // Guid, as two words
)

// Test is a Term for the values of one type. Only the method for its Kind may be
// called, and Value.
type Test struct {
	Kind TestKind
	op   Op // Texts, Blobs and Guids
	// outside makes Ints and Floats match the values that are not between lo and hi, and
	// Texts those that are not in texts.
	outside bool
	// byteOrder means that bytes.Compare orders any text and the constant as code
	// units do, because the constant has none of the bytes for which the orders
	// differ.
	byteOrder bool
	lo, hi    uint64 // Ints and Floats: the closed interval; Guids: the constant
	bytes     []byte // Texts and Blobs: the constant
	texts     *texts // of the operator choice: the constants
}

// Int reports whether x matches a test of the kind Ints. A Boolean is 0 or 1, a
// DateTime its ticks.
func (t *Test) Int(x int64) bool { return (uint64(x)-t.lo <= t.hi-t.lo) != t.outside }

// intRange returns the closed interval of a test of the kind Ints. outside means that
// the values outside it match.
func (t *Test) intRange() (lo, hi int64, outside bool) {
	return int64(t.lo), int64(t.hi), t.outside
}

// Float reports whether x matches a test of the kind Floats.
func (t *Test) Float(x float64) bool {
	return (x >= math.Float64frombits(t.lo) && x <= math.Float64frombits(t.hi)) != t.outside
}

// floatRange returns the closed interval of a test of the kind Floats. outside means
// that the values outside it match, NaN included.
func (t *Test) floatRange() (lo, hi float64, outside bool) {
	return math.Float64frombits(t.lo), math.Float64frombits(t.hi), t.outside
}

// Bytes reports whether b matches a test of the kind Texts or Blobs.
func (t *Test) Bytes(b []byte) bool {
	switch t.op {
	case Eq:
		return bytes.Equal(b, t.bytes)
	case Ne:
		return !bytes.Equal(b, t.bytes)
	case choice:
		return t.texts.has(b) != t.outside
	}
	return t.op.Accepts(t.compareBytes(b))
}

func (t *Test) compareBytes(b []byte) int {
	if t.byteOrder {
		return bytes.Compare(b, t.bytes)
	}
	return edm.Compare(b, t.bytes)
}

// Guid reports whether the Guid with the words hi and lo matches a test of the kind
// Guids.
func (t *Test) Guid(hi, lo uint64) bool { return t.op.Accepts(t.compareWords(hi, lo)) }

func (t *Test) compareWords(hi, lo uint64) int {
	switch {
	case hi < t.hi || hi == t.hi && lo < t.lo:
		return -1
	case hi == t.hi && lo == t.lo:
		return 0
	}
	return 1
}

// Value reports whether v matches. t must be for the type of v.
func (t *Test) Value(v edm.Value) bool {
	switch t.Kind {
	case Ints:
		return t.Int(int64(v.Word()))
	case Floats:
		return t.Float(math.Float64frombits(v.Word()))
	case Texts, Blobs:
		return t.Bytes(v.Bytes())
	case Guids:
		return t.Guid(v.Word(), v.Word2())
	case Never, Always:
	}
	return t.Kind == Always
}

// always returns the Test that every value passes, or the one that no value passes.
func always(every bool) *Test {
	if every {
		return everything
	}
	return never
}

// intTest compares integers with an integer.
func intTest(op Op, c int64) *Test {
	t := &Test{Kind: Ints, lo: 1 << 63, hi: math.MaxInt64} // from the smallest to the largest
	switch op {
	case Eq, Ne:
		t.lo, t.hi, t.outside = uint64(c), uint64(c), op == Ne
	case Lt:
		if c == math.MinInt64 {
			return always(false)
		}
		t.hi = uint64(c - 1)
	case Le:
		t.hi = uint64(c)
	case Gt:
		if c == math.MaxInt64 {
			return always(false)
		}
		t.lo = uint64(c + 1)
	case Ge:
		t.lo = uint64(c)
	}
	return t
}

// intTestFloat compares integers with a float. Converting the integers to floats would
// make different ones equal above 2^53.
func intTestFloat(op Op, c float64) *Test {
	switch {
	case c != c:
		return always(op == Ne)
	case c >= 1<<63:
		return always(op.Accepts(-1))
	case c < -1<<63:
		return always(op.Accepts(1))
	}
	floor := math.Floor(c)
	switch {
	case floor == c:
		return intTest(op, int64(c))
	case op == Eq || op == Ne:
		return always(op == Ne)
	case op.Accepts(-1):
		return intTest(Le, int64(floor))
	}
	return intTest(Gt, int64(floor))
}

// floatTest compares floats with a float.
func floatTest(op Op, c float64) *Test {
	if c != c {
		return always(op == Ne)
	}
	lo, hi := math.Inf(-1), math.Inf(1)
	switch op {
	case Eq, Ne:
		lo, hi = c, c
	case Lt:
		if c == lo {
			return always(false)
		}
		hi = math.Nextafter(c, lo)
	case Le:
		hi = c
	case Gt:
		if c == hi {
			return always(false)
		}
		lo = math.Nextafter(c, hi)
	case Ge:
		lo = c
	}
	return &Test{Kind: Floats, lo: math.Float64bits(lo), hi: math.Float64bits(hi), outside: op == Ne}
}

// floatTestInt compares floats with an integer. If no float equals the integer, it is
// between two adjacent floats, and one of them replaces it.
func floatTestInt(op Op, c int64) *Test {
	f := float64(c)
	if f < 1<<63 && int64(f) == c {
		return floatTest(op, f)
	}
	if op == Eq || op == Ne {
		return always(op == Ne)
	}
	above := f >= 1<<63 || int64(f) > c
	switch {
	case op.Accepts(-1) && above:
		return floatTest(Lt, f)
	case op.Accepts(-1):
		return floatTest(Le, f)
	case above:
		return floatTest(Ge, f)
	}
	return floatTest(Gt, f)
}

// textTest compares strings with a string.
func textTest(op Op, c []byte) *Test {
	t := &Test{Kind: Texts, op: op, bytes: c, byteOrder: true}
	for _, b := range c {
		if b >= 0xEE {
			t.byteOrder = false
			break
		}
	}
	return t
}
