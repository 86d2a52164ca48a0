package storetest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

var entityTests = []subtest{
	{"Values", testValues},
	{"Nulls", testNulls},
	{"Keys", testKeys},
	{"PropertyNames", testPropertyNames},
	{"PropertyOrder", testPropertyOrder},
	{"View", testView},
	{"Ownership", testOwnership},
}

var etagTests = []subtest{
	{"Timestamps", testTimestamps},
	{"Conditions", testConditions},
	{"Merge", testMerge},
	{"Replace", testReplace},
}

func testValues(t *tester) {
	s := t.openPeople()
	all := extremes()
	if t.backend.Protocol {
		all = slices.DeleteFunc(all, func(p edm.Property) bool { // all NaNs but one
			f, _ := p.Value.Double()
			return f != f && p.Value.Word() != math.Float64bits(math.NaN())
		})
	}
	want := t.insert(s, edm.Entity{Key: key("all", ""), Properties: all})
	t.wantEntity("all types in one entity", s, want)
	// The same name with every type, so that a store cannot have one type for a name.
	var list []edm.Entity
	for i, p := range all {
		list = append(list, entity("each", fmt.Sprintf("%03d", i), prop("V", p.Value)))
	}
	list = t.fill(s, list)
	for _, e := range list {
		t.wantEntity("one value", s, e)
	}
	t.wantRows("every value by one query", s, store.Query{From: &list[0].Key}, list)
	back := slices.Clone(list)
	slices.Reverse(back)
	t.wantRows("every value in reverse", s, store.Query{From: &list[len(list)-1].Key, Reverse: true, Limit: len(list)}, back)
}

func testNulls(t *tester) {
	s := t.openPeople()
	null := edm.Value{}
	given := entity("p", "r", prop("A", null), prop("B", edm.Int32(1)), prop("C", null))
	kept := entity("p", "r", prop("B", edm.Int32(1)))
	for _, op := range []store.Op{
		store.Insert(given), store.Replace(given, store.Any), store.InsertOrReplace(given),
		store.Merge(given, store.Any), store.InsertOrMerge(given),
	} {
		kept.Timestamp = t.apply(s, op)[0].Timestamp
		t.wantEntity(op.Kind.String(), s, kept)
	}
	kept.Timestamp = t.apply(s, store.Merge(entity("p", "r", prop("B", null)), store.Any))[0].Timestamp
	t.wantEntity("merge of null keeps the value", s, kept)
	given.Key, kept.Key = key("p", "s"), key("p", "s")
	kept.Timestamp = t.apply(s, store.InsertOrMerge(given))[0].Timestamp
	t.wantEntity("merge that inserts", s, kept)
	none := entity("p", "r")
	none.Timestamp = t.apply(s, store.Replace(entity("p", "r", prop("B", null)), store.Any))[0].Timestamp
	t.wantEntity("replace by nothing but null", s, none)
}

func testKeys(t *tester) {
	s := t.openPeople()
	long := strings.Repeat("k", edm.MaxKeyUnits)
	wide := strings.Repeat("\U0001F600", edm.MaxKeyUnits/2)
	parts := []string{
		"", " ", "  a ", "'", "''", `"`, "%", "%25", "a,b", "+&=;()@*$!", "\u00a0", "\u8868\u5f62", "\U0001F600", "a\u0301", "\u00e1",
		"~", "Abc", "abc", "\ufffd", "\uffff", long, wide, long[1:] + "\u8868",
	}
	var list []edm.Entity
	for i, p := range parts {
		list = append(list, number(p, parts[(i+7)%len(parts)], i), number("one", p, i))
	}
	for _, e := range t.fill(s, list) {
		t.wantEntity("key", s, e)
	}
	for _, k := range []edm.Key{
		key("one", "ABC"), key("One", "abc"), key("one", long[1:]), key("one", " a"), // similar to keys of entities
		key("a/b", ""), key("", "a\\b"), key("#", "?"), key("\x00", "\x1f"), key("\x7f", "\u009f"), // illegal
		key(long+"k", ""), key("one", wide+"k"), key("one", "\xff"), key("\xed\xa0\x80", ""),
	} {
		t.wantGone(fmt.Sprintf("key %.40q", k), s, k)
	}
}

func testPropertyNames(t *tester) {
	s := t.openPeople()
	long := strings.Repeat("n", edm.MaxNameUnits)
	names := []string{"b", "a", "B", "_", "_a1", "ETag", "partitionKey", "\u8868", "\ua015\u0301", "Z", "long_" + long[5:], "etag"}
	var p edm.Properties
	for i, name := range names {
		p = append(p, prop(name, edm.Int32(int32(i))))
	}
	t.wantEntity("names and their order", s, t.insert(s, edm.Entity{Key: key("p", "1"), Properties: p}))
	back := slices.Clone(p)
	slices.Reverse(back)
	t.wantEntity("the other order", s, t.insert(s, edm.Entity{Key: key("p", "2"), Properties: back}))
}

// testPropertyOrder shows that an insert keeps the order of the properties, and that
// every other op stores them in the order of their names by UTF-16 code units.
func testPropertyOrder(t *tester) {
	const upper, low = "\U00010400", "\uf900" // by code unit, D801 DC00 and F900
	one := edm.Int32(1)
	given := edm.Properties{
		prop("b", one), prop(low, one), prop("a", one), prop("Null", edm.Value{}),
		prop("_", one), prop("B", one), prop("a1", one), prop(upper, one), prop("\u8868", one),
	}
	stored := edm.Properties{
		prop("b", one), prop(low, one), prop("a", one), prop("_", one), prop("B", one), prop("a1", one), prop(upper, one), prop("\u8868", one),
	}
	sorted := edm.Properties{
		prop("B", one), prop("_", one), prop("a", one), prop("a1", one), prop("b", one), prop("\u8868", one), prop(upper, one), prop(low, one),
	}
	kinds := []store.OpKind{store.OpInsertOrMerge, store.OpInsertOrReplace, store.OpMerge, store.OpReplace}
	s := t.openPeople()
	for _, old := range []edm.Properties{nil, given, {prop("a", edm.Boolean(true))}} {
		for _, kind := range kinds {
			e := t.insert(s, edm.Entity{Key: key("p", "r"), Properties: old})
			if len(old) == len(given) {
				e.Properties = stored
				t.wantEntity("insert", s, e)
			}
			// Again, as a store may remember what it has seen.
			for range 2 {
				e.Timestamp = t.apply(s, store.Op{Kind: kind, Entity: edm.Entity{Key: e.Key, Properties: given}, IfMatch: store.Any})[0].Timestamp
				e.Properties = sorted
				t.wantEntity(fmt.Sprintf("%v, after an insert of %d properties", kind, len(old)), s, e)
			}
			t.apply(s, store.Delete(e.Key, store.Any))
		}
	}
	for _, kind := range kinds[:2] {
		e := edm.Entity{Key: key("p", kind.String()), Properties: given}
		e.Timestamp, e.Properties = t.apply(s, store.Op{Kind: kind, Entity: e})[0].Timestamp, sorted
		t.wantEntity(kind.String()+" of a new entity", s, e)
	}
	e := t.insert(s, edm.Entity{Key: key("p", "some"), Properties: edm.Properties{prop("c", one), prop("b", one)}})
	e.Timestamp = t.apply(s, store.Merge(entity("p", "some"), store.Any))[0].Timestamp
	e.Properties = edm.Properties{prop("b", one), prop("c", one)}
	t.wantEntity("merge of nothing", s, e)
	// In one batch, each op keeps to its own rule.
	var ops []store.Op
	var want []edm.Entity
	for i, kind := range []store.OpKind{store.OpInsert, store.OpInsertOrReplace, store.OpInsert, store.OpInsertOrMerge, store.OpInsertOrReplace} {
		k := key("batch", fmt.Sprint(i))
		ops = append(ops, store.Op{Kind: kind, Entity: edm.Entity{Key: k, Properties: given}})
		want = append(want, edm.Entity{Key: k, Properties: stored})
		if kind != store.OpInsert {
			want[i].Properties = sorted
		}
	}
	for i, r := range t.apply(s, ops...) {
		want[i].Timestamp = r.Timestamp
		t.wantEntity(fmt.Sprintf("op %d of a batch, %v", i, ops[i].Kind), s, want[i])
	}
}

func testView(t *tester) {
	s := t.openPeople()
	t.insert(s, number("p", "r", 1))
	mine := errors.New("of the callback")
	if err := s.View(t.ctx, people, key("p", "r"), func(edm.Row) error { return mine }); err != mine {
		t.Errorf("View returns %v, want its callback's error", err)
	}
	err := s.View(t.ctx, people, key("p", "r"), func(edm.Row) error {
		_, err := s.Get(t.ctx, people, key("p", "r"))
		return err
	})
	t.wantErr("Get within View", err, nil)
	for _, c := range []struct {
		table string
		key   edm.Key
		want  error
	}{{people, key("p", "s"), store.ErrEntityNotFound}, {"Nobody", key("p", "r"), store.ErrTableNotFound}} {
		err := s.View(t.ctx, c.table, c.key, func(edm.Row) error {
			t.Errorf("View calls back for %q in %s", c.key, c.table)
			return nil
		})
		t.wantErr("View", err, c.want)
	}
}

// testOwnership finds a store that retains or changes memory of the caller, or
// returns its own.
func testOwnership(t *tester) {
	s := t.openPeople()
	text, blob := []byte("some text"), []byte("some blob")
	given := entity("p", "r", prop("T", edm.StringBytes(text)), prop("B", edm.Binary(blob)), prop("Null", edm.Value{}), prop("N", edm.Int32(1)))
	given.Timestamp = 42
	pristine := func() edm.Entity {
		return entity("p", "r", prop("T", edm.String("some text")), prop("B", edm.Binary([]byte("some blob"))), prop("Null", edm.Value{}),
			prop("N", edm.Int32(1)))
	}
	want := entity("p", "r", prop("T", edm.String("some text")), prop("B", edm.Binary([]byte("some blob"))), prop("N", edm.Int32(1)))
	sorted := edm.Properties{want.Properties[1], want.Properties[2], want.Properties[0]}
	for _, kind := range []store.OpKind{store.OpInsert, store.OpInsertOrMerge, store.OpInsertOrReplace, store.OpMerge, store.OpReplace} {
		ops := []store.Op{{Kind: kind, Entity: given, IfMatch: store.Any}}
		want.Timestamp = t.apply(s, ops...)[0].Timestamp
		unchanged := pristine()
		unchanged.Timestamp = 42
		if !sameEntity(given, unchanged) || !sameEntity(ops[0].Entity, unchanged) || ops[0].Kind != kind {
			t.Fatalf("%v: the caller's entity became %s", kind, show(given))
		}
		copy(text, "overwrite")
		copy(blob, "overwrite")
		given.Properties[3] = prop("X", edm.Int32(9))
		ops[0] = store.Op{}
		if kind != store.OpInsert {
			want.Properties = sorted
		}
		t.wantEntity(kind.String()+", after the caller reused its memory", s, want)
		copy(text, "some text")
		copy(blob, "some blob")
		given.Properties[3] = prop("N", edm.Int32(1))
	}
	got, err := s.Get(t.ctx, people, want.Key)
	t.noErr("Get", err)
	for i := range got.Properties {
		b := got.Properties[i].Value.Bytes()
		for j := range b {
			b[j] = '!'
		}
		got.Properties[i].Name = "gone"
	}
	t.wantEntity("after the caller changed what Get returned", s, want)
}

func testTimestamps(t *tester) {
	s := t.openPeople()
	last := edm.Ticks(0)
	lastOf := map[edm.Key]edm.Ticks{}
	check := func(what string, ops ...store.Op) {
		t.Helper()
		for i, r := range t.apply(s, ops...) {
			if ops[i].Kind == store.OpDelete {
				if r != (store.Result{}) {
					t.Errorf("%s: a deletion results in %v", what, r)
				}
				continue
			}
			if !r.Timestamp.Valid() || r.ETag != r.Timestamp.ETag() {
				t.Errorf("%s: Timestamp %d with ETag %q", what, r.Timestamp, r.ETag)
			}
			k := ops[i].Entity.Key
			if r.Timestamp <= lastOf[k] {
				t.Errorf("%s: Timestamp %d of %q after %d", what, r.Timestamp, k, lastOf[k])
			}
			if t.backend.RisingTimestamps && (r.Timestamp < last || i == 0 && r.Timestamp == last) {
				t.Errorf("%s: Timestamp %d of op %d after %d", what, r.Timestamp, i, last)
			}
			last, lastOf[k] = r.Timestamp, r.Timestamp
			e, err := s.Get(t.ctx, people, ops[i].Entity.Key)
			if err != nil || e.Timestamp != r.Timestamp {
				t.Errorf("%s: Get shows Timestamp %d, %v, the result is %d", what, e.Timestamp, err, r.Timestamp)
			}
		}
	}
	e := number("p", "r", 1)
	e.Timestamp = edm.MaxTicks // ignored
	for range 3 {
		check("insert", store.Insert(e))
		check("insert or merge", store.InsertOrMerge(e))
		check("insert or replace", store.InsertOrReplace(e))
		check("merge", store.Merge(e, store.Any))
		check("merge of nothing", store.Merge(entity("p", "r"), store.Any))
		check("replace", store.Replace(e, store.Any))
		check("batch", store.Insert(number("p", "1", 1)), store.Delete(e.Key, store.Any), store.InsertOrMerge(number("p", "0", 2)))
		check("deletions", store.Delete(key("p", "1"), store.Any), store.Delete(key("p", "0"), store.Any))
		check("another partition", store.InsertOrReplace(number("a", "r", 1)))
	}
}

func testConditions(t *tester) {
	s := t.openPeople()
	for _, kind := range []store.OpKind{store.OpMerge, store.OpReplace, store.OpDelete} {
		for _, c := range []struct {
			name    string
			ifMatch func(current, old edm.ETag) edm.ETag
			missing bool
			want    error
		}{
			{name: "Any", ifMatch: func(_, _ edm.ETag) edm.ETag { return store.Any }},
			{name: "its own", ifMatch: func(e, _ edm.ETag) edm.ETag { return e }},
			{name: "an old one", ifMatch: func(_, e edm.ETag) edm.ETag { return e }, want: store.ErrPrecondition},
			{name: "none", ifMatch: func(_, _ edm.ETag) edm.ETag { return "" }, want: store.ErrPrecondition},
			{name: "with a space", ifMatch: func(e, _ edm.ETag) edm.ETag { return e + " " }, want: store.ErrPrecondition},
			{name: "in lower case", ifMatch: func(e, _ edm.ETag) edm.ETag { return edm.ETag(strings.ToLower(string(e))) }, want: store.ErrPrecondition},
			{name: "another syntax", ifMatch: func(_, _ edm.ETag) edm.ETag { return `W/"*"` }, want: store.ErrPrecondition},
			{name: "Any, missing", ifMatch: func(_, _ edm.ETag) edm.ETag { return store.Any }, missing: true, want: store.ErrEntityNotFound},
			{name: "an old one, missing", ifMatch: func(_, e edm.ETag) edm.ETag { return e }, missing: true, want: store.ErrEntityNotFound},
		} {
			what := kind.String() + " with " + c.name
			old := t.apply(s, store.InsertOrReplace(number("p", "r", 1)))[0]
			now := t.insertAgain(s, number("p", "r", 2))
			if c.missing {
				t.apply(s, store.Delete(now.Key, store.Any))
			}
			op := store.Op{Kind: kind, Entity: number("p", "r", 3), IfMatch: c.ifMatch(now.Timestamp.ETag(), old.ETag)}
			results, err := s.Apply(t.ctx, people, op)
			if c.want != nil {
				t.wantFailure(what, err, failure{Executed: true, Err: c.want})
				if !c.missing {
					t.wantEntity(what, s, now)
				}
				continue
			}
			t.wantErr(what, err, nil)
			if kind == store.OpDelete {
				t.wantGone(what, s, now.Key)
			} else if len(results) == 1 {
				want := number("p", "r", 3)
				want.Timestamp = results[0].Timestamp
				t.wantEntity(what, s, want)
			}
		}
	}
	now := t.insertAgain(s, number("p", "r", 1))
	_, err := s.Apply(t.ctx, people, store.Insert(number("p", "r", 2)))
	t.wantFailure("insert of what exists", err, failure{Executed: true, Err: store.ErrEntityExists})
	t.wantEntity("after a refused insert", s, now)
	for _, kind := range []store.OpKind{store.OpInsertOrMerge, store.OpInsertOrReplace} {
		// These ignore IfMatch.
		t.apply(s, store.Op{Kind: kind, Entity: number("p", "r", 2), IfMatch: "wrong"},
			store.Op{Kind: kind, Entity: number("p", kind.String(), 2), IfMatch: "wrong"})
	}
}

// insertAgain replaces the entity by e and returns e as it must be stored.
func (t *tester) insertAgain(s store.Store, e edm.Entity) edm.Entity {
	t.Helper()
	e.Timestamp = t.apply(s, store.InsertOrReplace(e))[0].Timestamp
	return e
}

func testMerge(t *tester) {
	one, two := edm.Int32(1), edm.String("two")
	for _, c := range []struct {
		name             string
		old, patch, want edm.Properties
	}{
		{"a new property", edm.Properties{prop("B", one)}, edm.Properties{prop("A", two)}, edm.Properties{prop("A", two), prop("B", one)}},
		{
			"a type changes",
			edm.Properties{prop("A", one), prop("B", one), prop("C", one)},
			edm.Properties{prop("Z", one), prop("B", two), prop("Y", one)},
			edm.Properties{prop("A", one), prop("B", two), prop("C", one), prop("Y", one), prop("Z", one)},
		},
		{"case counts", edm.Properties{prop("a", one)}, edm.Properties{prop("A", two)}, edm.Properties{prop("A", two), prop("a", one)}},
		{"nothing", edm.Properties{prop("A", one)}, nil, edm.Properties{prop("A", one)}},
		{"into nothing", nil, edm.Properties{prop("B", one), prop("A", one)}, edm.Properties{prop("A", one), prop("B", one)}},
	} {
		s := t.openPeople()
		for i, kind := range []store.OpKind{store.OpMerge, store.OpInsertOrMerge} {
			k := key("p", fmt.Sprint(i))
			t.apply(s, store.Insert(edm.Entity{Key: k, Properties: c.old}))
			r := t.apply(s, store.Op{Kind: kind, Entity: edm.Entity{Key: k, Properties: c.patch}, IfMatch: store.Any})
			t.wantEntity(kind.String()+": "+c.name, s, edm.Entity{Key: k, Timestamp: r[0].Timestamp, Properties: c.want})
		}
		fresh := t.apply(s, store.InsertOrMerge(edm.Entity{Key: key("p", "new"), Properties: c.patch}))
		t.wantEntity("into no entity: "+c.name, s, edm.Entity{Key: key("p", "new"), Timestamp: fresh[0].Timestamp, Properties: byName(c.patch)})
	}
}

func testReplace(t *tester) {
	s := t.openPeople()
	for _, kind := range []store.OpKind{store.OpReplace, store.OpInsertOrReplace} {
		t.insertAgain(s, entity("p", "r", prop("A", edm.Int32(1)), prop("B", edm.Int32(1))))
		for _, p := range []edm.Properties{{prop("C", edm.Int32(2)), prop("A", edm.String("x"))}, nil, {prop("B", edm.Boolean(false))}} {
			want := edm.Entity{Key: key("p", "r"), Properties: p}
			want.Timestamp = t.apply(s, store.Op{Kind: kind, Entity: want, IfMatch: store.Any})[0].Timestamp
			want.Properties = byName(want.Properties)
			t.wantEntity(kind.String(), s, want)
		}
	}
	want := entity("p", "new", prop("A", edm.Int32(1)))
	want.Timestamp = t.apply(s, store.InsertOrReplace(want))[0].Timestamp
	t.wantEntity("insert or replace of no entity", s, want)
}
