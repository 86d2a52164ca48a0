package predicate

// Op is a comparison operator. Its bits are the results of comparing the property with
// the constant that it accepts: 1 less, 2 equal, 4 greater.
type Op uint8

// The operators.
const (
	Lt Op = 1
	Eq Op = 2
	Le Op = 3
	Gt Op = 4
	Ne Op = 5
	Ge Op = 6
)

// Accepts reports whether o accepts cmp, the sign of property minus constant: -1, 0 or
// +1.
func (o Op) Accepts(cmp int) bool { return o>>(cmp+1)&1 != 0 }

// Mirror returns the operator with the same meaning when its operands are exchanged.
func (o Op) Mirror() Op { return o&Eq | o&Lt<<2 | o&Gt>>2 }

// Negate returns the operator that accepts the opposite results.
func (o Op) Negate() Op { return o ^ 7 }

// String returns the operator's keyword in the filter language.
func (o Op) String() string {
	switch o {
	case Lt:
		return "lt"
	case Eq:
		return "eq"
	case Le:
		return "le"
	case Gt:
		return "gt"
	case Ne:
		return "ne"
	case Ge:
		return "ge"
	}
	return "op?"
}
