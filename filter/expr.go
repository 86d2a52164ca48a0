// Package filter is the $filter language of the Table service: it turns text
// into an Expr, and an Expr into the key ranges that must be read and a
// predicate over rows.
package filter

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/predicate"
)

// Limits of a filter. The service's own are not published.
const (
	// maxDepth is how deep parentheses and negations may nest. "not" and a
	// parenthesis right after it are one level.
	maxDepth = 100
	// maxGroups is how many "not" and chains of "and" or of "or" a filter may
	// have. A chain is one group, however long.
	maxGroups = 256
)

// tableName is the only property that a filter over tables can name.
const tableName = "TableName"

// Expr is a filter. It is immutable and may be shared. A nil *Expr keeps every
// row.
type Expr struct {
	// keys are what Keys was given, if the rest but ranges has not been asked
	// for; made makes it.
	keys *Range
	once sync.Once

	root    node
	tables  bool
	program *predicate.Program
	ranges  []Range
	// residual is what is left of program within ranges, nil for nothing.
	residual *predicate.Program
}

// Parse reads a filter over entities. An empty or blank text gives nil, which
// keeps every row. The error is an *Error.
func Parse(text string) (*Expr, error) { return parseExpr(text, false) }

// ParseTables reads a filter over tables, whose one property is TableName. The
// result is for MatchTable. Names are compared without regard to ASCII case.
func ParseTables(text string) (*Expr, error) { return parseExpr(text, true) }

// parseExpr reads a filter over entities, or over tables.
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

// MustParse is Parse for texts that are part of a program; it panics if Parse
// fails.
func MustParse(text string) *Expr {
	e, err := Parse(text)
	if err != nil {
		panic("filter: " + err.Error())
	}
	return e
}

func newExpr(root node, tables bool) *Expr {
	p := predicate.Compile(compile(root, tables))
	ranges := rangesOf(p.Root())
	return &Expr{root: root, tables: tables, program: p, ranges: ranges, residual: residualOf(p, ranges)}
}

// And returns the filter that keeps what both a and b keep.
func And(a, b *Expr) *Expr {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return newExpr(newAnd(a.made().root, b.made().root), a.tables || b.tables)
}

// made returns e with all its parts.
func (e *Expr) made() *Expr {
	if e.keys != nil {
		e.once.Do(func() {
			full := compareKeys(e.keys.From, e.keys.To)
			e.root, e.program = full.root, full.program
		})
	}
	return e
}

// Keys returns the filter that keeps the keys from from, up to and without to.
// The keys in the bounds are valid UTF-8, and may be such as no entity has.
func Keys(from, to Bound) *Expr {
	if plainRange(from, to) {
		// Most such filters only say where to look.
		r := Range{from.bare(), to.bare()}
		return &Expr{keys: &r, ranges: []Range{r}}
	}
	return compareKeys(from, to)
}

// bare returns b without a row that does not count.
func (b Bound) bare() Bound {
	if b.Kind == BeforePartition || b.Kind == AfterPartition {
		b.Key.Row = ""
	}
	return b
}

// plainRange reports whether from and to are, without more ado, the bounds of
// the one range between them: legal keys in order, in the form that Ranges gives
// them.
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

// compareKeys is Keys by way of comparisons.
func compareKeys(from, to Bound) *Expr {
	const partition, row = edm.PartitionKeyName, edm.RowKeyName
	// side returns the keys that beyond tells to be in other partitions on the
	// wanted side of key, and those in the same partition with such a row.
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

// String returns e in the filter language, for logs; it is "" if e is nil.
// Parse reads what a parsed e gives as an equal filter.
func (e *Expr) String() string {
	if e == nil {
		return ""
	}
	return string(e.made().root.appendText(nil))
}

// Match reports whether e keeps row. It does not allocate.
func (e *Expr) Match(row edm.Row) bool { return e == nil || e.made().program.Match(row) }

// MatchTable reports whether e, a filter over tables, keeps the table called
// name.
func (e *Expr) MatchTable(name string) bool {
	if e == nil {
		return true
	}
	return e.made().program.Match(&tableRow{name: edm.String(edm.FoldTableName(name))})
}

// condition returns the condition that e puts on rows whose keys are in Ranges:
// the whole condition, without the comparisons that are true for all of these
// rows. It is nil if e keeps all of them.
func (e *Expr) condition() *predicate.Program {
	if e == nil {
		return nil
	}
	return e.residual
}

func init() {
	predicate.Residual = func(e any) *predicate.Program { return e.(*Expr).condition() }
}

// Ranges returns ranges of keys, ascending and apart from each other, that
// contain every key that e keeps: none if e keeps nothing, one without bounds if
// any key may be kept. Bounds have keys of at most edm.MaxKeyUnits code units,
// without characters below U+0020 but otherwise as in the filter, so that they
// need not be legal keys. Callers must not change the result.
//
// For conditions on PartitionKey and RowKey the ranges are as narrow as ranges
// can be that name single partitions; if they would be more than 256,
// neighbours are joined.
func (e *Expr) Ranges() []Range {
	if e == nil {
		return whole
	}
	return e.ranges
}

var whole = []Range{{}}
