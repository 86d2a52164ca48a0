package e2e

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// typedValue is a value of one Edm type, as sent and as returned.
type typedValue struct {
	name, edm string
	sent      string // JSON
	want      any    // decoded JSON
	annotated bool   // the response has its type
	literal   string // in a filter; empty if it is too long for a URL
}

func text(name, s string) typedValue {
	return typedValue{name, "", quote(s), s, false, "'" + strings.ReplaceAll(s, "'", "''") + "'"}
}

func binary(name string, b []byte) typedValue {
	coded := base64.StdEncoding.EncodeToString(b)
	return typedValue{name, "Edm.Binary", quote(coded), coded, true, fmt.Sprintf("X'%x'", b)}
}

func typed(name, edm, sent string, want any, literal string) typedValue {
	_, isText := want.(string)
	return typedValue{name, edm, sent, want, isText, literal}
}

// withoutLiteral returns v as a value that is too long for a URL.
func (v typedValue) withoutLiteral() typedValue { v.literal = ""; return v }

func allBytes() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

func typedValues() []typedValue {
	const maxTime, minTime = "9999-12-31T23:59:59.9999999Z", "1601-01-01T00:00:00Z"
	return []typedValue{
		text("empty", ""),
		text("blanks", "   "),
		text("quotes", `it's "so"`),
		text("markup", `<a href="x">&amp;</a>`),
		text("url", "100% of /a\\b?c#d&e=f+g"),
		text("controls", "tab\tline\nreturn\r and \u0001\u001f\u007f").withoutLiteral(),
		text("separators", "\u2028 \u2029 \u0085 \ufeff"),
		text("scripts", "grüße 表 שלום"),
		text("above the basic plane", "😀𐍈"),
		text("looks like a date", "2026-01-02T03:04:05Z"),
		text("looks like a number", "12345"),
		text("longest", strings.Repeat("x", 32768)).withoutLiteral(),
		text("longest in pairs", strings.Repeat("😀", 16384)).withoutLiteral(),
		typed("annotated string", "Edm.String", `"s"`, "s", "'s'").unannotated(),
		typed("true", "", "true", true, "true"),
		typed("false", "", "false", false, "false"),
		typed("lenient boolean", "Edm.Boolean", `"False"`, false, "false"),
		typed("zero", "", "0", 0.0, "0"),
		typed("greatest int32", "", "2147483647", 2147483647.0, "2147483647"),
		typed("least int32", "", "-2147483648", -2147483648.0, "-2147483648"),
		typed("lenient int32", "Edm.Int32", `"12345"`, 12345.0, "12345"),
		typed("greatest int64", "Edm.Int64", `"9223372036854775807"`, "9223372036854775807", "9223372036854775807L"),
		typed("least int64", "Edm.Int64", `"-9223372036854775808"`, "-9223372036854775808", "-9223372036854775808L"),
		typed("small int64", "Edm.Int64", `"1"`, "1", "1L"),
		typed("fraction", "", "0.1", 0.1, "0.1"),
		typed("whole double", "Edm.Double", "5", 5.0, "5.0"),
		typed("greatest double", "", "1.7976931348623157e308", 1.7976931348623157e308, "1.7976931348623157e308"),
		typed("least double", "", "5e-324", 5e-324, "5e-324"),
		typed("negative double", "", "-2.2250738585072014e-308", -2.2250738585072014e-308, "-2.2250738585072014e-308"),
		typed("integer beyond int32", "", "2147483648", 2147483648.0, "2147483648.0"),
		typed("great double", "", "9.2233720368547758e21", 9.2233720368547758e21, "9.2233720368547758e21"),
		typed("not a number", "Edm.Double", `"NaN"`, "NaN", ""),
		typed("infinity", "Edm.Double", `"Infinity"`, "Infinity", ""),
		typed("negative infinity", "Edm.Double", `"-Infinity"`, "-Infinity", ""),
		typed("lenient double", "Edm.Double", `"3.14"`, 3.14, "3.14"),
		typed("first time", "Edm.DateTime", quote(minTime), minTime, "datetime'"+minTime+"'"),
		typed("last time", "Edm.DateTime", quote(maxTime), maxTime, "datetime'"+maxTime+"'"),
		typed("one tick", "Edm.DateTime", `"2026-02-28T00:00:00.0000001Z"`, "2026-02-28T00:00:00.0000001Z", "datetime'2026-02-28T00:00:00.0000001Z'"),
		typed("zeros behind the fraction", "Edm.DateTime", `"1973-10-04T00:00:00.5000000Z"`, "1973-10-04T00:00:00.5Z", "datetime'1973-10-04T00:00:00.5Z'"),
		typed("zero fraction", "Edm.DateTime", `"1973-10-04T00:00:00.000000Z"`, "1973-10-04T00:00:00Z", "datetime'1973-10-04T00:00:00Z'"),
		typed("guid", "Edm.Guid", `"A455C695-DF98-5678-AAAA-81D3367E5A34"`, "a455c695-df98-5678-aaaa-81d3367e5a34", "guid'A455c695-df98-5678-aaaa-81d3367e5a34'"),
		typed("zero guid", "Edm.Guid", `"00000000-0000-0000-0000-000000000000"`, "00000000-0000-0000-0000-000000000000",
			"guid'00000000-0000-0000-0000-000000000000'"),
		binary("no bytes", nil),
		binary("all bytes", allBytes()),
		binary("longest binary", make([]byte, 65536)).withoutLiteral(),
	}
}

// unannotated returns v as a value whose type is not in the response.
func (v typedValue) unannotated() typedValue { v.annotated = false; return v }

// TestTypes writes each value by insert and by upsert, reads it at each level of metadata, and
// finds it by a filter.
func TestTypes(t *testing.T) {
	_, client := newTable(t)
	for _, v := range typedValues() {
		t.Run(v.name, func(t *testing.T) {
			sent := entity("p", v.name, property{"V", v.edm, v.sent})
			must(client.AddEntity(t.Context(), sent, nil))(t)
			checkLevels(t, client, v)
			for _, mode := range []aztables.UpdateMode{aztables.UpdateModeMerge, aztables.UpdateModeReplace} {
				must(client.UpsertEntity(t.Context(), sent, &aztables.UpsertEntityOptions{UpdateMode: mode}))(t)
				checkLevels(t, client, v)
			}
			if v.literal != "" {
				got := rows(t, client, "V eq "+v.literal)
				if !slices.Contains(got, v.name) {
					t.Errorf("V eq %s: got %q without %q", v.literal, got, v.name)
				}
			}
		})
	}
}

// checkLevels reads an entity at each level of metadata.
func checkLevels(t *testing.T, client *aztables.Client, v typedValue) {
	t.Helper()
	for level, annotations := range map[aztables.MetadataFormat]bool{
		aztables.MetadataFormatNone: false, aztables.MetadataFormatMinimal: true, aztables.MetadataFormatFull: true,
	} {
		resp := must(client.GetEntity(t.Context(), "p", v.name, &aztables.GetEntityOptions{Format: &level}))(t)
		m := members(t, resp.Value)
		if m["V"] != v.want {
			t.Errorf("%s: got %.200v, want %.200v", level, m["V"], v.want)
		}
		got, want := m["V@odata.type"], any(nil)
		if annotations && v.annotated {
			want = v.edm
		}
		if got != want {
			t.Errorf("%s: got type %v, want %v", level, got, want)
		}
		if _, ok := m["odata.etag"]; ok != annotations {
			t.Errorf("%s: it has an odata.etag: %t, want %t", level, ok, annotations)
		}
	}
}

// TestFullMetadata checks the members that only full metadata has.
func TestFullMetadata(t *testing.T) {
	name, client := newTable(t)
	must(client.AddEntity(t.Context(), entity("it's", "1"), nil))(t)
	resp := must(client.GetEntity(t.Context(), "it's", "1", &aztables.GetEntityOptions{Format: pointer(aztables.MetadataFormatFull)}))(t)
	m := members(t, resp.Value)
	relative := name + "(PartitionKey='it''s',RowKey='1')"
	for member, want := range map[string]string{
		"odata.metadata":       shared.url + "/$metadata#" + name + "/@Element",
		"odata.type":           shared.account + "." + name,
		"odata.id":             shared.url + "/" + relative,
		"odata.editLink":       relative,
		"Timestamp@odata.type": "Edm.DateTime",
	} {
		if m[member] != want {
			t.Errorf("%s: got %v, want %s", member, m[member], want)
		}
	}
}

func TestETagAndTimestamp(t *testing.T) {
	_, client := newTable(t)
	added := must(client.AddEntity(t.Context(), entity("p", "r"), nil))(t)
	resp := must(client.GetEntity(t.Context(), "p", "r", nil))(t)
	m := members(t, resp.Value)
	want := `W/"datetime'` + url.QueryEscape(fmt.Sprint(m["Timestamp"])) + `'"`
	for what, got := range map[string]any{"the insert": string(added.ETag), "the get": string(resp.ETag), "odata.etag": m["odata.etag"]} {
		if got != want {
			t.Errorf("the ETag of %s is %v, want %s", what, got, want)
		}
	}
	seen := map[string]bool{want: true}
	for range 50 {
		e := must(client.UpsertEntity(t.Context(), entity("p", "r"), nil))(t).ETag
		if seen[string(e)] {
			t.Fatalf("ETag %s was returned twice", e)
		}
		seen[string(e)] = true
	}
}

// many returns n properties.
func many(n int) []property {
	var all []property
	for i := range n {
		all = append(all, property{fmt.Sprintf("P%d", i), "", "1"})
	}
	return all
}

// TestRefusedEntities writes entities at the limits of the data model and beyond.
func TestRefusedEntities(t *testing.T) {
	_, client := newTable(t)
	one := func(name, edm, json string) []property { return []property{{name, edm, json}} }
	invalid := refusal{400, "InvalidInput"}
	tooLarge := refusal{400, "PropertyValueTooLarge"}
	kilobytes := func(n int) []property { // an entity of n KiB and a little
		var all []property
		for i := range n / 60 {
			all = append(all, property{fmt.Sprintf("B%d", i), "Edm.Binary", quote(base64.StdEncoding.EncodeToString(make([]byte, 60<<10)))})
		}
		return all
	}
	for _, c := range []struct {
		name       string
		properties []property
		want       refusal
	}{
		{"252 properties", many(252), refusal{}},
		{"253 properties", many(253), refusal{400, "TooManyProperties"}},
		{"longest name", one(strings.Repeat("n", 255), "", "1"), refusal{}},
		{"name too long", one(strings.Repeat("n", 256), "", "1"), refusal{400, "PropertyNameTooLong"}},
		{"name of digits", one("123", "", "1"), refusal{400, "PropertyNameInvalid"}},
		{"name with a hyphen", one("a-b", "", "1"), refusal{400, "PropertyNameInvalid"}},
		{"name of another script", one("数量", "", "1"), refusal{}},
		{"name with an underscore", one("_x", "", "1"), refusal{}},
		{"names that differ in case", append(one("a", "", "1"), one("A", "", "2")...), refusal{}},
		{"property named ETag", one("ETag", "", `"mine"`), refusal{}},
		{"string too long", one("V", "", quote(strings.Repeat("x", 32769))), tooLarge},
		{"binary too long", one("V", "Edm.Binary", quote(base64.StdEncoding.EncodeToString(make([]byte, 65537)))), tooLarge},
		{"int32 too great", one("V", "Edm.Int32", "2147483648"), invalid},
		{"int64 too great", one("V", "Edm.Int64", `"9223372036854775808"`), invalid},
		{"not an int64", one("V", "Edm.Int64", `"x"`), invalid},
		{"not a guid", one("V", "Edm.Guid", `"a455c695"`), invalid},
		{"not base64", one("V", "Edm.Binary", `"?"`), invalid},
		{"not a time", one("V", "Edm.DateTime", `"yesterday"`), invalid},
		{"time too early", one("V", "Edm.DateTime", `"1600-12-31T23:59:59Z"`), refusal{400, "OutOfRangeInput"}},
		{"unknown type", one("V", "Edm.Byte", "1"), invalid},
		{"nested object", one("V", "", "{}"), invalid},
		{"array", one("V", "", "[1]"), invalid},
		{"nearly 1 MiB", kilobytes(1020), refusal{}},
		{"more than 1 MiB", kilobytes(1080), refusal{400, "EntityTooLarge"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := client.AddEntity(t.Context(), entity("p", c.name, c.properties...), nil)
			wantRefusal(t, err, c.want)
			_, err = client.UpsertEntity(t.Context(), entity("p", c.name+" upserted", c.properties...), nil)
			wantRefusal(t, err, c.want)
			if err != nil {
				return
			}
			want := map[string]any{}
			for _, p := range c.properties {
				if p.edm == "" {
					want[p.name] = members(t, []byte(`{"v":`+p.json+`}`))["v"]
				}
			}
			got := custom(get(t, client, "p", c.name))
			maps.DeleteFunc(got, func(name string, _ any) bool { return want[name] == nil && strings.HasPrefix(name, "B") })
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

// TestNull checks that null properties are not stored, and that a merge keeps the old value.
func TestNull(t *testing.T) {
	_, client := newTable(t)
	must(client.AddEntity(t.Context(), entity("p", "r", property{"A", "", "1"}, property{"N", "", "null"}, property{"M", "Edm.Int64", "null"}), nil))(t)
	merge := &aztables.UpdateEntityOptions{UpdateMode: aztables.UpdateModeMerge}
	must(client.UpdateEntity(t.Context(), entity("p", "r", property{"A", "", "null"}, property{"B", "", "2"}), merge))(t)
	if got, want := custom(get(t, client, "p", "r")), (map[string]any{"A": 1.0, "B": 2.0}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
