package textfile

import (
	"bytes"
	"fmt"
)

// MaxCells limits the cells of a row of CSV.
const MaxCells = 100_000

// Cell is one cell of a row of CSV.
type Cell struct {
	Text   []byte
	Quoted bool // distinguishes "", an empty value, from an empty cell, no value
}

// span is the range of a cell: in the record, or if unescaped, in scratch.
type span struct {
	start, end int
	quoted     bool
	unescaped  bool
}

// CSV parses CSV strictly by RFC 4180: quotes enclose a whole cell, and a quote in a quoted
// cell is doubled. Lines end in LF or CR LF; quoted cells may contain both. Empty lines are
// skipped.
type CSV struct {
	r         *Reader
	delimiter byte
	spans     []span
	cells     []Cell
	scratch   []byte
}

// NewCSV returns the rows of r, whose cells end in a delimiter.
func NewCSV(r *Reader, delimiter byte) *CSV { return &CSV{r: r, delimiter: delimiter} }

// Next returns the cells of the next row and its first and last line, also with an error. At
// the end of the file the error is io.EOF.
func (c *CSV) Next() (cells []Cell, first, last int64, err error) {
	for {
		first = c.r.line
		n, err := c.r.extendLine()
		if err != nil {
			return nil, first, first, err
		}
		if len(trimLineEnd(c.r.view(n))) > 0 {
			cells, last, err = c.record(n)
			return cells, first, last, err
		}
		c.r.consume(n, 1)
	}
}

// record parses the record whose first line has n bytes.
func (c *CSV) record(n int) (cells []Cell, last int64, err error) {
	c.spans, c.scratch = c.spans[:0], c.scratch[:0]
	lines := int64(1)
	for i, more := 0, true; more; {
		if i < n && c.r.view(n)[i] == '"' {
			n, i, more, err = c.quoted(n, i, &lines)
		} else {
			i, more, err = c.plain(c.r.view(n), i)
		}
		if err == nil && len(c.spans) > MaxCells {
			err = badRecord("more than %d cells", MaxCells)
		}
		if err != nil {
			last = c.r.line + lines - 1
			c.r.consume(n, lines)
			return nil, last, err
		}
	}
	last = c.r.line + lines - 1
	view := c.r.view(n)
	c.cells = c.cells[:0]
	for _, s := range c.spans {
		from := view
		if s.unescaped {
			from = c.scratch
		}
		c.cells = append(c.cells, Cell{from[s.start:s.end:s.end], s.quoted})
	}
	c.r.consume(n, lines)
	return c.cells, last, nil
}

// plain parses the unquoted cell at i of a line. It returns the start of the next cell,
// and whether there is one.
func (c *CSV) plain(line []byte, i int) (next int, more bool, err error) {
	end := len(trimLineEnd(line))
	if k := bytes.IndexByte(line[i:end], c.delimiter); k >= 0 {
		end, more = i+k, true
	}
	if bytes.IndexByte(line[i:end], '"') >= 0 {
		return 0, false, badRecord("a quote inside unquoted cell %d; quote the whole cell and write \"\" for each quote", len(c.spans)+1)
	}
	c.spans = append(c.spans, span{start: i, end: end})
	return end + 1, more, nil
}

// unclosed returns the error of a quote that was opened in a line and is not closed in the
// lines of the record, which are all up to the end of the file, or as many as a record can
// have. It ends the file: the lines that follow can be records or the text of the cell, and
// to read them as records could import that text.
func (c *CSV) unclosed(opened, lines int64, tooLong bool) error {
	const correct = "correct that line"
	if tooLong {
		return badFile("line %d and all lines after it are not imported: the quote opened in line %d is not closed in the %d bytes of a record; %s",
			c.r.line, opened, MaxRecordBytes, correct)
	}
	which := fmt.Sprintf("line %d is", c.r.line)
	if lines > 1 {
		which = fmt.Sprintf("lines %d to %d are", c.r.line, c.r.line+lines-1)
	}
	return badFile("%s not imported: the quote opened in line %d is not closed; %s", which, opened, correct)
}

// quoted parses the quoted cell at i of a record, of which n bytes are in view. If the
// cell continues, it extends the view by more lines. It returns the end of the view,
// the start of the next cell, and whether there is one.
func (c *CSV) quoted(n, i int, lines *int64) (end, next int, more bool, err error) {
	s := span{start: i + 1, quoted: true}
	from, opened := len(c.scratch), c.r.line+*lines-1
	for at := s.start; ; {
		k := bytes.IndexByte(c.r.view(n)[at:], '"')
		if k < 0 {
			m, err := c.r.extend(n)
			if err == errTooLong || err == nil && m == n {
				err = c.unclosed(opened, *lines, err == errTooLong)
			}
			if err != nil {
				return n, 0, false, err
			}
			at, n = n, m
			*lines++
			continue
		}
		k += at
		view := c.r.view(n)
		if k+1 < n && view[k+1] == '"' {
			c.scratch = append(c.scratch, view[s.start:k+1]...)
			s.start, s.unescaped = k+2, true
			at = k + 2
			continue
		}
		s.end = k
		if s.unescaped {
			c.scratch = append(c.scratch, view[s.start:k]...)
			s.start, s.end = from, len(c.scratch)
		}
		c.spans = append(c.spans, s)
		rest := trimLineEnd(view[k+1:])
		switch {
		case len(rest) == 0:
			return n, n, false, nil
		case rest[0] == c.delimiter:
			return n, k + 2, true, nil
		}
		where := ""
		if opened < c.r.line+*lines-1 {
			where = fmt.Sprintf(", which was opened in line %d", opened)
		}
		return n, 0, false, badRecord("text after the closing quote of cell %d%s; quote the whole cell and write \"\" for each quote", len(c.spans), where)
	}
}
