package transfer

import (
	"bytes"
	"fmt"
)

// cell is one cell of a CSV record. Text is valid until the next record.
type cell struct {
	text   []byte
	quoted bool // distinguishes "", an empty value, from an empty cell, no value
}

// span is the range of a cell: in the record, or if unescaped, in scratch.
type span struct {
	start, end int
	quoted     bool
	unescaped  bool
}

// csvReader parses CSV strictly by RFC 4180: quotes enclose a whole cell, and a quote
// in a quoted cell is doubled. Lines end in LF or CR LF; quoted cells may contain both.
// Empty lines are skipped.
type csvReader struct {
	in        *input
	delimiter byte
	spans     []span
	cells     []cell
	scratch   []byte
}

// next returns the cells of the next record and its first and last line. The cells
// are valid until the next call. After an error for which isRowError is true, the next call
// returns the following record. At the end of the file next returns no cells and no error.
func (c *csvReader) next() (cells []cell, first, last int64, err error) {
	for {
		first = c.in.line
		n, err := c.in.extend(0)
		if err != nil {
			if err == errTooLong { // in one line, which is skipped
				if skipErr := c.in.skipLine(); skipErr != nil {
					err = skipErr
				}
			}
			return nil, first, first, err
		}
		if n == 0 {
			return nil, first, first, nil
		}
		if len(trimLineEnd(c.in.view(n))) > 0 {
			cells, last, err = c.record(n)
			return cells, first, last, err
		}
		c.in.consume(n, 1)
	}
}

// record parses the record whose first line has n bytes.
func (c *csvReader) record(n int) (cells []cell, last int64, err error) {
	c.spans, c.scratch = c.spans[:0], c.scratch[:0]
	lines := int64(1)
	for i, more := 0, true; more; {
		if i < n && c.in.view(n)[i] == '"' {
			n, i, more, err = c.quoted(n, i, &lines)
		} else {
			i, more, err = c.plain(c.in.view(n), i)
		}
		if err == nil && len(c.spans) > maxColumns {
			err = invalid("more than %d cells", maxColumns)
		}
		if err != nil {
			last = c.in.line + lines - 1
			c.in.consume(n, lines)
			return nil, last, err
		}
	}
	last = c.in.line + lines - 1
	view := c.in.view(n)
	c.cells = c.cells[:0]
	for _, s := range c.spans {
		from := view
		if s.unescaped {
			from = c.scratch
		}
		c.cells = append(c.cells, cell{from[s.start:s.end:s.end], s.quoted})
	}
	c.in.consume(n, lines)
	return c.cells, last, nil
}

// plain parses the unquoted cell at i of a line. It returns the start of the next cell,
// and whether there is one.
func (c *csvReader) plain(line []byte, i int) (next int, more bool, err error) {
	end := len(trimLineEnd(line))
	if k := bytes.IndexByte(line[i:end], c.delimiter); k >= 0 {
		end, more = i+k, true
	}
	if bytes.IndexByte(line[i:end], '"') >= 0 {
		return 0, false, invalid("a quote inside unquoted cell %d; quote the whole cell and write \"\" for each quote", len(c.spans)+1)
	}
	c.spans = append(c.spans, span{start: i, end: end})
	return end + 1, more, nil
}

// unclosed returns the error of a quote that was opened in a line and is not closed in the
// lines of the record, which are all up to the end of the file, or as many as a record can
// have. It ends the file: the lines that follow can be records or the text of the cell, and
// to read them as records could import that text.
func (c *csvReader) unclosed(opened, lines int64, tooLong bool) error {
	const correct = "correct that line"
	if tooLong {
		return brokenFile("line %d and all lines after it are not imported: the quote opened in line %d is not closed in the %d bytes of a record; %s",
			c.in.line, opened, MaxRecordBytes, correct)
	}
	of := lineRange{c.in.line, c.in.line + lines - 1}
	return brokenFile("%s not imported: the quote opened in line %d is not closed; %s", of.are(), opened, correct)
}

// quoted parses the quoted cell at i of a record, of which n bytes are in view. If the
// cell continues, it extends the view by more lines. It returns the end of the view,
// the start of the next cell, and whether there is one.
func (c *csvReader) quoted(n, i int, lines *int64) (end, next int, more bool, err error) {
	s := span{start: i + 1, quoted: true}
	from, opened := len(c.scratch), c.in.line+*lines-1
	for at := s.start; ; {
		k := bytes.IndexByte(c.in.view(n)[at:], '"')
		if k < 0 {
			m, err := c.in.extend(n)
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
		view := c.in.view(n)
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
		if opened < c.in.line+*lines-1 {
			where = fmt.Sprintf(", which was opened in line %d", opened)
		}
		return n, 0, false, invalid("text after the closing quote of cell %d%s; quote the whole cell and write \"\" for each quote", len(c.spans), where)
	}
}
