package filter

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/edm"
)

func TestParseBlank(t *testing.T) {
	for _, text := range []string{"", " ", "\t\r\n\u00a0"} {
		if e, err := Parse(text); e != nil || err != nil {
			t.Errorf("Parse(%q) = %v, %v; want nil, nil", text, e, err)
		}
		if e, err := ParseTables(text); e != nil || err != nil {
			t.Errorf("ParseTables(%q) = %v, %v; want nil, nil", text, e, err)
		}
	}
}

// TestParse compares filters with their canonical text, which shows the precedence of
// operators.
func TestParse(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"a eq 1", "a eq 1"},
		{"  a   eq\t1 \n", "a eq 1"},
		{"a eq'x'", "a eq 'x'"},
		{"1 lt a", "1 lt a"},
		{"a", "a"},
		{"true", "true"},
		{"False", "false"},
		{"a and b", "a and b"},
		{"a or b and c", "a or b and c"},
		{"(a or b) and c", "(a or b) and c"},
		{"a and (b and c)", "a and b and c"},
		{"(a or b) or (c or d)", "a or b or c or d"},
		{"((((a))))", "a"},
		{"not a eq 1", "not (a eq 1)"},
		{"not a eq 1 and b", "not (a eq 1) and b"},
		{"not(a eq 1)", "not (a eq 1)"},
		{"not (a) and b", "not (a) and b"},
		{"not (a and b)", "not (a and b)"},
		{"not not a", "not (not (a))"},
		{"a and not b or c", "a and not (b) or c"},
		{"(A eq 'x')and(B lt 6)", "A eq 'x' and B lt 6"},
		{"(true and RowKey eq '1') or (false or a eq 2)", "true and RowKey eq '1' or false or a eq 2"},
		// Words are operators only where an operator can follow.
		{"eq eq 1 and and eq 2", "eq eq 1 and and eq 2"},
		{"or or or", "or or or"},
		{"lt lt 5", "lt lt 5"},
		{"EQ eq 1", "EQ eq 1"},
		{"datetime eq 1 or guid eq 2 or X eq 3 or binary eq 4", "datetime eq 1 or guid eq 2 or X eq 3 or binary eq 4"},
		{"nan eq 1 or inf eq 1 or TRUE eq 1 or Null eq 1", "nan eq 1 or inf eq 1 or TRUE eq 1 or Null eq 1"},
		{"_x eq 1", "_x eq 1"},
		{"Größe eq 1 or 名前 eq 2 or ꀕ eq 3 or Ⅷ eq 4", "Größe eq 1 or 名前 eq 2 or ꀕ eq 3 or Ⅷ eq 4"},
		{"a\u0301b_c\u200d9 eq 1", "a\u0301b_c\u200d9 eq 1"},
		{"PartitionKey eq '\U0001F600''s'", "PartitionKey eq '\U0001F600''s'"},
	} {
		e, err := Parse(tt.text)
		if err != nil {
			t.Errorf("Parse(%q): %v", tt.text, err)
			continue
		}
		if got := e.String(); got != tt.want {
			t.Errorf("Parse(%q) = %s, want %s", tt.text, got, tt.want)
		}
	}
}

func TestParseLiterals(t *testing.T) {
	when := func(s string) edm.Value { return edm.DateTime(mustTicks(t, s)) }
	guid := edm.GUID{0xa4, 0x55, 0xc6, 0x95, 0xdf, 0x98, 0x56, 0x78, 0xaa, 0xaa, 0x81, 0xd3, 0x36, 0x7e, 0x5a, 0x34}
	for _, tt := range []struct {
		text string
		want edm.Value
		back string // the text that String gives, if another
	}{
		{"''", edm.String(""), ""},
		{"''''", edm.String("'"), ""},
		{"'it''s'", edm.String("it's"), ""},
		{"' \t\n \"'", edm.String(" \t\n \""), ""},
		{"'\U0001F600\uFFFF\x00'", edm.String("\U0001F600\uFFFF\x00"), ""},
		{"true", edm.Boolean(true), ""},
		{"True", edm.Boolean(true), "true"},
		{"False", edm.Boolean(false), "false"},
		{"0", edm.Int32(0), ""},
		{"-0", edm.Int32(0), "0"},
		{"007", edm.Int32(7), "7"},
		{"2147483647", edm.Int32(math.MaxInt32), ""},
		{"-2147483648", edm.Int32(math.MinInt32), ""},
		{"2147483648L", edm.Int64(1 << 31), ""},
		{"5l", edm.Int64(5), "5L"},
		{"9223372036854775807L", edm.Int64(math.MaxInt64), ""},
		{"-9223372036854775808L", edm.Int64(math.MinInt64), ""},
		{"100.25", edm.Double(100.25), ""},
		{"5.0", edm.Double(5), ""},
		{"5d", edm.Double(5), "5.0"},
		{"5F", edm.Double(5), "5.0"},
		{"-5.5m", edm.Double(-5.5), "-5.5"},
		{"1e-10", edm.Double(1e-10), ""},
		{"1E+2", edm.Double(100), "100.0"},
		{"1.5e300D", edm.Double(1.5e300), "1.5e+300"},
		{"-0.0", edm.Double(math.Copysign(0, -1)), ""},
		{"1e-400", edm.Double(0), "0.0"},
		{"9007199254740993.0", edm.Double(1 << 53), "9.007199254740992e+15"},
		{"INF", edm.Double(math.Inf(1)), ""},
		{"-INF", edm.Double(math.Inf(-1)), ""},
		{"NaN", edm.Double(math.NaN()), ""},
		{"datetime'2008-07-10T00:00:00Z'", when("2008-07-10T00:00:00Z"), ""},
		{"datetime'2008-07-10T00:00:00.1234567Z'", when("2008-07-10T00:00:00.1234567Z"), ""},
		{"datetime'2008-07-10T00:00:00.12345678Z'", when("2008-07-10T00:00:00.1234567Z"), "datetime'2008-07-10T00:00:00.1234567Z'"},
		{"datetime'2008-07-10T00:00:00'", when("2008-07-10T00:00:00Z"), "datetime'2008-07-10T00:00:00Z'"},
		{"datetime'2008-07-10T02:00:00+02:00'", when("2008-07-10T00:00:00Z"), "datetime'2008-07-10T00:00:00Z'"},
		{"datetime'2008-07-10'", when("2008-07-10T00:00:00Z"), "datetime'2008-07-10T00:00:00Z'"},
		{"datetime'2008-07-10Z'", when("2008-07-10T00:00:00Z"), "datetime'2008-07-10T00:00:00Z'"},
		{"datetime'2008-07-10-02:00'", when("2008-07-10T02:00:00Z"), "datetime'2008-07-10T02:00:00Z'"},
		{"datetime'2008-07-10T02:30'", when("2008-07-10T02:30:00Z"), "datetime'2008-07-10T02:30:00Z'"},
		{"datetime'2008-07-10T02:30+02:00'", when("2008-07-10T00:30:00Z"), "datetime'2008-07-10T00:30:00Z'"},
		{"datetime'0001-01-01'", edm.DateTime(-1), "datetime'0001-01-01T00:00:00Z'"},
		{"datetime'1601-01-01T00:00:00Z'", edm.DateTime(edm.MinTicks), ""},
		{"datetime'9999-12-31T23:59:59.9999999Z'", edm.DateTime(edm.MaxTicks), ""},
		{"datetime'1600-12-31T23:59:59Z'", edm.DateTime(-1), "datetime'0001-01-01T00:00:00Z'"},
		{"datetime'0001-01-01T00:00:00Z'", edm.DateTime(-1), ""},
		{"guid'a455c695-df98-5678-aaaa-81d3367e5a34'", edm.Guid(guid), ""},
		{"guid'A455C695-DF98-5678-AAAA-81D3367E5A34'", edm.Guid(guid), "guid'a455c695-df98-5678-aaaa-81d3367e5a34'"},
		{"X'0123ab'", edm.Binary([]byte{1, 0x23, 0xab}), ""},
		{"X''", edm.Binary([]byte{}), ""},
		{"binary'0123AB'", edm.Binary([]byte{1, 0x23, 0xab}), "X'0123ab'"},
	} {
		e, err := Parse("p eq " + tt.text)
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		if got := e.root.(*compareNode).right.value; !got.Equal(tt.want) {
			t.Errorf("%s: got %#v, want %#v", tt.text, got, tt.want)
		}
		if tt.back == "" {
			tt.back = tt.text
		}
		if got := e.String(); got != "p eq "+tt.back {
			t.Errorf("%s: String gives %s, want p eq %s", tt.text, got, tt.back)
		}
	}
}

// What Error.Unsupported is.
const (
	invalid     = false
	unsupported = true
)

const notImplementedText = "The requested operation is not implemented on the specified resource."

func incompatibleText(left, right, operator string) string {
	return "A binary operator with incompatible types was detected. Found operand types '" + left + "' and '" + right +
		"' for operator kind '" + operator + "'."
}

func TestParseErrors(t *testing.T) {
	for _, tt := range []struct {
		text    string
		kind    bool
		pos     int
		message string // $ is replaced by the text
	}{
		// Syntax.
		{"aaa bbb ccc", invalid, 7, "Syntax error at position 7 in 'aaa bbb ccc'."},
		{"a eq 1 b", invalid, 8, "Syntax error at position 8 in '$'."},
		{"a eq 1)", invalid, 7, "Syntax error at position 7 in '$'."},
		{"42 42", invalid, 5, "Syntax error at position 5 in '$'."},
		{"a eq foo'x'", invalid, 11, "Syntax error at position 11 in '$'."},
		{"a eq 5abc", invalid, 9, "Syntax error at position 9 in '$'."},
		{"a EQ 1", invalid, 4, "Syntax error at position 4 in '$'."},
		{"a eq 1 AND b eq 2", invalid, 10, "Syntax error at position 10 in '$'."},
		{"a eq x'00'", invalid, 10, "Syntax error at position 10 in '$'."},
		{"\U0001F600", invalid, 0, "Syntax error: character '\U0001F600' is not valid at position 0 in '$'."},
		{"a eq '\U0001F600' b", invalid, 11, "Syntax error at position 11 in '$'."},
		{"a eq", invalid, 4, "Expression expected at position 4 in '$'."},
		{"eq", invalid, 0, ""},
		{"(", invalid, 1, "Expression expected at position 1 in '$'."},
		{")", invalid, 0, "Expression expected at position 0 in '$'."},
		{"()", invalid, 1, "Expression expected at position 1 in '$'."},
		{",", invalid, 0, "Expression expected at position 0 in '$'."},
		{"/", invalid, 0, "Expression expected at position 0 in '$'."},
		{"a and", invalid, 5, "Expression expected at position 5 in '$'."},
		{"a or or", invalid, 7, ""},
		{"not", invalid, 3, "Expression expected at position 3 in '$'."},
		{"not not not", invalid, 11, "Expression expected at position 11 in '$'."},
		{"a eq ,", invalid, 5, "Expression expected at position 5 in '$'."},
		{"(a eq 1", invalid, 7, "')' or operator expected at position 7 in '$'."},
		{"(')'", invalid, 4, "')' or operator expected at position 4 in '$'."},
		{"(a b)", invalid, 3, "')' or operator expected at position 3 in '$'."},
		{"a eq \"b\"", invalid, 5, "Syntax error: character '\"' is not valid at position 5 in '$'."},
		{"\"a\" eq \"a\"", invalid, 0, "Syntax error: character '\"' is not valid at position 0 in '$'."},
		{"a eq 1; drop", invalid, 6, "Syntax error: character ';' is not valid at position 6 in '$'."},
		{"a eq %31", invalid, 5, "Syntax error: character '%' is not valid at position 5 in '$'."},
		{"a eq +5", invalid, 5, "Syntax error: character '+' is not valid at position 5 in '$'."},
		{"a\x00 eq 5", invalid, 1, "Syntax error: character '\x00' is not valid at position 1 in '$'."},
		{"a-b eq 1", unsupported, 1, notImplementedText},

		// Literals.
		{"a eq 'x", invalid, 7, "There is an unterminated string literal at position 7 in '$'."},
		{"a eq '''", invalid, 8, "There is an unterminated string literal at position 8 in '$'."},
		{"a eq datetime'2020", invalid, 18, "There is an unterminated literal at position 18 in '$'."},
		{"a eq 4.a", invalid, 7, "A digit was expected at position 7 in '$'."},
		{"a eq 4Ea", invalid, 7, "A digit was expected at position 7 in '$'."},
		{"a eq 4e+", invalid, 8, "A digit was expected at position 8 in '$'."},
		{"a eq .5", invalid, 5, "Expression expected at position 5 in '$'."},
		{"a eq 2147483648", invalid, 5, "Unrecognized 'Edm.Int32' literal '2147483648' at '5' in '$'."},
		{"a eq 9223372036854775808L", invalid, 5, "Unrecognized 'Edm.Int64' literal '9223372036854775808L' at '5' in '$'."},
		{"a eq 5.0L", invalid, 5, "Unrecognized 'Edm.Int64' literal '5.0L' at '5' in '$'."},
		{"a eq 1e400", invalid, 5, "Unrecognized 'Edm.Double' literal '1e400' at '5' in '$'."},
		{"a eq datetime'2020-02-30'", invalid, 5, "Unrecognized 'Edm.DateTime' literal 'datetime'2020-02-30'' at '5' in '$'."},
		{"a eq datetime'2020-02-20T24:00'", invalid, 5, "Unrecognized 'Edm.DateTime' literal 'datetime'2020-02-20T24:00'' at '5' in '$'."},
		{"a eq datetime'10:30:00Z'", invalid, 5, "Unrecognized 'Edm.DateTime' literal 'datetime'10:30:00Z'' at '5' in '$'."},
		{"datetime'x' eq a", invalid, 0, "Unrecognized 'Edm.DateTime' literal 'datetime'x'' at '0' in '$'."},
		{"a eq datetime'2020-02-30T00:00:00Z'", invalid, 5, "Unrecognized 'Edm.DateTime' literal 'datetime'2020-02-30T00:00:00Z'' at '5' in '$'."},
		{"a eq datetime'0000-01-01T00:00:00Z'", invalid, 5, "Unrecognized 'Edm.DateTime' literal 'datetime'0000-01-01T00:00:00Z'' at '5' in '$'."},
		{"a eq datetime'9999-12-31T23:59:59-01:00'", invalid, 5, "Unrecognized 'Edm.DateTime' literal 'datetime'9999-12-31T23:59:59-01:00'' at '5' in '$'."},
		{"a eq guid'x'", invalid, 5, "Unrecognized 'Edm.Guid' literal 'guid'x'' at '5' in '$'."},
		{"a eq X'abc'", invalid, 5, "Unrecognized 'Edm.Binary' literal 'X'abc'' at '5' in '$'."},
		{"a eq binary'0g'", invalid, 5, "Unrecognized 'Edm.Binary' literal 'binary'0g'' at '5' in '$'."},
		{"a eq '\xff'", invalid, 0, "One of the request inputs is not valid."},

		// Null.
		{"a eq null", invalid, 0, "One of the request inputs is not valid."},
		{"a ne null", invalid, 0, "One of the request inputs is not valid."},
		{"null eq a", invalid, 0, "One of the request inputs is not valid."},
		{"RowKey ne null", invalid, 0, "One of the request inputs is not valid."},
		{"null", invalid, 0, "One of the request inputs is not valid."},
		{"a lt null", invalid, 0, "The operator 'LessThan' is not supported for the 'null' literal; only equality checks are supported."},
		{"a le null", invalid, 0, "The operator 'LessThanOrEqual' is not supported for the 'null' literal; only equality checks are supported."},
		{"b eq 1 and a gt null", invalid, 11, "The operator 'GreaterThan' is not supported for the 'null' literal; only equality checks are supported."},
		{"null ge a", invalid, 0, "The operator 'GreaterThanOrEqual' is not supported for the 'null' literal; only equality checks are supported."},

		// Types.
		{"PartitionKey", invalid, 0, incompatibleText("Edm.String", "Edm.Boolean", "And")},
		{"RowKey and a eq 1", invalid, 0, incompatibleText("Edm.String", "Edm.Boolean", "And")},
		{"a eq 1 and RowKey", invalid, 11, incompatibleText("Edm.Boolean", "Edm.String", "And")},
		{"a or b or RowKey", invalid, 10, incompatibleText("Edm.Boolean", "Edm.String", "Or")},
		{"PartitionKey or RowKey", invalid, 0, incompatibleText("Edm.String", "Edm.String", "Or")},
		{"not RowKey", invalid, 4, incompatibleText("Edm.String", "Edm.Boolean", "And")},
		{"Timestamp", invalid, 0, incompatibleText("Edm.DateTime", "Edm.Boolean", "And")},
		{"'x'", invalid, 0, incompatibleText("Edm.String", "Edm.Boolean", "And")},
		{"a and 5", invalid, 6, incompatibleText("Edm.Boolean", "Edm.Int32", "And")},
		{"PartitionKey eq 1", invalid, 0, incompatibleText("Edm.String", "Edm.Int32", "Equal")},
		{"1L ne RowKey", invalid, 0, incompatibleText("Edm.Int64", "Edm.String", "NotEqual")},
		{"RowKey lt 1.5", invalid, 0, incompatibleText("Edm.String", "Edm.Double", "LessThan")},
		{"RowKey ge datetime'2020-01-01T00:00:00Z'", invalid, 0, incompatibleText("Edm.String", "Edm.DateTime", "GreaterThanOrEqual")},
		{"RowKey le guid'a455c695-df98-5678-aaaa-81d3367e5a34'", invalid, 0, incompatibleText("Edm.String", "Edm.Guid", "LessThanOrEqual")},
		{"a and Timestamp gt '2020-01-01T00:00:00Z'", invalid, 6, incompatibleText("Edm.DateTime", "Edm.String", "GreaterThan")},
		{"Timestamp eq 5", invalid, 0, incompatibleText("Edm.DateTime", "Edm.Int32", "Equal")},

		// What OData has and the service has not.
		{"1 eq 1", unsupported, 0, notImplementedText},
		{"'a' eq 'a'", unsupported, 0, notImplementedText},
		{"1 === 1", unsupported, 2, notImplementedText},
		{"a eq 1 and (1 eq null)", unsupported, 12, notImplementedText},
		{"a eq b", unsupported, 0, notImplementedText},
		{"PartitionKey eq RowKey", unsupported, 0, notImplementedText},
		{"startswith(a,'x')", unsupported, 0, notImplementedText},
		{"a eq 1 and substringof('x',a) eq true", unsupported, 11, notImplementedText},
		{"length(a) gt 5", unsupported, 0, notImplementedText},
		{"a add 1 eq 5", unsupported, 2, notImplementedText},
		{"a eq 5 sub 1", unsupported, 7, notImplementedText},
		{"5 mod 2 eq a", unsupported, 2, notImplementedText},
		{"-a eq 5", unsupported, 0, notImplementedText},
		{"a in ('x','y')", unsupported, 2, notImplementedText},
		{"a has b", unsupported, 2, notImplementedText},
		{"a/b eq 5", unsupported, 0, notImplementedText},
		{"a/any(x:x eq 5)", unsupported, 0, notImplementedText},
		{"(a eq 1) eq true", unsupported, 9, notImplementedText},
		{"a eq (1)", unsupported, 5, notImplementedText},
		{"a eq 1 eq true", unsupported, 7, notImplementedText},
	} {
		if tt.message == "" {
			// A word where an operand is required is a property.
			if e, err := Parse(tt.text); err != nil {
				t.Errorf("Parse(%q) = %v, %v", tt.text, e, err)
			}
			continue
		}
		checkError(t, Parse, tt.text, Error{tt.kind, tt.pos, strings.ReplaceAll(tt.message, "$", tt.text)})
	}
}

func TestParseTablesErrors(t *testing.T) {
	for _, tt := range []struct {
		text    string
		kind    bool
		pos     int
		message string
	}{
		{"Other eq 'x'", unsupported, 0, notImplementedText},
		{"TableName eq 'x' and PartitionKey eq 'x'", unsupported, 21, notImplementedText},
		{"tablename eq 'x'", unsupported, 0, notImplementedText},
		{"Other", unsupported, 0, notImplementedText},
		{"TableName eq TableName", unsupported, 0, notImplementedText},
		{"TableName", invalid, 0, incompatibleText("Edm.String", "Edm.Boolean", "And")},
		{"TableName eq 5", invalid, 0, incompatibleText("Edm.String", "Edm.Int32", "Equal")},
		{"TableName eq null", invalid, 0, "One of the request inputs is not valid."},
		{"TableName eq", invalid, 12, "Expression expected at position 12 in 'TableName eq'."},
	} {
		checkError(t, ParseTables, tt.text, Error{tt.kind, tt.pos, tt.message})
	}
}

// checkError checks that parse fails with want.
func checkError(t *testing.T, parse func(string) (*Expr, error), text string, want Error) {
	t.Helper()
	e, err := parse(text)
	var got *Error
	if !errors.As(err, &got) {
		t.Errorf("%.100q: got %v and the error %v, want the error %+v", text, e, err, want)
		return
	}
	if diff := cmp.Diff(want, *got); diff != "" {
		t.Errorf("%.100q: (-want +got)\n%s", text, diff)
	}
	if e != nil || got.Error() != got.Message {
		t.Errorf("%.100q: %v beside the error %v", text, e, got)
	}
}
