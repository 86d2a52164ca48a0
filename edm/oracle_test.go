package edm_test

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tablerock-db/tablerock/edm"
)

// The oracles are simple implementations of the checks, with UTF-16 and the tables of
// package unicode. They return the broken rule, 0 for none.

func units(s string) []uint16 { return utf16.Encode([]rune(s)) }

func oracleCompare(a, b string) int { return slices.Compare(units(a), units(b)) }

var tablePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)

func oracleTableName(s string) edm.Rule {
	switch n := len([]rune(s)); {
	case n < 3 || n > 63:
		return edm.RuleTableNameLength
	case strings.EqualFold(s, "tables") && len(s) == len("tables"):
		return edm.RuleTableName
	case !tablePattern.MatchString(s):
		return edm.RuleTableName
	}
	return 0
}

func oracleKeyPart(s string) edm.Rule {
	if !utf8.ValidString(s) {
		return edm.RuleUTF8
	}
	u := units(s)
	if len(u) > 1024 {
		return edm.RuleKeyLength
	}
	for _, c := range u {
		if c <= 0x1F || c >= 0x7F && c <= 0x9F || c == '/' || c == '\\' || c == '#' || c == '?' {
			return edm.RuleKey
		}
	}
	return 0
}

var firstClasses, laterClasses = classes("Lu", "Ll", "Lt", "Lm", "Lo", "Nl"), classes("Nd", "Pc", "Mn", "Mc", "Cf")

func classes(names ...string) (list []*unicode.RangeTable) {
	for _, name := range names {
		list = append(list, unicode.Categories[name])
	}
	return list
}

func oraclePropertyName(s string) edm.Rule {
	if !utf8.ValidString(s) {
		return edm.RuleUTF8
	}
	if len(units(s)) > 255 {
		return edm.RulePropertyNameLength
	}
	if s == "" || s == "PartitionKey" || s == "RowKey" || s == "Timestamp" {
		return edm.RulePropertyName
	}
	for i, r := range []rune(s) {
		ok := r == '_' || unicode.In(r, firstClasses...) || i > 0 && unicode.In(r, laterClasses...)
		if !ok {
			return edm.RulePropertyName
		}
	}
	return 0
}

// brokenRule returns the rule of an error, 0 for nil. It fails the test if err is not
// an *edm.Error.
func brokenRule(t *testing.T, err error) edm.Rule {
	t.Helper()
	if err == nil {
		return 0
	}
	var e *edm.Error
	if !errors.As(err, &e) {
		t.Fatalf("error of type %T (%v), want *edm.Error", err, err)
	}
	if !errors.Is(err, edm.ErrInvalid) {
		t.Errorf("%v is not ErrInvalid", err)
	}
	return e.Rule
}

func wantRule(t *testing.T, input string, err error, want edm.Rule) {
	t.Helper()
	if got := brokenRule(t, err); got != want {
		t.Errorf("input %.80q (%d bytes): broke %v (%v), want %v", input, len(input), got, err, want)
	}
}
