package output

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// Width returns the width of s in terminal columns.
func Width(s string) int { return uniseg.StringWidth(s) }

// Cell returns s as it is printed in a cell of a table: on one line, without characters that
// move the cursor, and cut to 60 columns.
func Cell(s string) string { return cut(printable(s), maxCellWidth) }

// printable returns s on one line, without characters that move the cursor.
func printable(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		return s
	}
	s = strconv.QuoteToGraphic(s)
	return strings.ReplaceAll(s[1:len(s)-1], `\"`, `"`)
}

// cut returns s in at most width columns, which are at least 2.
func cut(s string, width int) string {
	if Width(s) <= width {
		return s
	}
	return s[:fitting(s, width-1)] + "…"
}

// fitting returns the length of the longest prefix of s, of whole characters, that needs at
// most width columns.
func fitting(s string, width int) int {
	rest, used := s, 0
	for state := -1; rest != ""; {
		_, next, w, after := uniseg.FirstGraphemeClusterInString(rest, state)
		if used+w > width {
			break
		}
		rest, used, state = next, used+w, after
	}
	return len(s) - len(rest)
}

// wrap returns s as lines of at most width columns. A character that is wider has its own
// line.
func wrap(s string, width int) []string {
	var lines []string
	for width > 0 && Width(s) > width {
		n := max(fitting(s, width), len(s)-len(withoutFirst(s)))
		lines, s = append(lines, s[:n]), s[n:]
	}
	return append(lines, s)
}

// withoutFirst returns s without its first character.
func withoutFirst(s string) string {
	_, rest, _, _ := uniseg.FirstGraphemeClusterInString(s, -1)
	return rest
}

// pad appends blanks to s up to width.
func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-Width(s)))
}
