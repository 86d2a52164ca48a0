package storetest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

var tableTests = []subtest{
	{"CreateTable", testCreateTable},
	{"TableNames", testTableNames},
	{"TableNamesFold", testTableNamesFold},
	{"ListTables", testListTables},
	{"DeleteTable", testDeleteTable},
	{"MissingTable", testMissingTable},
	{"IllegalTableName", testIllegalTableName},
}

var metaTests = []subtest{
	{"TableMeta", testTableMeta},
	{"AccountMeta", testAccountMeta},
}

func tableNames(list []store.TableInfo) []string {
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
	}
	return names
}

func testCreateTable(t *tester) {
	s := t.open()
	if list := t.tables(s, "", 0); len(list) != 0 {
		t.Errorf("a new store has the tables %v", list)
	}
	t.noErr("CreateTable", s.CreateTable(t.ctx, "Orders"))
	for _, name := range []string{"Orders", "orders", "ORDERS"} {
		t.wantErr("CreateTable of "+name, s.CreateTable(t.ctx, name), store.ErrTableExists)
	}
	t.noErr("CreateTable", s.CreateTable(t.ctx, "Orders2"))
	list := t.tables(s, "", 0)
	if got := tableNames(list); !slices.Equal(got, []string{"Orders", "Orders2"}) {
		t.Fatalf("got the tables %q, want Orders and Orders2", got)
	}
	if t.backend.Protocol {
		t.Log("the Table protocol has no TableInfo.Created")
	} else if !list[0].Created.Valid() || list[0].Created == 0 || list[1].Created < list[0].Created {
		t.Errorf("tables were created at %v, then at %v", list[0].Created, list[1].Created)
	}
	t.insertInto(s, "orders", number("p", "r", 1))
	if again := t.tables(s, "", 0); !slices.Equal(list, again) {
		t.Errorf("tables change from %v to %v by a write", list, again)
	}
}

func (t *tester) insertInto(s store.Store, table string, e edm.Entity) {
	t.Helper()
	_, err := s.Apply(t.ctx, table, store.Insert(e))
	t.noErr("Apply to "+table, err)
}

func testTableNames(t *tester) {
	s := t.open()
	long := strings.Repeat("x", 63)
	for _, name := range []string{"abc", "a12", "Tables2", "tabl", long} {
		t.noErr("CreateTable of "+name, s.CreateTable(t.ctx, name))
	}
	for name, rule := range map[string]edm.Rule{
		"":                   edm.RuleTableNameLength,
		"ab":                 edm.RuleTableNameLength,
		long + "x":           edm.RuleTableNameLength,
		"1abc":               edm.RuleTableName,
		"my_table":           edm.RuleTableName,
		"my-table":           edm.RuleTableName,
		"tables":             edm.RuleTableName,
		"TABLES":             edm.RuleTableName,
		"\u00c4rger":         edm.RuleTableName,
		"\u8868\u8868\u8868": edm.RuleTableName,
		"abc\x00":            edm.RuleTableName,
		"abc\xff":            edm.RuleTableName,
	} {
		t.wantRule(fmt.Sprintf("CreateTable of %q", name), s.CreateTable(t.ctx, name), rule)
	}
	if n := len(t.tables(s, "", 0)); n != 5 {
		t.Errorf("%d tables, want 5: CreateTable with an illegal name created one", n)
	}
}

func testTableNamesFold(t *tester) {
	s := t.open()
	t.noErr("CreateTable", s.CreateTable(t.ctx, "MixedCase"))
	const other = "mIXEDcASE"
	e := number("p", "r", 1)
	t.insertInto(s, other, e)
	_, err := s.Get(t.ctx, "MIXEDCASE", e.Key)
	t.wantErr("Get", err, nil)
	t.wantErr("View", s.View(t.ctx, other, e.Key, func(edm.Row) error { return nil }), nil)
	if p := t.drain(s.Query(t.ctx, other, store.Query{})); len(p.Rows) != 1 || p.Err != nil {
		t.Errorf("Query: got %d rows and %v, want 1", len(p.Rows), p.Err)
	}
	if !t.backend.Protocol {
		t.wantErr("SetTableMeta", s.SetTableMeta(t.ctx, other, []byte("m")), nil)
		if meta, err := s.TableMeta(t.ctx, "mixedcase"); string(meta) != "m" || err != nil {
			t.Errorf("TableMeta: got %q, %v", meta, err)
		}
	}
	if got := tableNames(t.tables(s, "", 0)); !slices.Equal(got, []string{"MixedCase"}) {
		t.Errorf("got the tables %q, want the spelling of creation", got)
	}
	t.wantErr("DeleteTable", s.DeleteTable(t.ctx, other), nil)
	t.noErr("CreateTable", s.CreateTable(t.ctx, "mixedCASE"))
	if got := tableNames(t.tables(s, "", 0)); !slices.Equal(got, []string{"mixedCASE"}) {
		t.Errorf("got the tables %q, want the spelling of the second creation", got)
	}
}

func testListTables(t *tester) {
	s := t.open()
	names := []string{"abc", "ABCD", "abd", "B10", "b2x", "Zoo"}
	for _, i := range []int{3, 0, 5, 1, 4, 2} {
		t.noErr("CreateTable", s.CreateTable(t.ctx, names[i]))
	}
	for _, c := range []struct {
		from  string
		limit int
		want  []string
	}{
		{"", 0, names},
		{"", 1, names[:1]},
		{"", 6, names},
		{"", 7, names},
		{"abc", 0, names},
		{"abcd", 2, names[1:3]},
		{"ABCD", 2, names[1:3]},
		{"abc\x01", 0, names[1:]},
		{"abce", 1, names[2:3]},
		{"b", 0, names[3:]},
		{"B2", 1, names[4:5]},
		{"zoo", 0, names[5:]},
		{"zooo", 0, nil},
		{"\u00e9", 3, nil},
	} {
		if got := tableNames(t.tables(s, c.from, c.limit)); !slices.Equal(got, c.want) {
			t.Errorf("Tables from %q limit %d: got %q, want %q", c.from, c.limit, got, c.want)
		}
	}
}

func testDeleteTable(t *tester) {
	s := t.openPeople()
	t.noErr("CreateTable", s.CreateTable(t.ctx, "Other"))
	t.insertInto(s, "Other", number("p", "r", 1))
	t.wantErr("DeleteTable of a missing table", s.DeleteTable(t.ctx, "Nobody"), store.ErrTableNotFound)
	created := t.created(s)
	for round := range 3 {
		what := fmt.Sprintf("round %d", round)
		t.wantRows(what, s, store.Query{}, nil)
		if meta, err := s.TableMeta(t.ctx, people); !t.backend.Protocol && (meta != nil || err != nil) {
			t.Errorf("%s: a new table has the metadata %q, %v", what, meta, err)
		}
		old := t.insert(s, number("p", "r", round))
		if !t.backend.Protocol {
			t.noErr("SetTableMeta", s.SetTableMeta(t.ctx, people, []byte("meta")))
		}
		t.noErr("DeleteTable", s.DeleteTable(t.ctx, people))
		t.wantErr("second DeleteTable", s.DeleteTable(t.ctx, people), store.ErrTableNotFound)
		_, err := s.Get(t.ctx, people, old.Key)
		t.wantErr("Get after DeleteTable", err, store.ErrTableNotFound)
		t.noErr("CreateTable", s.CreateTable(t.ctx, people))
		t.wantGone(what, s, old.Key)
		next := t.created(s)
		if next < created {
			t.Errorf("%s: the table is from %v, its predecessor from %v", what, next, created)
		}
		created = next
		if e := t.insert(s, number("p", "r", round)); e.Timestamp <= old.Timestamp {
			t.Errorf("%s: Timestamp %d after %d in the table before", what, e.Timestamp, old.Timestamp)
		}
		t.apply(s, store.Delete(old.Key, store.Any))
	}
	if _, err := s.Get(t.ctx, "other", key("p", "r")); err != nil {
		t.Errorf("Get from the table that was not deleted: %v", err)
	}
}

// created returns when the table people was created.
func (t *tester) created(s store.Store) edm.Ticks {
	t.Helper()
	list := t.tables(s, "people", 1)
	if got := tableNames(list); len(got) != 1 || edm.FoldTableName(got[0]) != "people" {
		t.Fatalf(`Tables from "people" limit 1: got %q, want the table of this name`, got)
	}
	return list[0].Created
}

// onTable calls every method that takes a table and returns the errors by method.
func (t *tester) onTable(s store.Store, table string) map[string]error {
	get := func() error { _, err := s.Get(t.ctx, table, key("p", "r")); return err }
	apply := func(ops ...store.Op) error { _, err := s.Apply(t.ctx, table, ops...); return err }
	meta := func() error { _, err := s.TableMeta(t.ctx, table); return err }
	errs := map[string]error{
		"DeleteTable": s.DeleteTable(t.ctx, table),
		"Get":         get(),
		"View":        s.View(t.ctx, table, key("p", "r"), func(edm.Row) error { return nil }),
		"Query":       t.drain(s.Query(t.ctx, table, store.Query{})).Err,
		"Apply":       apply(store.Delete(key("p", "r"), store.Any)),
	}
	if !t.backend.Protocol {
		errs["TableMeta"], errs["SetTableMeta"] = meta(), s.SetTableMeta(t.ctx, table, []byte("m"))
	}
	return errs
}

func testMissingTable(t *tester) {
	s := t.openPeople()
	for _, table := range []string{"peopl", "people2", "Nobody"} {
		for method, err := range t.onTable(s, table) {
			t.wantErr(method+" of "+table, err, store.ErrTableNotFound)
			if method == "Apply" {
				t.wantFailure(method, err, failure{Index: 0, Err: store.ErrTableNotFound})
			}
		}
	}
	if p := t.drain(s.Query(t.ctx, "Nobody", store.Query{Limit: 1})); p.Resume != nil || len(p.Rows) != 0 {
		t.Errorf("Query of a missing table: got %d rows and resume %q", len(p.Rows), p.Resume)
	}
}

func testIllegalTableName(t *tester) {
	s := t.openPeople()
	for table, rule := range map[string]edm.Rule{"a-b": edm.RuleTableName, "ab": edm.RuleTableNameLength, "tables": edm.RuleTableName} {
		for method, err := range t.onTable(s, table) {
			if method == "Apply" {
				t.wantFailure(method, err, failure{Rule: rule})
				continue
			}
			t.wantRule(method+" of "+table, err, rule)
		}
	}
}

func testTableMeta(t *tester) {
	t.needBeyondProtocol()
	s := t.openPeople()
	t.noErr("CreateTable", s.CreateTable(t.ctx, "Other"))
	get := func(ctx context.Context) ([]byte, error) { return s.TableMeta(ctx, people) }
	set := func(ctx context.Context, meta []byte) error { return s.SetTableMeta(ctx, people, meta) }
	t.metadata(get, set)
	t.wantErr("too much for a missing table", s.SetTableMeta(t.ctx, "Nobody", make([]byte, maxMetaBytes+1)), store.ErrTooLarge)
	t.noErr("SetTableMeta", set(t.ctx, []byte("of people")))
	if meta, err := s.TableMeta(t.ctx, "Other"); meta != nil || err != nil {
		t.Errorf("metadata of another table: got %q, %v, want nil", meta, err)
	}
	if meta, err := s.AccountMeta(t.ctx); meta != nil || err != nil {
		t.Errorf("metadata of the account: got %q, %v, want nil", meta, err)
	}
	t.wantRows("metadata among the entities", s, store.Query{}, nil)
}

func testAccountMeta(t *tester) {
	t.needBeyondProtocol()
	s := t.openPeople()
	t.metadata(s.AccountMeta, s.SetAccountMeta)
	t.noErr("SetAccountMeta", s.SetAccountMeta(t.ctx, []byte("of the account")))
	if meta, err := s.TableMeta(t.ctx, people); meta != nil || err != nil {
		t.Errorf("metadata of a table: got %q, %v, want nil", meta, err)
	}
	t.noErr("DeleteTable", s.DeleteTable(t.ctx, people))
	if meta, err := s.AccountMeta(t.ctx); string(meta) != "of the account" || err != nil {
		t.Errorf("after DeleteTable: got %q, %v", meta, err)
	}
}

// metadata tests the metadata of a table or of the account.
func (t *tester) metadata(get func(context.Context) ([]byte, error), set func(context.Context, []byte) error) {
	t.Helper()
	want := func(what string, meta []byte) {
		t.Helper()
		got, err := get(t.ctx)
		if err != nil || !bytes.Equal(got, meta) || (got == nil) != (meta == nil) {
			t.Errorf("%s: got %d bytes %.20q (nil %v), %v; want %d bytes %.20q", what, len(got), got, got == nil, err, len(meta), meta)
		}
		for i := range got {
			got[i]++ // the caller owns the slice
		}
	}
	want("before anything is set", nil)
	given := []byte("first\x00\xff")
	t.noErr("set", set(t.ctx, given))
	given[0] = 'X'
	want("first", []byte("first\x00\xff"))
	want("again, after the caller changed its copy", []byte("first\x00\xff"))
	most := bytes.Repeat([]byte("x"), maxMetaBytes)
	t.noErr("set at the limit", set(t.ctx, most))
	want("the most", most)
	err := set(t.ctx, append(most, 'x'))
	t.wantRule("set above the limit", err, edm.RuleMetaSize)
	t.wantErr("set above the limit", err, store.ErrTooLarge)
	want("after a refusal", most)
	t.noErr("clear", set(t.ctx, []byte{}))
	want("cleared", nil)
	t.noErr("set", set(t.ctx, []byte("x")))
	t.noErr("clear by nil", set(t.ctx, nil))
	want("cleared by nil", nil)
}
