package edm_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/race"
)

func TestTableName(t *testing.T) {
	for _, c := range []struct {
		name, input string
		want        edm.Rule
	}{
		{"shortest", "abc", 0},
		{"longest", strings.Repeat("a", 63), 0},
		{"digits after a letter", "A19", 0},
		{"letters at the ends of the alphabet", "AZaz09", 0},
		{"contains tables", "mytables", 0},
		{"empty", "", edm.RuleTableNameLength},
		{"one character", "a", edm.RuleTableNameLength},
		{"too short", "ab", edm.RuleTableNameLength},
		{"too long", strings.Repeat("a", 64), edm.RuleTableNameLength},
		{"too short before bad characters", "$a", edm.RuleTableNameLength},
		{"too long before bad characters", strings.Repeat("_", 64), edm.RuleTableNameLength},
		{"reserved", "tables", edm.RuleTableName},
		{"reserved in any case", "TaBLes", edm.RuleTableName},
		{"digit first", "1abc", edm.RuleTableName},
		{"underscore", "my_table", edm.RuleTableName},
		{"dash", "my-table", edm.RuleTableName},
		{"service's own", "$MetricsHourPrimaryTransactionsTable", edm.RuleTableName},
		{"beyond ASCII", "\u554a\u9f44\u4e02\u72db\u72dc", edm.RuleTableName},
		{"63 characters beyond ASCII", strings.Repeat("\u554a", 63), edm.RuleTableName},
		{"Kelvin sign folds to no letter", "\u212aabc", edm.RuleTableName},
		{"before A", "a@@", edm.RuleTableName},
		{"after Z", "a[[", edm.RuleTableName},
		{"before a", "a``", edm.RuleTableName},
		{"after z", "a{{", edm.RuleTableName},
		{"before 0", "a//", edm.RuleTableName},
		{"after 9", "a::", edm.RuleTableName},
		{"NUL", "abc\x00", edm.RuleTableName},
		{"not UTF-8", "abc\xff", edm.RuleTableName},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantRule(t, c.input, edm.CheckTableName(c.input), c.want)
			if got := oracleTableName(c.input); got != c.want {
				t.Errorf("oracle(%q) = %v, want %v", c.input, got, c.want)
			}
		})
	}
}

func TestFoldTableName(t *testing.T) {
	for _, c := range []struct{ name, input, want string }{
		{"lower stays", "orders09", "orders09"},
		{"upper", "ORDERS", "orders"},
		{"mixed", "ordersOfZAz", "ordersofzaz"},
		{"neighbours of letters", "@[`{", "@[`{"},
		{"beyond ASCII stays", "A\u00c4\u212a", "a\u00c4\u212a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := edm.FoldTableName(c.input); got != c.want {
				t.Errorf("FoldTableName(%q) = %q, want %q", c.input, got, c.want)
			}
		})
	}
	if n := testing.AllocsPerRun(10, func() { edm.FoldTableName("orders") }); n != 0 {
		t.Errorf("folding a folded name allocates %v times, want 0", n)
	}
}

func TestKey(t *testing.T) {
	const pair = "\U0001F600"
	for _, c := range []struct {
		name, input string
		want        edm.Rule
	}{
		{"empty", "", 0},
		{"spaces", "  a  ", 0},
		{"punctuation", `'"%,+&=;()@*$!-_.~:<>[]{}|^` + "`", 0},
		{"percent", "100%25", 0},
		{"space is the first", " ", 0},
		{"tilde is the last of ASCII", "~", 0},
		{"first after the controls", "\u00a0", 0},
		{"CJK", "\u6771\u4eac", 0},
		{"U+D7FF", "\ud7ff", 0},
		{"U+E000", "\ue000", 0},
		{"U+FFFE and U+FFFF", "\ufffe\uffff", 0},
		{"replacement character", "\ufffd", 0},
		{"last character of all", "\U0010ffff", 0},
		{"1024 ASCII", strings.Repeat("k", 1024), 0},
		{"1024 of three bytes", strings.Repeat("\u6771", 1024), 0},
		{"512 pairs", strings.Repeat(pair, 512), 0},
		{"1023 and a pair", strings.Repeat("k", 1023) + pair, edm.RuleKeyLength},
		{"1025 ASCII", strings.Repeat("k", 1025), edm.RuleKeyLength},
		{"1025 of three bytes", strings.Repeat("\u6771", 1025), edm.RuleKeyLength},
		{"513 pairs", strings.Repeat(pair, 513), edm.RuleKeyLength},
		{"slash", "a/b", edm.RuleKey},
		{"backslash", `a\b`, edm.RuleKey},
		{"hash", "a#b", edm.RuleKey},
		{"question mark", "a?b", edm.RuleKey},
		{"slash after text beyond ASCII", "\u6771/", edm.RuleKey},
		{"NUL", "\x00", edm.RuleKey},
		{"U+001F", "\x1f", edm.RuleKey},
		{"U+007F", "\x7f", edm.RuleKey},
		{"U+0080", "\u0080", edm.RuleKey},
		{"U+009F", "\u009f", edm.RuleKey},
		{"length before characters", strings.Repeat("/", 1025), edm.RuleKeyLength},
		{"stray continuation", "\x80", edm.RuleUTF8},
		{"cut short", "a\xe6\x9d", edm.RuleUTF8},
		{"overlong slash", "\xc0\xaf", edm.RuleUTF8},
		{"overlong NUL", "\xc0\x80", edm.RuleUTF8},
		{"overlong of three bytes", "\xe0\x80\xaf", edm.RuleUTF8},
		{"lone surrogate", "\xed\xa0\x80", edm.RuleUTF8},
		{"pair of encoded surrogates", "\xed\xa0\xbd\xed\xb8\x80", edm.RuleUTF8},
		{"beyond U+10FFFF", "\xf4\x90\x80\x80", edm.RuleUTF8},
		{"UTF-8 before length", strings.Repeat("k", 1025) + "\xff", edm.RuleUTF8},
		{"UTF-8 before characters", "/\xff", edm.RuleUTF8},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantRule(t, c.input, edm.CheckKey(edm.Key{Partition: c.input, Row: "r"}), c.want)
			wantRule(t, c.input, edm.CheckKey(edm.Key{Partition: "p", Row: c.input}), c.want)
			if got := oracleKeyPart(c.input); got != c.want {
				t.Errorf("oracle(%.80q) = %v, want %v", c.input, got, c.want)
			}
		})
	}
}

// TestKeyCharacters checks a key of each character.
func TestKeyCharacters(t *testing.T) {
	race.SkipOneGoroutine(t)
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if 0xD800 <= r && r <= 0xDFFF {
			continue
		}
		s := string(r)
		if got, want := brokenRule(t, edm.CheckKey(edm.Key{Row: s})), oracleKeyPart(s); got != want {
			t.Fatalf("CheckKey of %U broke %v, want %v", r, got, want)
		}
	}
}

func TestKeyNamesOffender(t *testing.T) {
	for _, c := range []struct {
		name string
		key  edm.Key
		want string
	}{
		{"partition", edm.Key{Partition: "/"}, "PartitionKey"},
		{"row", edm.Key{Row: "/"}, "RowKey"},
		{"partition before row", edm.Key{Partition: "/", Row: "\xff"}, "PartitionKey"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err, ok := edm.CheckKey(c.key).(*edm.Error)
			if !ok || err.Name != c.want {
				t.Errorf("CheckKey(%+v) = %#v, want an offender named %s", c.key, err, c.want)
			}
		})
	}
}

func TestPropertyName(t *testing.T) {
	for _, c := range []struct {
		name, input string
		want        edm.Rule
	}{
		{"letter", "a", 0},
		{"underscore", "_", 0},
		{"letters, digits and underscores", "Az_09", 0},
		{"custom ETag", "ETag", 0},
		{"reserved in another case", "partitionkey", 0},
		{"Lu beyond ASCII", "\u00c4", 0},
		{"Lt", "\u01c5", 0},
		{"Lm", "\u02b0", 0},
		{"Lo", "\ua015", 0},
		{"Lo above U+FFFF", "\U00020000", 0},
		{"Nl", "\u2160", 0},
		{"Nd follows", "a\u0661", 0},
		{"Pc follows", "a\u203f", 0},
		{"Mn follows", "a\u0301", 0},
		{"Mc follows", "a\u0903", 0},
		{"Cf follows", "a\u200d", 0},
		{"255 ASCII", strings.Repeat("n", 255), 0},
		{"255 of three bytes", strings.Repeat("\u6771", 255), 0},
		{"127 pairs and one", strings.Repeat("\U00020000", 127) + "n", 0},
		{"256 ASCII", strings.Repeat("n", 256), edm.RulePropertyNameLength},
		{"128 pairs", strings.Repeat("\U00020000", 128), edm.RulePropertyNameLength},
		{"length before characters", strings.Repeat("-", 256), edm.RulePropertyNameLength},
		{"empty", "", edm.RulePropertyName},
		{"PartitionKey", "PartitionKey", edm.RulePropertyName},
		{"RowKey", "RowKey", edm.RulePropertyName},
		{"Timestamp", "Timestamp", edm.RulePropertyName},
		{"digits", "123", edm.RulePropertyName},
		{"dash", "a-b", edm.RulePropertyName},
		{"point", "odata.etag", edm.RulePropertyName},
		{"at sign", "a@odata", edm.RulePropertyName},
		{"space", "a b", edm.RulePropertyName},
		{"control character", "a\tb", edm.RulePropertyName},
		{"U+0085", "a\u0085", edm.RulePropertyName},
		{"private use", "a\ue000", edm.RulePropertyName},
		{"unassigned", "a\uffff", edm.RulePropertyName},
		{"symbol", "a\u20ac", edm.RulePropertyName},
		{"Nd first", "\u0661a", edm.RulePropertyName},
		{"Pc first", "\u203fa", edm.RulePropertyName},
		{"Mn first", "\u0301a", edm.RulePropertyName},
		{"Mc first", "\u0903a", edm.RulePropertyName},
		{"Cf first", "\u200da", edm.RulePropertyName},
		{"not UTF-8", "a\xff", edm.RuleUTF8},
		{"UTF-8 before length", strings.Repeat("n", 256) + "\xff", edm.RuleUTF8},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantRule(t, c.input, edm.CheckPropertyName(c.input), c.want)
			if got := oraclePropertyName(c.input); got != c.want {
				t.Errorf("oracle(%.80q) = %v, want %v", c.input, got, c.want)
			}
		})
	}
}

// TestPropertyNameCharacters checks a name with each character, first and later. It
// skips most characters of the empty and private planes.
func TestPropertyNameCharacters(t *testing.T) {
	race.SkipOneGoroutine(t)
	for r := rune(0); r <= unicode.MaxRune; r++ {
		switch {
		case 0xD800 <= r && r <= 0xDFFF:
			continue
		case 0x40000 <= r && r <= 0xDFFFF, 0xF0000 <= r:
			r = min(r+250, unicode.MaxRune)
		}
		for _, s := range []string{string(r), "a" + string(r)} {
			if got, want := brokenRule(t, edm.CheckPropertyName(s)), oraclePropertyName(s); got != want {
				t.Fatalf("CheckPropertyName(%q) broke %v, want %v", s, got, want)
			}
		}
	}
}

// TestChecksDoNotAllocate checks that valid input costs no allocation.
func TestChecksDoNotAllocate(t *testing.T) {
	e := wideEntity(edm.MaxProperties)
	mixed := edm.Key{Partition: "K\u00f6ln \U0001F600", Row: strings.Repeat("r", 1024)}
	for name, f := range map[string]func() error{
		"key":              func() error { return edm.CheckKey(e.Key) },
		"key beyond ASCII": func() error { return edm.CheckKey(mixed) },
		"table name":       func() error { return edm.CheckTableName("Orders") },
		"property name":    func() error { return edm.CheckPropertyName("Gr\u00f6\u00dfe") },
		"entity of 252":    func() error { return edm.CheckEntity(&e) },
		"totals":           func() error { return edm.CheckTotals(e.Key, e.Properties) },
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			if n := testing.AllocsPerRun(10, func() { err = f() }); n != 0 || err != nil {
				t.Errorf("%v allocations and error %v, want none", n, err)
			}
		})
	}
}

// wideEntity returns an entity of n properties.
func wideEntity(n int) edm.Entity {
	e := edm.Entity{Key: edm.Key{Partition: "partition", Row: "row"}}
	for i := range n {
		e.Properties = append(e.Properties, edm.Property{Name: fmt.Sprintf("Field%d", i), Value: edm.String("a value of some length")})
	}
	return e
}
