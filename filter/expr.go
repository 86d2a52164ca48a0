package filter

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/predicate"
)

// Limits of a filter. Those of the service are not published.
const (
	// maxDepth limits the nesting of parentheses and negations. "not" and a
	// parenthesis after it are one level.
	maxDepth = 100
	// maxGroups limits the number of negations, chains of "and" and chains of "or".
	maxGroups = 256
)

// tableName is the only property that a filter over tables can name.
const tableName = "TableName"

// Expr is a filter. It is immutable and safe for concurrent use. A nil *Expr keeps
// every row.
type Expr struct {
	// keys are the arguments of Keys. If they are set, root and program are those of full.
	keys *Range
	// both are the arguments of And. If they are set, root and program are those of full, and
	// ranged sets ranges and residual when they are first needed: a loop that adds conditions
	// compiles one filter.
	both *[2]*Expr
	// full is the filter of keys or both as comparisons. compiled sets it when it is first needed.
	full                   *Expr
	compileOnce, rangeOnce sync.Once

	root    node
	tables  bool
	program *predicate.Program
	ranges  []Range
	// residual is the condition for rows in ranges, nil if all are kept.
	residual *predicate.Program
}

// Parse parses a filter over entities, such as
//
//	PartitionKey eq 'eu' and (Total ge 30 or not Paid)
//
// It compares a property with a constant by eq, ne, gt, ge, lt and le, and joins
// comparisons by and, or, not and parentheses. A Boolean property is a condition by
// itself. There are no functions. The constants are
//
//	'it''s'                                     String
//	5  5L  1.5                                  Int32, Int64, Double
//	true  false                                 Boolean
//	datetime'2024-01-01T00:00:00Z'              DateTime
//	guid'0f3e4f0e-5d5b-4d6c-9a55-0a1b2c3d4e5f'  Guid
//	X'00ff'                                     Binary
//
// A blank text gives a nil *Expr, which keeps every row. The error is an *Error.
func Parse(text string) (*Expr, error) { return parseExpr(text, false) }

// ParseTables parses a filter over tables, whose only property is TableName, for
// [Expr.MatchTable]. It compares names without regard to ASCII case.
func ParseTables(text string) (*Expr, error) { return parseExpr(text, true) }

func parseExpr(text string, tables bool) (*Expr, error) {
	if !utf8.ValidString(text) {
		return nil, &Error{false, 0, messageInvalid}
	}
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	root, err := parse(text)
	if err != nil {
		return nil, err
	}
	c := checker{text, tables}
	if err := c.root(root); err != nil {
		return nil, err
	}
	return newExpr(root, tables), nil
}

// MustParse is like Parse but panics if text is invalid. Use it for constant texts.
func MustParse(text string) *Expr {
	e, err := Parse(text)
	if err != nil {
		panic("filter: " + err.Error())
	}
	return e
}

func newExpr(root node, tables bool) *Expr {
	p := predicate.Compile(compile(root, tables))
	ranges, residual := narrow(p)
	return &Expr{root: root, tables: tables, program: p, ranges: ranges, residual: residual}
}

// And returns the filter that keeps the rows that both a and b keep.
func And(a, b *Expr) *Expr {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return &Expr{both: &[2]*Expr{a, b}, tables: a.tables || b.tables}
}

// compiled returns the filter that has the root and the program of e.
func (e *Expr) compiled() *Expr {
	if e.keys == nil && e.both == nil {
		return e
	}
	e.compileOnce.Do(func() {
		if e.keys != nil {
			e.full = compareKeys(e.keys.From, e.keys.To)
		} else {
			e.full = joined(e.conjuncts(), e.tables)
		}
	})
	return e.full
}

// ranged returns e after setting ranges and residual, which only And leaves unset.
func (e *Expr) ranged() *Expr {
	if e.both == nil {
		return e
	}
	e.rangeOnce.Do(func() {
		from := e.withoutKeys()
		if from == nil {
			from = e.compiled()
			e.ranges = from.ranges
		}
		e.residual = from.residual
	})
	return e
}

// withoutKeys returns the filter of all conjuncts of e but the one that is made by Keys, and sets
// ranges to those of that one. A query of a partition with a filter that is parsed once
// then compiles nothing. It returns nil if the ranges also depend on other conjuncts.
func (e *Expr) withoutKeys() *Expr {
	all := e.conjuncts()
	i := slices.IndexFunc(all, func(x *Expr) bool { return x.keys != nil })
	if i < 0 {
		return nil
	}
	keys := all[i]
	rest := slices.Delete(all, i, i+1)
	if slices.ContainsFunc(rest, (*Expr).limitsKeys) {
		return nil
	}
	e.ranges = keys.ranges
	return joined(rest, e.tables)
}

// limitsKeys reports whether e, which is not made by And, compares a key or keeps nothing.
func (e *Expr) limitsKeys() bool {
	return e.keys != nil || len(e.ranges) != 1 || e.ranges[0] != Range{} || e.residual != nil && e.residual.Columns() == nil
}

// joined returns the filter that keeps the rows that all of exprs, which are not made by And, keep.
func joined(exprs []*Expr, tables bool) *Expr {
	if len(exprs) == 1 {
		return exprs[0]
	}
	roots := make([]node, len(exprs))
	for i, e := range exprs {
		roots[i] = e.compiled().root
	}
	return newExpr(newAnd(roots...), tables)
}

// conjuncts returns the filters that And has joined in e, in their order. There may be many, one
// within the other, so it does not call itself.
func (e *Expr) conjuncts() (exprs []*Expr) {
	for left := []*Expr{e}; len(left) > 0; {
		last := left[len(left)-1]
		left = left[:len(left)-1]
		if last.both != nil {
			left = append(left, last.both[1], last.both[0])
		} else {
			exprs = append(exprs, last)
		}
	}
	return exprs
}

// Keys returns the filter that keeps the rows whose keys are between two bounds.
// The keys of the bounds must be valid UTF-8, but need not be legal.
func Keys(from, to Bound) *Expr {
	if plainRange(from, to) {
		// Usually only Ranges is called.
		r := Range{from.bare(), to.bare()}
		return &Expr{keys: &r, ranges: []Range{r}}
	}
	return compareKeys(from, to)
}

// bare returns b without a row that is ignored.
func (b Bound) bare() Bound {
	if b.Kind == BeforePartition || b.Kind == AfterPartition {
		b.Key.Row = ""
	}
	return b
}

// plainRange reports whether Ranges of the filter between from and to is the range
// of these two bounds. This is so for legal, ascending keys that are not empty.
func plainRange(from, to Bound) bool {
	for _, b := range [...]Bound{from, to} {
		switch b.Kind {
		case BeforePartition, AfterPartition:
			b.Key.Row = "any"
		case BeforeRow, AfterRow:
		case Unbounded:
			return false
		}
		if b.Key.Partition == "" || b.Key.Row == "" || edm.CheckKey(b.Key) != nil {
			return false
		}
	}
	if c := edm.Compare(from.Key.Partition, to.Key.Partition); c != 0 {
		return c < 0
	}
	if from.Kind == BeforePartition || to.Kind == AfterPartition {
		return from.Kind < to.Kind
	}
	if from.Kind == AfterPartition || to.Kind == BeforePartition {
		return false
	}
	if c := edm.Compare(from.Key.Row, to.Key.Row); c != 0 {
		return c < 0
	}
	return from.Kind < to.Kind
}

// compareKeys is Keys with comparisons.
func compareKeys(from, to Bound) *Expr {
	const partition, row = edm.PartitionKeyName, edm.RowKeyName
	// side returns the comparison with key: of the partition by beyond, or for
	// equal partitions of the row by within.
	side := func(key edm.Key, beyond, within predicate.Op) node {
		return newOr(
			compareKey(partition, beyond, key.Partition),
			newAnd(compareKey(partition, predicate.Eq, key.Partition), compareKey(row, within, key.Row)))
	}
	var nodes []node
	switch from.Kind {
	case Unbounded:
	case BeforePartition:
		nodes = append(nodes, compareKey(partition, predicate.Ge, from.Key.Partition))
	case BeforeRow:
		nodes = append(nodes, side(from.Key, predicate.Gt, predicate.Ge))
	case AfterRow:
		nodes = append(nodes, side(from.Key, predicate.Gt, predicate.Gt))
	case AfterPartition:
		nodes = append(nodes, compareKey(partition, predicate.Gt, from.Key.Partition))
	}
	switch to.Kind {
	case Unbounded:
	case BeforePartition:
		nodes = append(nodes, compareKey(partition, predicate.Lt, to.Key.Partition))
	case BeforeRow:
		nodes = append(nodes, side(to.Key, predicate.Lt, predicate.Lt))
	case AfterRow:
		nodes = append(nodes, side(to.Key, predicate.Lt, predicate.Le))
	case AfterPartition:
		nodes = append(nodes, compareKey(partition, predicate.Le, to.Key.Partition))
	}
	if len(nodes) == 0 {
		return nil
	}
	return newExpr(newAnd(nodes...), false)
}

// String returns the text of e, "" if e is nil. Parse of this text gives an equal
// filter.
func (e *Expr) String() string {
	if e == nil {
		return ""
	}
	return string(e.compiled().root.appendText(nil))
}

// Match reports whether e keeps row. It does not allocate. A comparison with a
// property that row does not have is false.
func (e *Expr) Match(row edm.Row) bool { return e == nil || e.compiled().program.Match(row) }

// MatchTable reports whether e, a result of [ParseTables], keeps the table called
// name.
func (e *Expr) MatchTable(name string) bool {
	if e == nil {
		return true
	}
	return e.compiled().program.Match(&tableRow{name: edm.String(edm.FoldTableName(name))})
}

// Cost returns how much it costs at most to match one row whose key is in Ranges, or one
// table, in comparisons with short constants.
func (e *Expr) Cost() int {
	switch {
	case e == nil:
		return 0
	case e.tables:
		return e.compiled().program.Cost()
	case e.ranged().residual == nil:
		return 0
	}
	return e.residual.Cost()
}

// condition returns the condition that e puts on rows whose keys are in Ranges:
// the whole condition, without the comparisons that are true for all of these
// rows. It is nil if e keeps all of them.
func (e *Expr) condition() *predicate.Program {
	if e == nil {
		return nil
	}
	return e.ranged().residual
}

func init() {
	predicate.Residual = func(e any) *predicate.Program { return e.(*Expr).condition() }
}

// Ranges returns the ranges of keys to read. They are ascending, disjoint and not
// adjacent, and contain every key that e keeps. There is none if e keeps nothing,
// and one without bounds if e can keep any key. There are at most 256: Ranges joins
// neighbours until this is so.
//
// The keys of bounds need not be legal: they have at most edm.MaxKeyUnits code
// units and no character below U+0020, and are otherwise as in the filter. Do not
// change the result.
func (e *Expr) Ranges() []Range {
	if e == nil {
		return whole
	}
	return e.ranged().ranges
}

var whole = []Range{{}}
