package storetest

import (
	"fmt"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

var orderTests = []subtest{
	{"OrderOfChecks", testOrderOfChecks},
}

// request is an Apply that violations change.
type request struct {
	table string
	ops   []store.Op
}

// The groups of checks, in their order. In the two groups that check op by op, the
// index of the op decides before the order in violations.
const (
	groupName = iota
	groupOps
	groupCount
	groupBytes
	groupTable
	groupStored
)

// violation breaks one rule in op i of a request.
type violation struct {
	name  string
	group int
	do    func(r *request, i int)
	want  failure // with index i, unless fixed
	fixed bool
	key   bool // changes the key, so an op can have only one such
}

// violations returns the violations in the order of the checks of an op.
func violations() []violation {
	wide := several("P", 253)
	heavy := filling(edm.MaxBatchBytes)
	op := func(change func(op *store.Op)) func(*request, int) {
		return func(r *request, i int) { change(&r.ops[i]) }
	}
	add := func(p edm.Property) func(*request, int) {
		return op(func(op *store.Op) { op.Entity.Properties = append(op.Entity.Properties, p) })
	}
	return []violation{
		{"table name", groupName, func(r *request, _ int) { r.table = "no-good" }, failure{Rule: edm.RuleTableName}, true, false},
		{"key", groupOps, op(func(op *store.Op) { op.Entity.Key.Row = "bad/key" }), failure{Rule: edm.RuleKey}, false, true},
		{"name", groupOps, add(prop("bad-name", edm.Int32(1))), failure{Rule: edm.RulePropertyName}, false, false},
		{"value", groupOps, func(r *request, i int) {
			// The value is first in the entity, and yet names are checked before it.
			r.ops[i].Entity.Properties = append(edm.Properties{prop("V", edm.DateTime(-1))}, r.ops[i].Entity.Properties...)
		}, failure{Rule: edm.RuleRange}, false, false},
		{"partition", groupOps, op(func(op *store.Op) { op.Entity.Key.Partition = "other" }), failure{Rule: edm.RuleBatchPartition}, false, true},
		{"duplicate", groupOps, func(r *request, i int) { r.ops[i].Entity.Key = key("p", "0") }, failure{Rule: edm.RuleBatchDuplicate}, false, true},
		{"count", groupCount, func(r *request, _ int) {
			for i := len(r.ops); i < 101; i++ {
				r.ops = append(r.ops, store.InsertOrReplace(number("p", fmt.Sprintf("x%d", i), i)))
			}
		}, failure{Index: 99, Rule: edm.RuleBatchCount}, true, false},
		{"bytes", groupBytes, op(func(op *store.Op) {
			op.Entity.Properties = append(op.Entity.Properties, heavy...)
		}), failure{Rule: edm.RuleBatchBytes}, false, false},
		{"table", groupTable, func(r *request, _ int) { r.table = "Nobody" }, failure{Err: store.ErrTableNotFound}, true, false},
		{"existence", groupStored, op(func(op *store.Op) { op.Entity.Key.Row += "none" }), failure{Executed: true, Err: store.ErrEntityNotFound}, false, true},
		{"ETag", groupStored, op(func(op *store.Op) { op.IfMatch = `W/"wrong"` }), failure{Executed: true, Err: store.ErrPrecondition}, false, false},
		{
			"result", groupStored, op(func(op *store.Op) { op.Entity.Properties = append(op.Entity.Properties, wide...) }),
			failure{Executed: true, Rule: edm.RulePropertyCount},
			false, false,
		},
	}
}

// testOrderOfChecks puts every two violations into ops a and b of a batch, and checks
// which of them is reported.
func testOrderOfChecks(t *tester) {
	s := t.openPeople()
	var list []edm.Entity
	for i := range 4 {
		list = append(list, number("p", fmt.Sprint(i), i))
	}
	list = t.fill(s, list)
	all := violations()
	// The order of keys must not change the order of checks: try ascending keys, and
	// the last two keys in descending order.
	for _, rows := range [][]string{{"0", "1", "2", "3"}, {"0", "3", "2", "1"}} {
		for x := range all {
			for y := x; y < len(all); y++ {
				for _, at := range [][2]int{{1, 1}, {1, 2}, {2, 1}, {3, 1}, {1, 3}} {
					t.twoViolations(s, rows, all, [2]int{x, y}, at)
				}
			}
		}
	}
	t.wantRows("after all refusals", s, store.Query{}, list)
}

func (t *tester) twoViolations(s store.Store, rows []string, all []violation, which, at [2]int) {
	t.Helper()
	x, y := all[which[0]], all[which[1]]
	same := which[0] == which[1]
	switch {
	case same && x.fixed:
		at[1] = at[0]
	case !same && at[0] == at[1] && x.key && y.key, x.fixed && y.fixed && x.group != y.group && x.group != groupCount && y.group != groupCount:
		return // the two exclude each other
	}
	r := request{table: people}
	for i, row := range rows {
		r.ops = append(r.ops, store.Replace(number("p", row, i), store.Any))
	}
	x.do(&r, at[0])
	if !same || at[0] != at[1] {
		y.do(&r, at[1])
	}
	first, index := x, at[0]
	if y.group < x.group || y.group == x.group && (y.group == groupOps || y.group == groupStored) && at[1] < at[0] ||
		same && x.group == groupBytes && at[1] < at[0] {
		first, index = y, at[1]
	}
	want := first.want
	if !first.fixed {
		want.Index = index
	}
	_, err := s.Apply(t.ctx, r.table, r.ops...)
	t.wantFailure(fmt.Sprintf("%s in op %d with %s in op %d, rows %q", x.name, at[0], y.name, at[1], rows), err, want)
}
