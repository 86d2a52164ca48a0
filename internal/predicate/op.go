package predicate

// Op is a comparison. Its bits say which results of comparing the property with
// the constant it accepts: 1 less, 2 equal, 4 greater.
type Op uint8

// The comparisons.
const (
	Lt Op = 1
	Eq Op = 2
	Le Op = 3
	Gt Op = 4
	Ne Op = 5
	Ge Op = 6
)

// Holds reports whether o accepts cmp, the sign of property minus constant:
// -1, 0 or +1.
func (o Op) Holds(cmp int) bool { return o>>(cmp+1)&1 != 0 }

// Mirror returns the operator that says the same with its sides exchanged.
func (o Op) Mirror() Op { return o&Eq | o&Lt<<2 | o&Gt>>2 }

// Negate returns the operator that accepts what o does not.
func (o Op) Negate() Op { return o ^ 7 }

// String returns the operator's word in the filter language.
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
