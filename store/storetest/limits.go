package storetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// maxMetaBytes is the limit of the metadata of a table and of the account.
const maxMetaBytes = 64 << 10

var limitTests = []subtest{
	{"OpLimits", testOpLimits},
	{"ResultLimits", testResultLimits},
}

// testOpLimits breaks each rule for a single op, in every kind of op.
func testOpLimits(t *tester) {
	s := t.openPeople()
	longKey, longName := strings.Repeat("k", edm.MaxKeyUnits), strings.Repeat("n", edm.MaxNameUnits)
	wideKey := strings.Repeat("\U0001F600", edm.MaxKeyUnits/2)
	one := edm.Int32(1)
	named := func(name string) edm.Entity { return entity("p", "r", prop(name, one)) }
	valued := func(v edm.Value) edm.Entity { return entity("p", "r", prop("V", v)) }
	for _, c := range []struct {
		e    edm.Entity
		rule edm.Rule
		key  bool // OpDelete checks it too
	}{
		{entity("a/b", "r"), edm.RuleKey, true},
		{entity("p", `a\b`), edm.RuleKey, true},
		{entity("#", "r"), edm.RuleKey, true},
		{entity("p", "?"), edm.RuleKey, true},
		{entity("\x00", "r"), edm.RuleKey, true},
		{entity("p", "\x1f"), edm.RuleKey, true},
		{entity("\x7f", "r"), edm.RuleKey, true},
		{entity("p", "\u0080"), edm.RuleKey, true},
		{entity("p", "\u009f"), edm.RuleKey, true},
		{entity(longKey+"k", "r"), edm.RuleKeyLength, true},
		{entity("p", longKey+"k"), edm.RuleKeyLength, true},
		{entity(wideKey+"k", "r"), edm.RuleKeyLength, true},
		{entity("p", "k"+wideKey), edm.RuleKeyLength, true},
		{entity("\xff", "r"), edm.RuleUTF8, true},
		{entity("p", "\xed\xa0\x80"), edm.RuleUTF8, true}, // half of a surrogate pair
		{named(""), edm.RulePropertyName, false},
		{named("1a"), edm.RulePropertyName, false},
		{named("a-b"), edm.RulePropertyName, false},
		{named("a b"), edm.RulePropertyName, false},
		{named("a.b"), edm.RulePropertyName, false},
		{named(edm.PartitionKeyName), edm.RulePropertyName, false},
		{named(edm.RowKeyName), edm.RulePropertyName, false},
		{named(edm.TimestampName), edm.RulePropertyName, false},
		{named(longName + "n"), edm.RulePropertyNameLength, false},
		{named("a\xff"), edm.RuleUTF8, false},
		{entity("p", "r", prop("A", one), prop("B", one), prop("A", one)), edm.RulePropertyDuplicate, false},
		{valued(edm.String(strings.Repeat("x", edm.MaxStringUnits+1))), edm.RuleValueSize, false},
		{valued(edm.String(strings.Repeat("\U0001F600", edm.MaxStringUnits/2) + "x")), edm.RuleValueSize, false},
		{valued(edm.Binary(make([]byte, edm.MaxBinaryBytes+1))), edm.RuleValueSize, false},
		{valued(edm.DateTime(edm.MinTicks - 1)), edm.RuleRange, false},
		{valued(edm.DateTime(edm.MaxTicks + 1)), edm.RuleRange, false},
		{valued(edm.String("\xff")), edm.RuleUTF8, false},
		{valued(edm.String("a\xed\xa0\xbd\xed\xb8\x80")), edm.RuleUTF8, false},
		{valued(edm.Fixed(99, 0)), edm.RuleRange, false},
		{valued(edm.Fixed(edm.TypeGuid, 1)), edm.RuleRange, false},
	} {
		for kind := store.OpInsert; kind <= store.OpDelete; kind++ {
			what := fmt.Sprintf("%v refused by rule %q", kind, c.rule)
			_, err := s.Apply(t.ctx, people, store.Op{Kind: kind, Entity: c.e, IfMatch: store.Any})
			if kind == store.OpDelete && !c.key {
				t.wantFailure(what, err, failure{Executed: true, Err: store.ErrEntityNotFound})
				continue
			}
			t.wantFailure(what, err, failure{Rule: c.rule})
		}
	}
	_, err := s.Apply(t.ctx, people, store.Op{Entity: entity("p", "r")})
	t.wantFailure("no kind of op", err, failure{Err: store.ErrInvalid})
	t.wantRows("after errors only", s, store.Query{}, nil)
}

// testResultLimits checks the limits of the resulting entity: at the limit, and just
// above.
func testResultLimits(t *tester) {
	s := t.openPeople()
	at := func(row string, p edm.Properties) edm.Entity { return edm.Entity{Key: key("p", row), Properties: p} }
	left := edm.MaxEntityBytes - edm.EntitySize(key("p", "1"), nil)
	small := edm.Properties{prop("Small", edm.Boolean(true))}
	smallSize := propertySize(small[0])
	for _, c := range []struct {
		name         string
		old          edm.Properties // the stored entity; nil: none
		fits, breaks edm.Properties
		rule         edm.Rule
	}{
		{"count", nil, several("P", 252), several("P", 253), edm.RulePropertyCount},
		{"count without nulls", nil, append(several("P", 252), prop("Null", edm.Value{})), several("P", 300), edm.RulePropertyCount},
		{"count of a merge", several("P", 200), several("Q", 52), append(several("Q", 52), prop("More", edm.Boolean(true))), edm.RulePropertyCount},
		{"size", nil, filling(left), append(filling(left-smallSize+1), small...), edm.RuleEntitySize},
		{"size of a merge", filling(left - smallSize), small, edm.Properties{prop("SmallX", edm.Boolean(true))}, edm.RuleEntitySize},
	} {
		kinds := []store.OpKind{store.OpInsertOrMerge, store.OpMerge}
		if c.old == nil {
			kinds = []store.OpKind{store.OpInsert, store.OpInsertOrReplace, store.OpInsertOrMerge, store.OpReplace, store.OpMerge}
			if testing.Short() { // with the race detector, all of them take seconds
				kinds = []store.OpKind{store.OpInsert, store.OpMerge}
			}
		}
		for _, kind := range kinds {
			what := kind.String() + ", " + c.name
			for _, p := range []edm.Properties{c.breaks, c.fits} {
				t.clear(s)
				if c.old != nil || kind == store.OpReplace || kind == store.OpMerge {
					t.insert(s, at("1", c.old))
				}
				before := t.page(s, store.Query{}).Rows
				_, err := s.Apply(t.ctx, people, store.InsertOrReplace(at("2", small)), store.Op{Kind: kind, Entity: at("1", p), IfMatch: store.Any})
				if &p[0] == &c.fits[0] {
					t.wantErr(what+" at the limit", err, nil)
					continue
				}
				t.wantFailure(what+" above the limit", err, failure{Index: 1, Executed: true, Rule: c.rule, Err: store.ErrTooLarge})
				t.wantRows(what+" above the limit", s, store.Query{}, before)
			}
		}
	}
}

// clear removes all entities of people.
func (t *tester) clear(s store.Store) {
	t.Helper()
	for _, e := range t.page(s, store.Query{}).Rows {
		t.apply(s, store.Delete(e.Key, e.Timestamp.ETag()))
	}
}
