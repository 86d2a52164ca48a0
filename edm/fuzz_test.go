package edm_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm"
)

func FuzzCheckKey(f *testing.F) {
	for _, s := range []string{
		"", "plain", "a/b", "\x7f", "\u0080", "\u00a0", "\ud7ff\ue000", "\U0001F600", "\xed\xa0\x80", "\xc0\xaf",
		strings.Repeat("\u6771", 1024), strings.Repeat("\U0001F600", 513),
	} {
		f.Add(s, "other")
		f.Add("\ue000 other", s)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		rule := oracleKeyPart(a)
		name := edm.PartitionKeyName
		if rule == 0 {
			rule, name = oracleKeyPart(b), edm.RowKeyName
		}
		err := edm.CheckKey(edm.Key{Partition: a, Row: b})
		if got := brokenRule(t, err); got != rule {
			t.Fatalf("CheckKey of %q and %q: broke %v (%v), want %v", a, b, got, err, rule)
		}
		var e *edm.Error
		if errors.As(err, &e) && e.Name != name {
			t.Fatalf("CheckKey of %q and %q names %q, want %q", a, b, e.Name, name)
		}
		if oracleKeyPart(a) != 0 || oracleKeyPart(b) != 0 {
			return
		}
		if got, want := edm.UTF16Len(a), len(units(a)); got != want {
			t.Fatalf("UTF16Len(%q) = %d, want %d", a, got, want)
		}
		if got, want := edm.Compare(a, b), oracleCompare(a, b); got != want {
			t.Fatalf("Compare(%q, %q) = %d, want %d", a, b, got, want)
		}
	})
}

func FuzzCheckPropertyName(f *testing.F) {
	for _, s := range []string{
		"", "Name", "_1", "1a", "a-b", "RowKey", "odata.etag", "\u00e4", "a\u0301", "a\u200d", "\ue000", "\U00020000", "a\xff",
		strings.Repeat("n", 256), strings.Repeat("\U00020000", 128),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want := oraclePropertyName(s)
		if got := brokenRule(t, edm.CheckPropertyName(s)); got != want {
			t.Fatalf("CheckPropertyName(%q) broke %v, want %v", s, got, want)
		}
	})
}

func FuzzCheckTableName(f *testing.F) {
	for _, s := range []string{"abc", "ab", "Tables", "1abc", "my_table", "\u554a\u554a\u554a", "\u212aelvin", strings.Repeat("a", 64)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want := oracleTableName(s)
		if got := brokenRule(t, edm.CheckTableName(s)); got != want {
			t.Fatalf("CheckTableName(%q) broke %v, want %v", s, got, want)
		}
		if want == 0 && edm.FoldTableName(s) != strings.ToLower(s) {
			t.Fatalf("FoldTableName(%q) = %q, want %q", s, edm.FoldTableName(s), strings.ToLower(s))
		}
	})
}

// ticksPattern is the syntax of a DateTime. Package time checks the calendar, but also
// accepts a comma, hours of one digit, and offsets of 24:00 and 00:60.
var ticksPattern = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)?$`)

// FuzzParseTicks compares ParseTicks with ticksPattern and package time, and parses
// the text of each result again.
func FuzzParseTicks(f *testing.F) {
	for _, s := range []string{
		"1601-01-01T00:00:00Z", "9999-12-31T23:59:59.9999999Z", "2012-01-02T23:00:00", "2012-01-02T01:30:00+02:00",
		"2012-01-02T01:30:00.123456789-14:00", "2000-02-30T00:00:00Z", "2016-12-31T23:59:60Z", "0001-01-01T00:00:00Z", "2014-05-07",
		"2000-01-01T00:00:00+00:60",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := edm.ParseTicks(s)
		want, timeErr := time.Parse(time.RFC3339Nano, s)
		if timeErr != nil {
			want, timeErr = time.Parse("2006-01-02T15:04:05", s)
		}
		if err != nil {
			if timeErr == nil && edm.TicksOf(want).Valid() && ticksPattern.MatchString(s) {
				t.Fatalf("ParseTicks(%q): %v, want %v", s, err, want)
			}
			return
		}
		if timeErr != nil || !ticksPattern.MatchString(s) {
			t.Fatalf("ParseTicks(%q) = %v, want an error (time says %v)", s, got, timeErr)
		}
		if !got.Valid() || got != edm.TicksOf(want) {
			t.Fatalf("ParseTicks(%q) = %d (%v), want %d (%v)", s, got, got, edm.TicksOf(want), want)
		}
		if again, err := edm.ParseTicks(got.String()); err != nil || again != got {
			t.Fatalf("ParseTicks(%q), written for %q, = %v, %v, want %v", got.String(), s, again, err, got)
		}
	})
}
