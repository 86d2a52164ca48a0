package output

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// Width returns the width of s in terminal columns.
func Width(s string) int { return widthUpTo(s, math.MaxInt) }

// widthUpTo returns the width of s, or limit if s is wider.
func widthUpTo(s string, limit int) int {
	n, width := fitting(s, limit)
	if n < len(s) {
		return limit
	}
	return width
}

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
	if n, _ := fitting(s, width); n == len(s) {
		return s
	}
	n, _ := fitting(s, width-1)
	return s[:n] + "…"
}

// fitting returns the length of the longest prefix of s, of whole characters, that needs at
// most limit columns, and the columns that it needs. It reads no more of s: a value can be
// much longer than a line.
func fitting(s string, limit int) (n, width int) {
	for n < len(s) && n <= limit && ' ' <= s[n] && s[n] <= '~' {
		n++
	}
	switch {
	case n > limit:
		return limit, limit
	case n == len(s):
		return n, n
	}
	n = max(0, n-1) // the last letter can be the first of a character with an accent
	width = n
	for state := -1; n < len(s); {
		character, _, w, after := uniseg.FirstGraphemeClusterInString(s[n:], state)
		if w > limit-width {
			break
		}
		n, width, state = n+len(character), width+w, after
	}
	return n, width
}

// wrap returns the first lines of s, at most count, of at most width columns. A character
// that is wider has its own line.
func wrap(s string, width, count int) []string {
	var lines []string
	for len(lines) < count {
		n, _ := fitting(s, width)
		if n == len(s) {
			return append(lines, s)
		}
		n = max(n, len(s)-len(withoutFirst(s)))
		lines, s = append(lines, s[:n]), s[n:]
	}
	return lines
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
