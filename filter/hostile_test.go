package filter

import (
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/internal/race"
)

// TestParseHostile parses texts that take long or overflow the stack in a parser that
// is quadratic or recurses without limit.
func TestParseHostile(t *testing.T) {
	race.SkipOneGoroutine(t)
	const million = 1 << 20
	deep := func(depth int) string { return strings.Repeat("(", depth) + "a" + strings.Repeat(")", depth) }
	for _, tt := range []struct {
		name, text, message string // message: a prefix, "" without an error
	}{
		{"parentheses", strings.Repeat("(", 100_000), messageTooDeep},
		{"closed parentheses", deep(100_000), messageTooDeep},
		{"depth at the limit", deep(maxDepth), ""},
		{"depth over the limit", deep(maxDepth + 1), messageTooDeep},
		{"nots", strings.Repeat("not ", 100_000) + "a", messageTooDeep},
		{"nots alone", strings.Repeat("not ", 100_000), messageTooDeep},
		{"nots at the limit", strings.Repeat("not ", maxDepth) + "a", ""},
		{"nots over the limit", strings.Repeat("not ", maxDepth+1) + "a", messageTooDeep},
		{"nots over the limit before a name that is an operator", strings.Repeat("not ", maxDepth+1) + "and a eq 1", messageTooDeep},
		{"nots with parentheses at the limit", strings.Repeat("not (", maxDepth) + "a" + strings.Repeat(")", maxDepth), ""},
		{"nots with parentheses over the limit", strings.Repeat("not (", maxDepth+1) + "a" + strings.Repeat(")", maxDepth+1), messageTooDeep},
		{"parentheses one after the other", strings.Repeat("(a) or ", million/7) + "a", ""},
		{"closing parentheses", strings.Repeat(")", million), "Expression expected at position 0 "},
		{"comparisons", strings.Repeat("a eq 1 and ", million/11) + "a", ""},
		{"groups at the limit", strings.Repeat("a and b or ", maxGroups-1) + "a", ""},
		{"groups over the limit", strings.Repeat("a and b or ", maxGroups) + "a", messageTooMany},
		{"string", "a eq '" + strings.Repeat("x", million) + "'", ""},
		{"string of quotes", "a eq '" + strings.Repeat("''", million) + "'", ""},
		{"unterminated string", "a eq '" + strings.Repeat("x", million), "There is an unterminated string literal at position 1048582 "},
		{"unterminated string of quotes", "a eq '" + strings.Repeat("''", million), "There is an unterminated string literal at position "},
		{"digits", "a eq " + strings.Repeat("1", million), "Unrecognized 'Edm.Int32' literal '111"},
		{"fraction", "a eq 0." + strings.Repeat("1", million), ""},
		{"exponent", "a eq 1e" + strings.Repeat("9", million), "Unrecognized 'Edm.Double' literal '1e99"},
		{"binary", "a eq X'" + strings.Repeat("0f", million) + "'", ""},
		{"bad guid", "a eq guid'" + strings.Repeat("0", million) + "'", "Unrecognized 'Edm.Guid' literal "},
		{"fraction of a second", "a eq datetime'2020-01-01T00:00:00." + strings.Repeat("1", million) + "'", ""},
		{"name", strings.Repeat("x", million) + " eq 1", ""},
		{"letters of three bytes", strings.Repeat("名", million/3) + " eq 1 b", "Syntax error at position 349532 "},
		{"minuses", "a eq " + strings.Repeat("-", million), messageNotImplemented},
		{"minus before a long name", "a eq -" + strings.Repeat("I", million), messageNotImplemented},
		{"blanks", strings.Repeat(" ", million) + "a", ""},
		{"zeros", strings.Repeat("\x00", million), "Syntax error: character '\x00' is not valid at position 0 "},
		{"invalid UTF-8", strings.Repeat("a", million) + "\xff", messageInvalid},
		{"half a pair", "a eq '\xed\xa0\x80'", messageInvalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := Parse(tt.text)
			if tt.message == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil {
				t.Fatalf("parsed as %.100s", e)
			}
			if got := err.Error(); !strings.HasPrefix(got, tt.message) {
				t.Errorf("got the error %.200q, want it to begin with %q", got, tt.message)
			}
			if n := len(err.Error()); n > 3*maxQuotedBytes {
				t.Errorf("message of %d bytes", n)
			}
		})
	}
}

// TestParseManyComparisons parses more comparisons than the 15 that the service
// advises, which it does not enforce.
func TestParseManyComparisons(t *testing.T) {
	if _, err := Parse(strings.Repeat("a eq 1 or ", 4999) + "a"); err != nil {
		t.Error(err)
	}
}

func TestMustParsePanics(t *testing.T) {
	defer func() {
		if r := recover(); r == nil {
			t.Error("MustParse accepted an invalid text")
		}
	}()
	MustParse("a eq")
}
