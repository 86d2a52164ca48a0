package edm_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
)

func TestErrorText(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{
			"table name", edm.CheckTableName("my_table"),
			`table "my_table": '_' (U+005F) at offset 2; a table's name is ASCII letters and digits, begins with a letter and is not "tables"`,
		},
		{
			"reserved table name", edm.CheckTableName("Tables"),
			`table "Tables": a reserved name; a table's name is ASCII letters and digits, begins with a letter and is not "tables"`,
		},
		{"table name length", edm.CheckTableName("ab"), `table "ab": 2 characters; a table's name has 3 to 63 characters`},
		{
			"key", edm.CheckKey(edm.Key{Partition: "a/b"}),
			`PartitionKey: '/' (U+002F) at offset 1 of "a/b"; a key has none of / \ # ? and no control characters`,
		},
		{
			"key length", edm.CheckKey(edm.Key{Row: strings.Repeat("k", 2000)}),
			`RowKey: 2000 code units, "` + strings.Repeat("k", 64) + `..."; a key has at most 1024 UTF-16 code units`,
		},
		{
			"property name", edm.CheckPropertyName("a-b"),
			`property "a-b": '-' (U+002D) at offset 1; a property's name is an identifier of letters, digits and _, ` +
				`begins with a letter or _, and is not PartitionKey, RowKey or Timestamp`,
		},
		{
			"property name length", edm.CheckPropertyName(strings.Repeat("n", 300)),
			`property "` + strings.Repeat("n", 64) + `...": 300 code units; a property's name has at most 255 UTF-16 code units`,
		},
		{
			"property count", edm.CheckTotals(edm.Key{}, wideEntity(253).Properties),
			`253 properties; an entity has at most 252 properties beside PartitionKey, RowKey and Timestamp`,
		},
		{
			"property duplicate", edm.CheckProperties(edm.Properties{{Name: "a"}, {Name: "a"}}),
			`property "a": given more than once; an entity has each property once`,
		},
		{
			"String", edm.CheckValues(one("s", edm.String(strings.Repeat("s", 40000))).Properties),
			`property "s": a String of 40000 code units; a String has at most 32768 UTF-16 code units, a Binary at most 65536 bytes`,
		},
		{
			"entity size", edm.CheckTotals(edm.Key{}, one("b", edm.Binary(make([]byte, 1<<20-17))).Properties),
			`an entity of 1048577 bytes; an entity has at most 1048576 bytes, where each character of a text counts two or four`,
		},
		{
			"range", edm.CheckValues(one("d", edm.DateTime(-1)).Properties),
			`property "d": a DateTime of -1 ticks; a value is in the range of its type, a DateTime from 1601-01-01T00:00:00Z to 9999-12-31T23:59:59.9999999Z`,
		},
		{"UTF-8", edm.CheckKey(edm.Key{Row: "a\xff"}), `RowKey: byte 0xFF at offset 1 of "a\xff"; keys, names and strings are valid UTF-8`},
		{"no rule", &edm.Error{Got: "something"}, `something; this breaks a rule`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.err.Error(); got != c.want {
				t.Errorf("message\n got %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestErrorTextIsShort uses inputs of a megabyte, also of characters that grow when
// they are quoted.
func TestErrorTextIsShort(t *testing.T) {
	for name, s := range map[string]string{
		"ASCII":    strings.Repeat("k", 1<<20),
		"not text": strings.Repeat("\xff", 1<<20),
		"control":  strings.Repeat("\x01", 1<<20),
		"pairs":    strings.Repeat("\U0010ffff", 1<<18),
	} {
		t.Run(name, func(t *testing.T) {
			for _, err := range []error{
				edm.CheckKey(edm.Key{Row: s}), edm.CheckPropertyName(s), edm.CheckTableName(s), edm.CheckValues(one(s, edm.String(s)).Properties),
			} {
				if text := err.Error(); len(text) > 800 {
					t.Errorf("message of %d bytes, want at most 800: %.200s", len(text), text)
				}
			}
		})
	}
}

func TestErrorIs(t *testing.T) {
	tooLarge := map[edm.Rule]bool{
		edm.RuleTableNameLength: true, edm.RuleKeyLength: true, edm.RulePropertyNameLength: true, edm.RulePropertyCount: true,
		edm.RuleValueSize: true, edm.RuleEntitySize: true, edm.RuleBatchCount: true, edm.RuleBatchBytes: true, edm.RuleMetaSize: true,
	}
	for r := edm.RuleTableName; r <= edm.RuleMetaSize; r++ {
		t.Run(r.String(), func(t *testing.T) {
			err := &edm.Error{Rule: r, Limit: 63}
			if !errors.Is(err, edm.ErrInvalid) {
				t.Errorf("%v is not ErrInvalid", r)
			}
			if got := errors.Is(err, edm.ErrTooLarge); got != tooLarge[r] {
				t.Errorf("errors.Is(%v, ErrTooLarge) = %v, want %v", r, got, tooLarge[r])
			}
		})
	}
	if err := edm.CheckTableName("ab"); errors.Is(err, edm.ErrTooLarge) {
		t.Errorf("%v is ErrTooLarge, want not", err)
	}
	if err := edm.CheckTableName(strings.Repeat("a", 64)); !errors.Is(err, edm.ErrTooLarge) {
		t.Errorf("%v is not ErrTooLarge", err)
	}
}

func TestRuleString(t *testing.T) {
	seen := map[string]edm.Rule{}
	for r := edm.RuleTableName; r <= edm.RuleMetaSize; r++ {
		name := r.String()
		if name == "" || strings.HasPrefix(name, "rule ") {
			t.Errorf("rule %d has the name %q, want one of its own", r, name)
		}
		if other, ok := seen[name]; ok {
			t.Errorf("rules %d and %d are both called %q", other, r, name)
		}
		seen[name] = r
	}
	for r, want := range map[edm.Rule]string{0: "rule 0", edm.RuleMetaSize + 1: "rule 18"} {
		if got := r.String(); got != want {
			t.Errorf("unknown rule %d has the name %q, want %q", r, got, want)
		}
	}
}
