package output

import (
	"slices"
	"strconv"
	"strings"
)

const (
	maxCellWidth = 60 // of a cell in a table, in terminal columns
	minCellWidth = 20 // of a cell that is cut because the table is too wide
	// maxRecordLines limits the lines of one value in a record.
	maxRecordLines = 8
	separator      = "  "
	absent         = "\x00" // the cell of a property that an entity does not have
)

// layout prints lines of cells as a table or, if that is too wide for the terminal, as
// records with one line for each cell. Call fit with all lines, then choose, then line.
type layout struct {
	headers []string
	widths  []int // of the columns
	width   int   // of the terminal; 0 is unlimited
	bold    bool  // print headers in bold
	records bool
	names   int   // width of the widest header
	printed int64 // records
}

func newLayout(headers []string, p *Printer) *layout {
	l := &layout{headers: headers, widths: make([]int, len(headers)), width: p.Columns, bold: p.Bold}
	for i, h := range headers {
		l.widths[i] = Width(h)
		l.names = max(l.names, l.widths[i])
	}
	return l
}

// fit widens the columns to the cells of a line.
func (l *layout) fit(cells []string) {
	for i, cell := range cells {
		l.widths[i] = max(l.widths[i], widthUpTo(cell, maxCellWidth))
	}
}

// choose decides the form. Of the columns after the first keys, it narrows the widest ones
// if the table then fits the terminal.
func (l *layout) choose(keys int) {
	if l.width == 0 {
		return
	}
	narrowed := slices.Clone(l.widths)
	for l.tableWidth(narrowed) > l.width {
		widest := -1
		for i := keys; i < len(narrowed); i++ {
			if narrowed[i] > max(minCellWidth, Width(l.headers[i])) && (widest < 0 || narrowed[i] > narrowed[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			l.records = true
			return
		}
		narrowed[widest]--
	}
	l.widths = narrowed
}

// tableWidth returns the width of a table with columns of these widths.
func (l *layout) tableWidth(widths []int) int {
	n := (len(widths) - 1) * len(separator)
	for _, w := range widths {
		n += w
	}
	return n
}

// head returns the line of headers of a table, and nothing for records.
func (l *layout) head() string {
	if l.records {
		return ""
	}
	return l.emphasize(strings.TrimSuffix(l.tableLine(l.headers), "\n")) + "\n"
}

// emphasize returns a heading in bold if the layout has bold headers.
func (l *layout) emphasize(s string) string {
	if !l.bold {
		return s
	}
	return "\x1b[1m" + s + "\x1b[0m"
}

// line returns the line of a table, or the lines of a record.
func (l *layout) line(cells []string) string {
	if !l.records {
		return l.tableLine(cells)
	}
	l.printed++
	title := "-- " + strconv.FormatInt(l.printed, 10) + " "
	title += strings.Repeat("-", max(2, min(l.width, maxCellWidth)-len(title)))
	var b strings.Builder
	b.WriteString(l.emphasize(title) + "\n")
	for i, cell := range cells {
		if cell != absent {
			l.appendField(&b, l.headers[i], cell)
		}
	}
	return b.String()
}

func (l *layout) tableLine(cells []string) string {
	var b strings.Builder
	for i, cell := range cells {
		if i > 0 {
			b.WriteString(separator)
		}
		if cell == absent {
			cell = ""
		}
		b.WriteString(pad(cut(cell, max(2, l.widths[i])), l.widths[i]))
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}

// appendField appends the lines of a cell. All but the first are indented.
func (l *layout) appendField(b *strings.Builder, header, cell string) {
	indent := l.names + len(separator)
	if indent > l.width/2 {
		indent = len(separator)
	}
	lines := wrap(cell, max(1, l.width-indent), maxRecordLines+1)
	if len(lines) > maxRecordLines {
		lines = append(lines[:maxRecordLines-1], "…")
	}
	head := pad(header, indent)
	if Width(head) > indent {
		b.WriteString(header + "\n")
		head = pad("", indent)
		if cell == "" {
			return
		}
	}
	for _, line := range lines {
		b.WriteString(strings.TrimRight(head+line, " ") + "\n")
		head = pad("", indent)
	}
}
