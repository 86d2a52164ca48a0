// Package hint says what somebody may have meant who typed something else, and what
// to do about an error.
package hint

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
)

// Flag returns what to tell of err, which package pflag gave for the flags of
// cmd: what a flag takes that was given something else, or which flag was meant.
func Flag(cmd *cobra.Command, err error) string {
	text := err.Error()
	var invalid *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	switch {
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		text = fmt.Sprintf("--%s %q: %s", f.Name, invalid.GetValue(), wants(f, invalid.Unwrap()))
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		text += Near("--"+unknown.GetSpecifiedName(), flagsOf(cmd))
	}
	return fmt.Sprintf("%s; see %s --help", text, cmd.CommandPath())
}

// flagsOf returns the flags of cmd that its help lists, as they are typed.
func flagsOf(cmd *cobra.Command) []string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	return names
}

// wants says what values a flag has. What our own kinds of flags say of a value
// that they refuse does as it is.
func wants(f *pflag.Flag, refusal error) string {
	switch f.Value.Type() {
	case "int", "int64", "uint", "uint64":
		return "it is a whole number that is not too large"
	case "bool":
		return "it is true or false"
	case "duration":
		return "it is a length of time such as 30s or 5m"
	}
	return refusal.Error()
}

// ETag says why something cannot be an ETag, so that no entity would ever have
// it, "" if it can be one.
func ETag(etag string) string {
	if etag == string(store.Any) || strings.HasPrefix(etag, `W/"`) && strings.HasSuffix(etag, `"`) {
		return ""
	}
	return `an ETag is the "odata.etag" of an entity, such as W/"datetime'2026-01-02T03%3A04%3A05Z'", with all its quotes; * is any`
}

// Filter adds to err, the refusal of a filter with that text, where in the text it
// is, as far as err does not say so, and what might have been meant.
func Filter(text string, err error) error {
	var bad *filter.Error
	if !errors.As(err, &bad) {
		return err
	}
	at := min(byteOffset(text, bad.Position), len(text))
	if !strings.Contains(bad.Message, "position") && !strings.Contains(bad.Message, " at '") {
		return fmt.Errorf("at position %d in '%s': %w (%s)", bad.Position, text, err, meant(text[at:], bad))
	}
	return fmt.Errorf("%w (%s)", err, meant(text[at:], bad))
}

// byteOffset returns the offset of a position in UTF-16 code units.
func byteOffset(text string, position int) int {
	for off := range text {
		if edm.UTF16Len(text[:off]) >= position {
			return off
		}
	}
	return len(text)
}

// operators are what other languages have for those of filters, longer ones
// first.
var operators = []struct{ typed, meant string }{
	{"&&", "and"},
	{"||", "or"},
	{"==", "eq"},
	{"!=", "ne"},
	{"<>", "ne"},
	{">=", "ge"},
	{"<=", "le"},
	{"=", "eq"},
	{">", "gt"},
	{"<", "lt"},
	{"!", "not"},
	{"&", "and"},
	{"|", "or"},
}

// meant says what might have been meant where a filter goes wrong.
func meant(rest string, bad *filter.Error) string {
	rest = strings.TrimLeft(rest, " ")
	for _, o := range operators {
		if strings.HasPrefix(rest, o.typed) {
			return fmt.Sprintf("for %s write %s", o.typed, o.meant)
		}
	}
	r, _ := utf8.DecodeRuneInString(rest)
	switch {
	case strings.Contains(bad.Message, "unterminated string"):
		return "text ends with a single quote, and one within it is doubled: 'it''s'"
	case r == '"' || r == '`' || r == '\u2018' || r == '\u201c':
		return "text stands in single quotes: 'like this'"
	case strings.HasPrefix(bad.Message, "Unrecognized"):
		return "constants are 7, 7L for Edm.Int64, 7.5, 'text', true, datetime'2026-01-31T00:00:00Z', guid'...' and X'00FF'"
	case strings.HasPrefix(bad.Message, "')'"):
		return "a parenthesis is not closed"
	}
	return "a filter compares properties with constants by eq, ne, gt, ge, lt and le, and joins that by and, or and not, as in Age ge 30 and Name ne 'Ann'; there are no functions"
}
