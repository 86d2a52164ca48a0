package contract

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

var tableParts = []part{
	{"CreateTable", testCreateTable},
	{"TableNames", testTableNames},
	{"TableNamesFold", testTableNamesFold},
	{"ListTables", testListTables},
	{"DeleteTable", testDeleteTable},
	{"MissingTable", testMissingTable},
	{"IllegalTableName", testIllegalTableName},
}

var metaParts = []part{
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
	s := t.Open()
	if list := t.Tables(s, "", 0); len(list) != 0 {
		t.Errorf("a fresh store has the tables %v", list)
	}
	t.NoErr("CreateTable", s.CreateTable(t.Ctx, "Orders"))
	for _, name := range []string{"Orders", "orders", "ORDERS"} {
		t.WantErr("CreateTable of "+name, s.CreateTable(t.Ctx, name), store.ErrTableExists)
	}
	t.NoErr("CreateTable", s.CreateTable(t.Ctx, "Orders2"))
	list := t.Tables(s, "", 0)
	if got := tableNames(list); !slices.Equal(got, []string{"Orders", "Orders2"}) {
		t.Fatalf("got the tables %q, want Orders and Orders2", got)
	}
	if !list[0].Created.Valid() || list[0].Created == 0 || list[1].Created < list[0].Created {
		t.Errorf("tables were created at %v, then at %v", list[0].Created, list[1].Created)
	}
	t.insertInto(s, "orders", number("p", "r", 1))
	if again := t.Tables(s, "", 0); !slices.Equal(list, again) {
		t.Errorf("tables change from %v to %v by a write", list, again)
	}
}

func (t *tester) insertInto(s store.Store, table string, e edm.Entity) {
	t.Helper()
	_, err := s.Apply(t.Ctx, table, store.Insert(e))
	t.NoErr("Apply to "+table, err)
}

func testTableNames(t *tester) {
	s := t.Open()
	long := strings.Repeat("x", edm.MaxTableNameLen)
	for _, name := range []string{"abc", "a12", "Tables2", "tabl", long} {
		t.NoErr("CreateTable of "+name, s.CreateTable(t.Ctx, name))
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
		t.WantRule(fmt.Sprintf("CreateTable of %q", name), s.CreateTable(t.Ctx, name), rule)
	}
	if n := len(t.Tables(s, "", 0)); n != 5 {
		t.Errorf("%d tables, want 5: a refused name made one", n)
	}
}

func testTableNamesFold(t *tester) {
	s := t.Open()
	t.NoErr("CreateTable", s.CreateTable(t.Ctx, "MixedCase"))
	const other = "mIXEDcASE"
	e := number("p", "r", 1)
	t.insertInto(s, other, e)
	_, err := s.Get(t.Ctx, "MIXEDCASE", e.Key)
	t.WantErr("Get", err, nil)
	t.WantErr("View", s.View(t.Ctx, other, e.Key, func(edm.Row) error { return nil }), nil)
	if p := t.Drain(s.Query(t.Ctx, other, store.Query{})); len(p.Rows) != 1 || p.Err != nil {
		t.Errorf("Query: got %d rows and %v, want 1", len(p.Rows), p.Err)
	}
	t.WantErr("SetTableMeta", s.SetTableMeta(t.Ctx, other, []byte("m")), nil)
	if meta, err := s.TableMeta(t.Ctx, "mixedcase"); string(meta) != "m" || err != nil {
		t.Errorf("TableMeta: got %q, %v", meta, err)
	}
	if got := tableNames(t.Tables(s, "", 0)); !slices.Equal(got, []string{"MixedCase"}) {
		t.Errorf("got the tables %q, want the spelling of creation", got)
	}
	t.WantErr("DeleteTable", s.DeleteTable(t.Ctx, other), nil)
	t.NoErr("CreateTable", s.CreateTable(t.Ctx, "mixedCASE"))
	if got := tableNames(t.Tables(s, "", 0)); !slices.Equal(got, []string{"mixedCASE"}) {
		t.Errorf("got the tables %q, want the spelling of the second creation", got)
	}
}

func testListTables(t *tester) {
	s := t.Open()
	names := []string{"abc", "ABCD", "abd", "B10", "b2x", "Zoo"}
	for _, i := range []int{3, 0, 5, 1, 4, 2} {
		t.NoErr("CreateTable", s.CreateTable(t.Ctx, names[i]))
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
		if got := tableNames(t.Tables(s, c.from, c.limit)); !slices.Equal(got, c.want) {
			t.Errorf("Tables from %q limit %d: got %q, want %q", c.from, c.limit, got, c.want)
		}
	}
}

func testDeleteTable(t *tester) {
	s := t.OpenPeople()
	t.NoErr("CreateTable", s.CreateTable(t.Ctx, "Other"))
	t.insertInto(s, "Other", number("p", "r", 1))
	t.WantErr("DeleteTable of a missing table", s.DeleteTable(t.Ctx, "Nobody"), store.ErrTableNotFound)
	created := t.Tables(s, "people", 1)[0].Created
	for round := range 3 {
		what := fmt.Sprintf("round %d", round)
		t.WantRows(what, s, store.Query{}, nil)
		if meta, err := s.TableMeta(t.Ctx, people); meta != nil || err != nil {
			t.Errorf("%s: a fresh table has the metadata %q, %v", what, meta, err)
		}
		old := t.Insert(s, number("p", "r", round))
		t.NoErr("SetTableMeta", s.SetTableMeta(t.Ctx, people, []byte("meta")))
		t.NoErr("DeleteTable", s.DeleteTable(t.Ctx, people))
		t.WantErr("second DeleteTable", s.DeleteTable(t.Ctx, people), store.ErrTableNotFound)
		_, err := s.Get(t.Ctx, people, old.Key)
		t.WantErr("Get after DeleteTable", err, store.ErrTableNotFound)
		t.NoErr("CreateTable", s.CreateTable(t.Ctx, people))
		t.WantGone(what, s, old.Key)
		next := t.Tables(s, "people", 1)[0].Created
		if next < created {
			t.Errorf("%s: the table is from %v, its predecessor from %v", what, next, created)
		}
		created = next
		if e := t.Insert(s, number("p", "r", round)); e.Timestamp <= old.Timestamp {
			t.Errorf("%s: Timestamp %d after %d in the table before", what, e.Timestamp, old.Timestamp)
		}
		t.Apply(s, store.Delete(old.Key, store.Any))
	}
	if _, err := s.Get(t.Ctx, "other", key("p", "r")); err != nil {
		t.Errorf("Get from the table that was not deleted: %v", err)
	}
}

// onTable names every method that takes a table, called with table.
func (t *tester) onTable(s store.Store, table string) map[string]error {
	get := func() error { _, err := s.Get(t.Ctx, table, key("p", "r")); return err }
	apply := func(ops ...store.Op) error { _, err := s.Apply(t.Ctx, table, ops...); return err }
	meta := func() error { _, err := s.TableMeta(t.Ctx, table); return err }
	return map[string]error{
		"DeleteTable":  s.DeleteTable(t.Ctx, table),
		"Get":          get(),
		"View":         s.View(t.Ctx, table, key("p", "r"), func(edm.Row) error { return nil }),
		"Query":        t.Drain(s.Query(t.Ctx, table, store.Query{})).Err,
		"Apply":        apply(store.Delete(key("p", "r"), store.Any)),
		"TableMeta":    meta(),
		"SetTableMeta": s.SetTableMeta(t.Ctx, table, []byte("m")),
	}
}

func testMissingTable(t *tester) {
	s := t.OpenPeople()
	for _, table := range []string{"peopl", "people2", "Nobody"} {
		for method, err := range t.onTable(s, table) {
			t.WantErr(method+" of "+table, err, store.ErrTableNotFound)
			if method == "Apply" {
				t.WantFailure(method, err, failure{Index: 0, Err: store.ErrTableNotFound})
			}
		}
	}
	if p := t.Drain(s.Query(t.Ctx, "Nobody", store.Query{Limit: 1})); p.Resume != nil || len(p.Rows) != 0 {
		t.Errorf("Query of a missing table: got %d rows and resume %q", len(p.Rows), p.Resume)
	}
}

func testIllegalTableName(t *tester) {
	s := t.OpenPeople()
	for table, rule := range map[string]edm.Rule{"a-b": edm.RuleTableName, "ab": edm.RuleTableNameLength, "tables": edm.RuleTableName} {
		for method, err := range t.onTable(s, table) {
			if method == "Apply" {
				t.WantFailure(method, err, failure{Rule: rule})
				continue
			}
			t.WantRule(method+" of "+table, err, rule)
		}
	}
}

func testTableMeta(t *tester) {
	s := t.OpenPeople()
	t.NoErr("CreateTable", s.CreateTable(t.Ctx, "Other"))
	get := func(ctx context.Context) ([]byte, error) { return s.TableMeta(ctx, people) }
	set := func(ctx context.Context, meta []byte) error { return s.SetTableMeta(ctx, people, meta) }
	t.metadata(get, set)
	t.WantErr("too much for a missing table", s.SetTableMeta(t.Ctx, "Nobody", make([]byte, store.MaxMetaBytes+1)), store.ErrTooLarge)
	t.NoErr("SetTableMeta", set(t.Ctx, []byte("of people")))
	if meta, err := s.TableMeta(t.Ctx, "Other"); meta != nil || err != nil {
		t.Errorf("metadata of another table: got %q, %v, want nil", meta, err)
	}
	if meta, err := s.AccountMeta(t.Ctx); meta != nil || err != nil {
		t.Errorf("metadata of the account: got %q, %v, want nil", meta, err)
	}
	t.WantRows("metadata among the entities", s, store.Query{}, nil)
}

func testAccountMeta(t *tester) {
	s := t.OpenPeople()
	t.metadata(s.AccountMeta, s.SetAccountMeta)
	t.NoErr("SetAccountMeta", s.SetAccountMeta(t.Ctx, []byte("of the account")))
	if meta, err := s.TableMeta(t.Ctx, people); meta != nil || err != nil {
		t.Errorf("metadata of a table: got %q, %v, want nil", meta, err)
	}
	t.NoErr("DeleteTable", s.DeleteTable(t.Ctx, people))
	if meta, err := s.AccountMeta(t.Ctx); string(meta) != "of the account" || err != nil {
		t.Errorf("after DeleteTable: got %q, %v", meta, err)
	}
}

// metadata holds one place for metadata against the contract.
func (t *tester) metadata(get func(context.Context) ([]byte, error), set func(context.Context, []byte) error) {
	t.Helper()
	want := func(what string, meta []byte) {
		t.Helper()
		got, err := get(t.Ctx)
		if err != nil || !bytes.Equal(got, meta) || (got == nil) != (meta == nil) {
			t.Errorf("%s: got %d bytes %.20q (nil %v), %v; want %d bytes %.20q", what, len(got), got, got == nil, err, len(meta), meta)
		}
		for i := range got {
			got[i]++ // the slice is the caller's
		}
	}
	want("before anything is set", nil)
	given := []byte("first\x00\xff")
	t.NoErr("set", set(t.Ctx, given))
	given[0] = 'X'
	want("first", []byte("first\x00\xff"))
	want("again, after the caller changed its copy", []byte("first\x00\xff"))
	most := bytes.Repeat([]byte("x"), store.MaxMetaBytes)
	t.NoErr("set of all that is allowed", set(t.Ctx, most))
	want("the most", most)
	err := set(t.Ctx, append(most, 'x'))
	t.WantRule("set of a byte more", err, edm.RuleMetaSize)
	t.WantErr("set of a byte more", err, store.ErrTooLarge)
	want("after a refusal", most)
	t.NoErr("clear", set(t.Ctx, []byte{}))
	want("cleared", nil)
	t.NoErr("set", set(t.Ctx, []byte("x")))
	t.NoErr("clear by nil", set(t.Ctx, nil))
	want("cleared by nil", nil)
}
