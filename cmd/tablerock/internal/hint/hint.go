// Package hint suggests corrections for mistyped flags, tables and filters, and next steps
// for errors.
package hint

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
)

// Flag returns the message for err, an error of package pflag about the flags of cmd. It
// describes the values of the flag, or suggests flags for an unknown one.
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

// NextFlag returns an error if the argument of a flag is the next flag, in the arguments args of cmd: "--data --quiet" would be
// a directory. An argument that looks like a flag follows an equals sign.
func NextFlag(cmd *cobra.Command, args []string) error {
	_ = cmd.InheritedFlags() // adds them to Flags
	for i := 0; i+1 < len(args) && args[i] != "--"; i++ {
		f := flagOf(cmd, args[i])
		if f == nil || f.NoOptDefVal != "" {
			continue
		}
		i++
		name, _, _ := strings.Cut(args[i], "=")
		if strings.HasPrefix(name, "--") && flagOf(cmd, name) != nil {
			return fmt.Errorf("flag needs an argument: --%s; if %s is the argument and no flag, write --%s=%s; see %s --help",
				f.Name, args[i], f.Name, args[i], cmd.CommandPath())
		}
	}
	return nil
}

// flagOf returns the flag of cmd that arg names, nil if it names none.
func flagOf(cmd *cobra.Command, arg string) *pflag.Flag {
	if name, ok := strings.CutPrefix(arg, "--"); ok {
		return cmd.Flags().Lookup(name)
	}
	if name, ok := strings.CutPrefix(arg, "-"); ok && len(name) == 1 {
		return cmd.Flags().ShorthandLookup(name)
	}
	return nil
}

// flagsOf returns the flags that the help of cmd lists, with their dashes.
func flagsOf(cmd *cobra.Command) []string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	return names
}

// Value returns what err, an error of package pflag, says about the values of a flag, after a
// colon, or "" if it says nothing about them.
func Value(err error) string {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return ""
	}
	return ": it " + wants(invalid.GetFlag(), invalid.Unwrap())
}

// wants describes the values of a flag. Our own types of flags describe them in the error.
func wants(f *pflag.Flag, refusal error) string {
	switch f.Value.Type() {
	case "int", "int64", "uint", "uint64":
		return "must be a whole number that is not too large"
	case "bool":
		return "must be true or false"
	case "duration":
		return "must be a duration such as 30s or 5m"
	}
	return refusal.Error()
}

// ETag returns a message if etag cannot be the ETag of any entity, and "" otherwise.
func ETag(etag string) string {
	if etag == string(store.Any) || strings.HasPrefix(etag, `W/"`) && strings.HasSuffix(etag, `"`) {
		return ""
	}
	return `an ETag is the "odata.etag" of an entity, such as W/"datetime'2026-01-02T03%3A04%3A05Z'", with all its quotes; * is any`
}

// Filter adds a correction, and the position in text if it is missing, to err, the error of
// parsing the filter text.
func Filter(text string, err error) error {
	var bad *filter.Error
	if !errors.As(err, &bad) {
		return err
	}
	at := min(byteOffset(text, bad.Position), len(text))
	if !strings.Contains(bad.Message, "position") && !strings.Contains(bad.Message, " at '") {
		return fmt.Errorf("at position %d in '%s': %w (%s)", bad.Position, text, err, correction(text, at, bad))
	}
	return fmt.Errorf("%w (%s)", err, correction(text, at, bad))
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

// operators are the operators of other languages and their equivalents, longer ones
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

// words are the operators of a filter.
var words = []string{"and", "or", "not", "eq", "ne", "gt", "ge", "lt", "le"}

// capitals returns the operator at the end of before or at the start of rest that is written
// in capitals, "" if there is none.
func capitals(before, rest string) string {
	around := strings.Fields(before)
	around = append(around[max(0, len(around)-1):], strings.FieldsFunc(rest, func(r rune) bool { return r == ' ' || r == '(' })...)
	for _, word := range around[:min(2, len(around))] {
		if lower := strings.ToLower(word); lower != word && slices.Contains(words, lower) {
			return word
		}
	}
	return ""
}

// correction suggests a correction for the error at the offset at.
func correction(text string, at int, bad *filter.Error) string {
	rest := strings.TrimLeft(text[at:], " ")
	for _, o := range operators {
		if strings.HasPrefix(rest, o.typed) {
			return fmt.Sprintf("for %s write %s", o.typed, o.meant)
		}
	}
	if word := capitals(text[:at], rest); word != "" {
		return fmt.Sprintf("for %s write %s", word, strings.ToLower(word))
	}
	r, _ := utf8.DecodeRuneInString(rest)
	switch {
	case strings.Contains(bad.Message, "unterminated string"):
		return "a string ends with a single quote, and a quote in it is doubled: 'it''s'"
	case r == '"' || r == '`' || r == '\u2018' || r == '\u201c':
		return "write a string in single quotes: 'like this'"
	case strings.HasPrefix(bad.Message, "Unrecognized"):
		return "constants are 7, 7L for Edm.Int64, 7.5, 'text', true, datetime'2026-01-31T00:00:00Z', guid'...' and X'00FF'"
	case strings.Contains(bad.Message, "'null' literal") || strings.HasPrefix(bad.Message, "One of") && utf8.ValidString(text):
		return "there is no null: an entity that lacks a property matches no comparison of it"
	case strings.Contains(bad.Message, "incompatible types"):
		return "compare PartitionKey and RowKey with 'text', and Timestamp with datetime'2026-01-31T00:00:00Z'"
	case strings.HasPrefix(bad.Message, "')'"):
		return "a parenthesis is not closed"
	}
	return "a filter compares properties with constants by eq, ne, gt, ge, lt and le, " +
		"and joins that by and, or and not, as in Age ge 30 and Name ne 'Ann'; there are no functions"
}
