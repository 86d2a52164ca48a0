package main

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// maxCellWidth limits the width of a value in a table, in terminal columns.
const maxCellWidth = 60

// displayText returns s for one cell of a table: on one line, without characters that
// move the cursor, and cut at maxCellWidth.
func displayText(s string) string {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		s = strconv.QuoteToGraphic(s)
		s = strings.ReplaceAll(s[1:len(s)-1], `\"`, `"`)
	}
	if displayWidth(s) <= maxCellWidth {
		return s
	}
	rest, width := s, 0
	for state := -1; ; {
		_, next, w, after := uniseg.FirstGraphemeClusterInString(rest, state)
		if width+w >= maxCellWidth {
			return s[:len(s)-len(rest)] + "…"
		}
		rest, width, state = next, width+w, after
	}
}

// columnWidths are the widths of a table's columns, in terminal columns.
type columnWidths []int

// widthsOf returns the widths of the column headers.
func widthsOf(headers []string) columnWidths {
	c := make(columnWidths, len(headers))
	c.fit(headers)
	return c
}

// fit widens the columns to the cells of a line.
func (c columnWidths) fit(cells []string) {
	for i, cell := range cells {
		c[i] = max(c[i], displayWidth(cell))
	}
}

// line returns the cells padded to the widths of their columns.
func (c columnWidths) line(cells []string) string {
	var b strings.Builder
	for i, cell := range cells {
		if i > 0 {
			b.WriteString("  ")
		}
		b.WriteString(pad(cell, c[i]))
	}
	return strings.TrimRight(b.String(), " ")
}

// pad appends blanks to s up to width.
func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-displayWidth(s)))
}

// displayWidth returns the width of s in terminal columns.
func displayWidth(s string) int { return uniseg.StringWidth(s) }
