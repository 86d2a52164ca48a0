package bench

import (
	"bytes"
	"math"
	"slices"
	"strconv"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
)

// Match is a filter on one property, true of about 1 % of the entities: the property
// is greater than a limit. All stores compare the property alone, and decode the rest
// only of entities that match.
type Match struct {
	Prop int
	Type edm.Type
	// Expr is the filter for a store that evaluates filters.
	Expr *filter.Expr

	word  int64
	float float64
	text  []byte
}

// MatchedTypes lists the types for Dataset.Match.
func MatchedTypes() []edm.Type {
	return []edm.Type{edm.TypeInt32, edm.TypeInt64, edm.TypeDouble, edm.TypeDateTime, edm.TypeString}
}

// matchShare is the share of entities that a Match selects.
const matchShare = 0.01

// matchSample is the number of entities that determine the limit of a string.
const matchSample = 50_000

// Match returns the filter on a property of a type of MatchedTypes.
func (d *Dataset) Match(t edm.Type) *Match {
	m := &Match{Type: t}
	var literal string
	switch t {
	case edm.TypeInt32:
		m.Prop, m.word = PropCount, countLimit-countLimit/100
		literal = strconv.FormatInt(m.word, 10)
	case edm.TypeInt64:
		m.Prop, m.word = PropTotal, totalLimit-totalLimit/100
		literal = strconv.FormatInt(m.word, 10) + "L"
	case edm.TypeDateTime:
		m.Prop, m.word = PropWhen, firstTicks+yearTicks-yearTicks/100
		literal = "datetime'" + edm.Ticks(m.word).String() + "'"
	case edm.TypeDouble:
		m.Prop, m.float = PropTemperature, 99
		literal = "99.0"
	default:
		// The words of a dataset have no quotation marks.
		m.Prop, m.text = PropNote, d.quantile(PropNote, 1-matchShare)
		literal = "'" + string(m.text) + "'"
	}
	m.Expr = filter.MustParse(propNames[m.Prop] + " gt " + literal)
	return m
}

// quantile returns the q-quantile of a string property, of the first entities.
func (d *Dataset) quantile(prop int, q float64) []byte {
	var e edm.Entity
	texts := make([][]byte, min(d.Len(), matchSample))
	for i := range texts {
		d.Fill(i, i, &e)
		texts[i] = e.Properties[prop].Value.Bytes()
	}
	slices.SortFunc(texts, bytes.Compare)
	return texts[int(q*float64(len(texts)-1))]
}

// Word reports whether an integer or the ticks of a DateTime match.
func (m *Match) Word(v int64) bool { return v > m.word }

// Double reports whether the bits of a Double match.
func (m *Match) Double(bits uint64) bool { return math.Float64frombits(bits) > m.float }

// Bytes reports whether the bytes of a String match.
func (m *Match) Bytes(v []byte) bool { return bytes.Compare(v, m.text) > 0 }

// Value reports whether a property of m.Type matches.
func (m *Match) Value(v edm.Value) bool {
	switch m.Type {
	case edm.TypeString:
		return m.Bytes(v.Bytes())
	case edm.TypeDouble:
		return m.Double(v.Word())
	default:
		return m.Word(int64(v.Word()))
	}
}
