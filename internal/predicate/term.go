package predicate

import (
	"fmt"
	"math"

	"github.com/tablerock-db/tablerock/edm"
)

// Term is one comparison of a property with a constant. It is immutable once it
// belongs to a Program.
type Term struct {
	Name  string // PartitionKey, RowKey, Timestamp, or a custom property's name
	Op    Op
	Value edm.Value // the constant; never null

	joined []*Term                 // of the operator choice: the comparisons that it replaces
	source int                     // an index of Program.names, or one of the constants below
	tests  [edm.TypeGuid + 1]*Test // by the type of the value; null, type 0, never matches
}

// Sources of a Term that are not custom properties.
const (
	sourcePartition = -1
	sourceRow       = -2
	sourceTimestamp = -3
)

// Tests shared by all terms.
var (
	never      = &Test{Kind: Never}
	everything = &Test{Kind: Always}
)

// newTerm prepares the tests of a comparison.
func newTerm(name string, op Op, v edm.Value) *Term {
	t := &Term{Name: name, Op: op, Value: v}
	mismatch := never
	if op == Ne {
		mismatch = everything
	}
	for i := range t.tests {
		t.tests[i] = mismatch
	}
	t.tests[0] = never
	switch typ := v.Type(); typ {
	case edm.TypeString:
		t.tests[typ] = textTest(op, v.Bytes())
	case edm.TypeBinary:
		t.tests[typ] = &Test{Kind: Blobs, op: op, bytes: v.Bytes(), byteOrder: true}
	case edm.TypeBoolean, edm.TypeDateTime:
		t.tests[typ] = intTest(op, int64(v.Word()))
	case edm.TypeGuid:
		t.tests[typ] = &Test{Kind: Guids, op: op, hi: v.Word(), lo: v.Word2()}
	case edm.TypeInt32, edm.TypeInt64:
		n := int64(v.Word())
		ints := intTest(op, n)
		t.tests[edm.TypeInt32], t.tests[edm.TypeInt64] = ints, ints
		t.tests[edm.TypeDouble] = floatTestInt(op, n)
	case edm.TypeDouble:
		f := math.Float64frombits(v.Word())
		ints := intTestFloat(op, f)
		t.tests[edm.TypeInt32], t.tests[edm.TypeInt64] = ints, ints
		t.tests[edm.TypeDouble] = floatTest(op, f)
	default:
		panic(fmt.Sprintf("predicate: %s compared with %v", name, typ))
	}
	return t
}

// Test returns the test of t for values of type typ. For null, which has type 0 and
// means a missing property, its kind is Never. The Test is shared and immutable.
func (t *Term) Test(typ edm.Type) *Test { return t.tests[typ] }

// String returns t for logs.
func (t *Term) String() string { return fmt.Sprintf("%s %v %#v", t.Name, t.Op, t.Value) }
