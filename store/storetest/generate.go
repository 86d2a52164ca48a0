package storetest

import (
	"fmt"
	"math"
	"strings"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
)

// The steps of a model use few values, so that keys collide, names recur and filters
// match.
var (
	modelTables     = []string{"Alpha", "alpha", "Beta", "Gamma"}
	modelPartitions = []string{"", "a", "a ", "\U0001F600", "\uffff"}
	modelRows       = []string{"", "0", "1", "2", "3", "4", "00", "a", "\u00e9", "\ud7ff", "\U0001F600", "\ue000", "\uffff"}
	modelNames      = []string{"N", "S", "B", "M", "Text", "\u8868", "\uf900", "\U00010400"}
	badNames        = []string{"", "a-b", "1", edm.RowKeyName, strings.Repeat("n", edm.MaxNameUnits+1), "\xff"}
	badKeys         = []string{"a/b", "#", "\x01", "\u0085", strings.Repeat("k", edm.MaxKeyUnits+1), "\xff"}
)

func pick[T any](m *model, list []T) T { return list[m.rand.IntN(len(list))] }

func (m *model) tableName() string {
	if m.chance(10) {
		return pick(m, []string{"no", "no-good", "tables"})
	}
	if m.chance(600) {
		return modelTables[0]
	}
	return pick(m, modelTables)
}

func (m *model) key() edm.Key {
	return edm.Key{Partition: pick(m, modelPartitions), Row: pick(m, modelRows)}
}

// ops returns a batch, usually of one or a few ops. The ops of a large batch are
// valid by themselves, so that the checks of batches are reached.
func (m *model) ops() []store.Op {
	n := 1
	switch {
	case m.chance(10):
		n = pick(m, []int{0, 99, 100, 101, 150})
	case m.chance(400):
		n = 2 + m.rand.IntN(6)
	}
	partition := pick(m, modelPartitions)
	used := map[string]bool{}
	ops := make([]store.Op, 0, n)
	for i := range n {
		row := pick(m, modelRows)
		for used[row] && (n > 8 || !m.chance(20)) {
			row = fmt.Sprintf("%s%d", pick(m, modelRows), i)
		}
		used[row] = true
		k := edm.Key{Partition: partition, Row: row}
		switch {
		case n > 8:
		case m.chance(3):
			k.Partition = pick(m, modelPartitions)
		case m.chance(3):
			k.Row = pick(m, badKeys)
		case m.chance(2):
			k.Partition = pick(m, badKeys)
		}
		ops = append(ops, m.op(k, n))
	}
	return ops
}

// op returns an op on k for a batch of n.
func (m *model) op(k edm.Key, n int) store.Op {
	op := store.Op{Kind: store.OpKind(1 + m.rand.IntN(6)), Entity: edm.Entity{Key: k, Properties: m.properties(n <= 8)}}
	if n > 1 && (n > 8 || !m.chance(100)) {
		// Most batches must succeed.
		op.Kind = pick(m, []store.OpKind{store.OpInsertOrMerge, store.OpInsertOrReplace})
	}
	if n <= 8 && m.chance(2) {
		op.Kind = store.OpKind(m.rand.IntN(2) * 99)
	}
	versions := m.versions[k]
	switch {
	case m.chance(400) && len(versions) > 0:
		op.IfMatch = versions[len(versions)-1].ETag()
	case m.chance(150) && len(versions) > 0:
		op.IfMatch = pick(m, versions).ETag()
	case m.chance(50):
		op.IfMatch = pick(m, []edm.ETag{"", "x", `W/"datetime'2024-02-03T12%3A00%3A00Z'"`})
	default:
		op.IfMatch = store.Any
	}
	return op
}

// properties returns a few properties. With odd, they rarely break a rule, or are
// many or large.
func (m *model) properties(odd bool) edm.Properties {
	var p edm.Properties
	start := m.rand.IntN(len(modelNames))
	for i := range m.rand.IntN(len(modelNames)) {
		p = append(p, edm.Property{Name: modelNames[(start+i)%len(modelNames)], Value: m.value()})
	}
	switch {
	case !odd:
	case m.chance(3):
		p = append(p, edm.Property{Name: pick(m, badNames), Value: edm.Int32(1)})
	case m.chance(3) && len(p) > 0:
		p = append(p, edm.Property{Name: p[0].Name, Value: m.value()})
	case m.chance(3):
		p = append(p, edm.Property{Name: "D", Value: edm.DateTime(pick(m, []edm.Ticks{-1, edm.MaxTicks + 1}))})
	case m.chance(3):
		p = append(p, edm.Property{Name: "L", Value: edm.Binary(make([]byte, edm.MaxBinaryBytes+m.rand.IntN(2)))})
	case m.chance(3):
		p = append(p, edm.Property{Name: "L", Value: edm.String("\xff")})
	case m.chance(8):
		p = append(p, several(pick(m, []string{"P", "Q"}), 120+m.rand.IntN(136))...)
	case m.chance(3):
		p = append(p, filling(edm.MaxEntityBytes/2+m.rand.IntN(edm.MaxEntityBytes))...)
	}
	return p
}

func (m *model) value() edm.Value {
	switch m.rand.IntN(11) {
	case 0:
		return edm.Value{}
	case 1:
		return edm.Boolean(m.chance(500))
	case 2, 3, 4:
		return edm.Int32(int32(m.rand.IntN(5) - 1))
	case 5:
		return edm.Int64(pick(m, []int64{0, 1, 2, math.MinInt64, math.MaxInt64}))
	case 6:
		return edm.Double(pick(m, []float64{0, math.Copysign(0, -1), 1, 1.5, math.Inf(1), math.NaN()}))
	case 7:
		return edm.DateTime(pick(m, []edm.Ticks{edm.MinTicks, 133_514_496_000_000_000, edm.MaxTicks}))
	case 8:
		return edm.GuidWords(uint64(m.rand.IntN(2)), 1)
	case 9:
		return edm.Binary([]byte("\x00\xff\x80")[:m.rand.IntN(4)])
	}
	if m.chance(20) {
		return edm.String(strings.Repeat(pick(m, []string{"x", "\u8868"}), m.rand.IntN(edm.MaxStringUnits)))
	}
	return edm.String(pick(m, []string{"", "a", "b", "\U0001F600", "it's"}))
}

func (m *model) queryOf() store.Query {
	q := store.Query{Reverse: m.chance(300)}
	if m.chance(600) {
		q.Filter = m.filter()
	}
	if m.chance(300) {
		k := m.key()
		if m.chance(300) {
			k.Row += pick(m, []string{" ", "\x01", "/", "\uffff"})
		}
		q.From = &k
	}
	if m.chance(500) {
		q.Limit = 1 + m.rand.IntN(8)
	}
	if m.chance(300) {
		q.Budget = 1 + m.rand.IntN(8)
	}
	if m.chance(200) {
		q.BudgetBytes = 1 + m.rand.IntN(200)
	}
	if m.chance(200) {
		q.Select = []string{}
		for range m.rand.IntN(4) {
			q.Select = append(q.Select, pick(m, modelNames))
		}
	}
	if m.backend.Protocol {
		q.Reverse, q.Budget, q.Select = false, 0, nil
	}
	return q
}

func (m *model) filter() *filter.Expr {
	var e *filter.Expr
	if m.chance(850) {
		text := m.condition(3)
		var err error
		if e, err = filter.Parse(text); err != nil {
			m.fatalf("the filter %q: %v", text, err)
		}
	}
	if m.chance(250) {
		bound := func() filter.Bound { return filter.Bound{Kind: filter.BoundKind(m.rand.IntN(5)), Key: m.key()} }
		e = filter.And(e, filter.Keys(bound(), bound()))
	}
	return e
}

// condition returns the text of a condition of at most depth levels.
func (m *model) condition(depth int) string {
	if depth > 0 && m.chance(500) {
		switch m.rand.IntN(5) {
		case 0:
			return "not (" + m.condition(depth-1) + ")"
		case 1, 2:
			return "(" + m.condition(depth-1) + ") or (" + m.condition(depth-1) + ")"
		default:
			return "(" + m.condition(depth-1) + ") and (" + m.condition(depth-1) + ")"
		}
	}
	operator := pick(m, []string{"eq", "ne", "lt", "le", "gt", "ge"})
	switch m.rand.IntN(5) {
	case 0:
		return "PartitionKey " + operator + " " + quoted(pick(m, modelPartitions))
	case 1:
		return "RowKey " + operator + " " + quoted(pick(m, modelRows))
	}
	literal := pick(m, []string{
		"0", "1", "2", "1L", "1.5", "0.0", "true", "false", "''", "'a'", "'it''s'", "'\U0001F600'",
		"datetime'2024-02-03T12:00:00Z'", "guid'00000000-0000-0001-0000-000000000001'", "X'00ff'",
	})
	return pick(m, modelNames) + " " + operator + " " + literal
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// describe formats a batch for a message.
func describe(table string, ops []store.Op) string {
	text := fmt.Sprintf("apply %d ops to %s:", len(ops), table)
	for i := 0; i < len(ops) && i < 8; i++ {
		op := &ops[i]
		text += fmt.Sprintf(" %v %.40q if %s", op.Kind, op.Entity.Key, op.IfMatch)
		for j, p := range op.Entity.Properties {
			if j == 6 {
				text += fmt.Sprintf(" and %d more", len(op.Entity.Properties)-j)
				break
			}
			text += fmt.Sprintf(" %.20s=%.60s", p.Name, fmt.Sprintf("%#v", p.Value))
		}
		text += ";"
	}
	return text
}
