package transfer

import "bytes"

// cell is one cell of a CSV record. Text is valid until the next record.
type cell struct {
	text   []byte
	quoted bool // "" is a cell, nothing at all is none
}

// span is where a cell stands: in the record, or unescaped in the scratch.
type span struct {
	start, end int
	quoted     bool
	unescaped  bool
}

// csvReader takes CSV apart by RFC 4180, strictly: quotes stand around a whole
// cell, and within it a quote stands twice. Lines end in LF or CR LF, cells in
// quotes may hold both; empty lines are passed over.
type csvReader struct {
	in        *input
	delimiter byte
	spans     []span
	cells     []cell
	scratch   []byte
}

// next returns the cells of a record and the lines it stands on. The cells are
// valid until the next call. An error that is edm.ErrInvalid is the fault of
// this record alone, which is taken; io.EOF ends the file, reported by an empty
// record.
func (c *csvReader) next() (cells []cell, first, last int64, err error) {
	for {
		first = c.in.line
		n, err := c.in.extend(0)
		if err != nil {
			return nil, first, first, c.failed(err)
		}
		if n == 0 {
			return nil, first, first, nil
		}
		if len(trimEnd(c.in.view(n))) > 0 {
			cells, last, err = c.record(n)
			return cells, first, last, err
		}
		c.in.take(n, 1)
	}
}

// failed drops the rest of a record that is too long, up to the end of a line.
func (c *csvReader) failed(err error) error {
	if err == errTooLong {
		if dropErr := c.in.drop(); dropErr != nil {
			return dropErr
		}
	}
	return err
}

// record splits the record whose first line has n bytes.
func (c *csvReader) record(n int) (cells []cell, last int64, err error) {
	c.spans, c.scratch = c.spans[:0], c.scratch[:0]
	lines := int64(1)
	for i, more := 0, true; more; {
		if i < n && c.in.view(n)[i] == '"' {
			opened := c.in.line + lines - 1
			var m int
			m, i, more, err = c.quoted(n, i, &lines)
			if err == errUnclosed {
				err = invalid("the quote that opens in line %d is never closed", opened)
			}
			n = m
		} else {
			i, more, err = c.plain(c.in.view(n), i)
		}
		if err == nil && len(c.spans) > maxColumns {
			err = invalid("more than %d cells", maxColumns)
		}
		if err != nil {
			last = c.in.line + lines - 1
			c.in.take(n, lines)
			return nil, last, c.failed(err)
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
	c.in.take(n, lines)
	return c.cells, last, nil
}

// plain takes the cell without quotes at i of a line, and returns where the next
// one begins, if there is more.
func (c *csvReader) plain(line []byte, i int) (next int, more bool, err error) {
	end := len(trimEnd(line))
	if k := bytes.IndexByte(line[i:end], c.delimiter); k >= 0 {
		end, more = i+k, true
	}
	if bytes.IndexByte(line[i:end], '"') >= 0 {
		return 0, false, invalid("a quote within cell %d, which does not begin with one; put the cell in quotes and write \"\" for each quote in it", len(c.spans)+1)
	}
	c.spans = append(c.spans, span{start: i, end: end})
	return end + 1, more, nil
}

var errUnclosed = invalid("a quote is never closed")

// quoted takes the cell in quotes at i of a record of which n bytes are in view.
// It brings more lines into view as the cell goes on, and returns their end,
// and where the next cell begins, if there is more.
func (c *csvReader) quoted(n, i int, lines *int64) (end, next int, more bool, err error) {
	s := span{start: i + 1, quoted: true}
	from := len(c.scratch)
	for at := s.start; ; {
		k := bytes.IndexByte(c.in.view(n)[at:], '"')
		if k < 0 {
			m, err := c.in.extend(n)
			if err == nil && m == n {
				err = errUnclosed
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
		rest := trimEnd(view[k+1:])
		switch {
		case len(rest) == 0:
			return n, n, false, nil
		case rest[0] == c.delimiter:
			return n, k + 2, true, nil
		}
		return n, 0, false, invalid("text behind the closing quote of cell %d; put the whole cell in quotes and write \"\" for each quote in it", len(c.spans))
	}
}
