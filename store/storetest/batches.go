package storetest

import (
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

var batchTests = []subtest{
	{"Batch", testBatch},
	{"BatchIndex", testBatchIndex},
	{"BatchAtomic", testBatchAtomic},
	{"BatchCount", testBatchCount},
	{"BatchBytes", testBatchBytes},
}

func testBatch(t *tester) {
	s := t.openPeople()
	gone := t.insert(s, number("p", "6", 1))
	merged := t.insert(s, entity("p", "3", prop("A", edm.Int32(1))))
	t.insert(s, number("p", "5", 1))
	elsewhere := t.insert(s, number("q", "1", 1))
	// Not in order, one of each kind.
	ops := []store.Op{
		store.Replace(number("p", "5", 2), store.Any),
		store.Insert(number("p", "1", 2)),
		store.Merge(number("p", "3", 2), merged.Timestamp.ETag()),
		store.Delete(gone.Key, gone.Timestamp.ETag()),
		store.InsertOrReplace(number("p", "4", 2)),
		store.InsertOrMerge(number("p", "", 2)),
	}
	var want []edm.Entity
	results := t.apply(s, ops...)
	for _, i := range []int{5, 1, 2, 4, 0} {
		e := ops[i].Entity
		if i == 2 {
			e = entity("p", "3", prop("A", edm.Int32(1)), prop("N", edm.Int32(2)))
		}
		e.Timestamp = results[i].Timestamp
		want = append(want, e)
	}
	t.wantRows("after one of each kind", s, store.Query{}, append(want, elsewhere))
}

// testBatchIndex checks which op a failure reports.
func testBatchIndex(t *tester) {
	s := t.openPeople()
	t.insert(s, number("p", "old", 1))
	in := func(p, r string) store.Op { return store.Insert(number(p, r, 1)) }
	bad := store.Insert(entity("p", "bad", prop("a-b", edm.Int32(1))))
	for _, c := range []struct {
		name string
		ops  []store.Op
		want failure
	}{
		{"name", []store.Op{in("p", "1"), bad, bad}, failure{Index: 1, Rule: edm.RulePropertyName}},
		{"partition", []store.Op{in("p", "1"), in("p", "2"), in("q", "3"), in("p", "4"), in("r", "5")}, failure{Index: 2, Rule: edm.RuleBatchPartition}},
		{"partition, most differ", []store.Op{in("p", "1"), in("q", "1"), in("q", "2")}, failure{Index: 1, Rule: edm.RuleBatchPartition}},
		{"duplicate", []store.Op{in("p", "1"), in("p", "2"), in("p", "1"), in("p", "2")}, failure{Index: 2, Rule: edm.RuleBatchDuplicate}},
		{"duplicate in a row", []store.Op{in("p", "1"), in("p", "1"), in("p", "1")}, failure{Index: 1, Rule: edm.RuleBatchDuplicate}},
		{
			"duplicate of another kind",
			[]store.Op{in("p", "1"), in("p", "0"), store.Delete(key("p", "1"), store.Any)},
			failure{Index: 2, Rule: edm.RuleBatchDuplicate},
		},
		{"duplicate of an empty key", []store.Op{in("p", ""), in("p", "")}, failure{Index: 1, Rule: edm.RuleBatchDuplicate}},
		{
			"exists",
			[]store.Op{in("p", "1"), in("p", "old"), store.Delete(key("p", "none"), store.Any)},
			failure{Index: 1, Executed: true, Err: store.ErrEntityExists},
		},
		{
			"missing",
			[]store.Op{in("p", "1"), store.Delete(key("p", "none"), store.Any), in("p", "old")},
			failure{Index: 1, Executed: true, Err: store.ErrEntityNotFound},
		},
		{
			"ETag",
			[]store.Op{in("p", "1"), in("p", "2"), store.Replace(number("p", "old", 2), `W/"x"`)},
			failure{Index: 2, Executed: true, Err: store.ErrPrecondition},
		},
		{"nothing to do", nil, failure{Rule: edm.RuleBatchCount}},
	} {
		results, err := s.Apply(t.ctx, people, c.ops...)
		t.wantFailure(c.name, err, c.want)
		if results != nil {
			t.Errorf("%s: results %v with an error", c.name, results)
		}
	}
}

// testBatchAtomic makes each op of a batch fail, one after the other.
func testBatchAtomic(t *tester) {
	s := t.openPeople()
	var list []edm.Entity
	for i := range 6 {
		list = append(list, number("p", fmt.Sprint(i), i))
	}
	list = t.fill(s, list)
	good := []store.Op{
		store.Insert(number("p", "new", 9)), store.Replace(number("p", "1", 9), store.Any), store.Merge(number("p", "2", 9), store.Any),
		store.Delete(key("p", "3"), store.Any), store.InsertOrMerge(number("p", "4", 9)), store.InsertOrReplace(number("p", "newer", 9)),
	}
	for i := range good {
		for _, bad := range []struct {
			op   store.Op
			want failure
		}{
			{store.Insert(number("p", "5", 9)), failure{Index: i, Executed: true, Err: store.ErrEntityExists}},
			{store.Delete(key("p", "none"), store.Any), failure{Index: i, Executed: true, Err: store.ErrEntityNotFound}},
			{store.Merge(number("p", "5", 9), "old"), failure{Index: i, Executed: true, Err: store.ErrPrecondition}},
			{
				store.InsertOrMerge(edm.Entity{Key: key("p", "5"), Properties: several("P", 252)}),
				failure{Index: i, Executed: true, Rule: edm.RulePropertyCount},
			},
			{store.Insert(number("q", "5", 9)), failure{Index: max(i, 1), Rule: edm.RuleBatchPartition}},
		} {
			ops := append([]store.Op{}, good...)
			ops[i] = bad.op
			_, err := s.Apply(t.ctx, people, ops...)
			t.wantFailure(fmt.Sprintf("op %d", i), err, bad.want)
			t.wantRows(fmt.Sprintf("after op %d failed: %v", i, err), s, store.Query{}, list)
		}
	}
	t.apply(s, good...)
}

func testBatchCount(t *tester) {
	s := t.openPeople()
	ops := func(n int) (ops []store.Op) {
		for i := range n {
			ops = append(ops, store.InsertOrReplace(number("p", fmt.Sprint(i*37%1009), i)))
		}
		return ops
	}
	for _, n := range []int{edm.MaxBatchOps + 1, 3 * edm.MaxBatchOps} {
		_, err := s.Apply(t.ctx, people, ops(n)...)
		t.wantFailure(fmt.Sprintf("%d ops", n), err, failure{Index: 99, Rule: edm.RuleBatchCount, Err: store.ErrTooLarge})
	}
	t.wantRows("after refusals", s, store.Query{}, nil)
	t.apply(s, ops(edm.MaxBatchOps)...)
	if n := len(t.page(s, store.Query{}).Rows); n != edm.MaxBatchOps {
		t.Errorf("%d entities of a full batch, want %d", n, edm.MaxBatchOps)
	}
}

// testBatchBytes checks that each entity of a full batch may have the largest size, and
// that a batch of more bytes is refused before the store looks at its entities.
func testBatchBytes(t *tester) {
	t.needBeyondProtocol()
	s := t.openPeople()
	size := edm.MaxEntityBytes - edm.EntitySize(key("p", "00"), nil)
	full := filling(size)
	var ops []store.Op
	for i := range edm.MaxBatchOps {
		ops = append(ops, store.InsertOrMerge(edm.Entity{Key: key("p", fmt.Sprintf("%02d", i)), Properties: full}))
	}
	ops[0].Entity.Properties = append(filling(size-21), prop("X", edm.Binary(make([]byte, 8)))) // a byte more
	_, err := s.Apply(t.ctx, people, ops...)
	t.wantFailure("a byte above the limit", err, failure{Index: 99, Rule: edm.RuleBatchBytes, Err: store.ErrTooLarge})
	ops[99] = store.Delete(key("p", "99"), store.Any)
	_, err = s.Apply(t.ctx, people, ops...)
	t.wantFailure("an entity above its limit", err, failure{Index: 0, Executed: true, Rule: edm.RuleEntitySize, Err: store.ErrTooLarge})
	t.wantRows("after refusals", s, store.Query{}, nil)
	ops[0].Entity.Properties, ops[99] = full, store.InsertOrReplace(edm.Entity{Key: key("p", "99"), Properties: full})
	if testing.Short() { // a full batch takes seconds with the race detector
		ops = ops[:12]
	}
	var want []edm.Entity
	for i, r := range t.apply(s, ops...) {
		e := ops[i].Entity
		e.Timestamp = r.Timestamp
		want = append(want, e)
	}
	t.wantRows("a full batch", s, store.Query{}, want)
}
