package main

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// mostPlaces is how much of a value a table shows.
const mostPlaces = 60

// displayText returns s for one cell of a terminal: in one line, without characters
// that would move the cursor, and cut where it is long.
func displayText(s string) string {
	plain := utf8.ValidString(s)
	width := 0
	for _, r := range s {
		plain = plain && unicode.IsGraphic(r)
		width += placesOf(r)
	}
	if !plain {
		s = strconv.QuoteToGraphic(s)
		s = strings.ReplaceAll(s[1:len(s)-1], `\"`, `"`)
		width = displayWidth(s)
	}
	if width <= mostPlaces {
		return s
	}
	n := 0
	for i, r := range s {
		if n += placesOf(r); n >= mostPlaces {
			return s[:i] + "…"
		}
	}
	return s
}

// columnWidths are the widths of the columns of a table.
type columnWidths []int

// widthsOf returns columns as wide as their heads.
func widthsOf(heads []string) columnWidths {
	c := make(columnWidths, len(heads))
	c.fit(heads)
	return c
}

// fit makes columns wide enough for a line of cells.
func (c columnWidths) fit(cells []string) {
	for i, cell := range cells {
		c[i] = max(c[i], displayWidth(cell))
	}
}

// line returns cells below those of their column.
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

// pad returns s with the blanks that it lacks to take width places.
func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-displayWidth(s)))
}

// wide are the scripts whose characters take two places of a terminal.
var wide = []*unicode.RangeTable{unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana}

// displayWidth returns how many places of a terminal s takes.
func displayWidth(s string) int {
	n := 0
	for _, r := range s {
		n += placesOf(r)
	}
	return n
}

func placesOf(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.In(r, wide...) || 0x3000 <= r && r <= 0x303E || 0xFF01 <= r && r <= 0xFF60 || 0x1F300 <= r && r <= 0x1FAFF:
		return 2
	}
	return 1
}
