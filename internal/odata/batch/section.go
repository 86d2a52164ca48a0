package batch

import "bytes"

// delimiter is the line that ends a section.
type delimiter uint8

const (
	noDelimiter  delimiter = iota // the text ends without a boundary
	boundaryLine                  // a boundary
	closingLine                   // the closing boundary, with dashes after it
)

// dashes precede every boundary and follow the last one.
const dashes = "--"

// sections splits a text at the lines of a boundary.
type sections struct {
	rest   []byte
	mark   []byte // the boundary with the preceding line end and dashes
	anchor int    // the index of a byte of mark that is rare in other text
}

// newSections returns the sections of a text. Most clients have an underscore in their
// boundaries, as in batch_a1. Bodies have fewer of them than line ends, and of these
// fewer than dashes. With the line end as the anchor, a batch needs 2 % more CPU time
// (bench/endpoint).
func newSections(text []byte, boundary string) *sections {
	mark := []byte("\n" + dashes + boundary)
	return &sections{text, mark, max(0, bytes.IndexByte(mark, '_'))}
}

// find returns the index of the first mark in text, -1 if there is none.
func (s *sections) find(text []byte) int {
	for at := s.anchor; at < len(text); at++ {
		i := bytes.IndexByte(text[at:], s.mark[s.anchor])
		if i < 0 {
			return -1
		}
		at += i
		if from := at - s.anchor; bytes.HasPrefix(text[from:], s.mark) {
			return from
		}
	}
	return -1
}

// next returns the text before the next line of the boundary.
func (s *sections) next() (section []byte, end delimiter) {
	text := s.rest
	from, at := 0, 0 // offsets of a line that starts with the boundary, and of the text after the boundary
	if bytes.HasPrefix(text, s.mark[1:]) {
		at = len(s.mark) - 1
	}
	for {
		if at > 0 {
			line, after := cutLine(text[at:])
			if d := delimiterOf(line); d != noDelimiter {
				s.rest = after
				return text[:from], d
			}
		}
		i := s.find(text[at:])
		if i < 0 {
			s.rest = nil
			return text, noDelimiter
		}
		from = at + i + 1
		at += i + len(s.mark)
	}
}

// delimiterOf returns the kind of a boundary's line, given the text after the boundary.
// Trailing blanks are valid.
func delimiterOf(line []byte) delimiter {
	is := boundaryLine
	if bytes.HasPrefix(line, []byte(dashes)) {
		is, line = closingLine, line[len(dashes):]
	}
	for _, c := range line {
		if c != ' ' && c != '\t' {
			return noDelimiter
		}
	}
	return is
}

// cutLine returns the first line of text, without its line end, and the rest.
func cutLine(text []byte) (line, after []byte) {
	line = text
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		line, after = text[:i], text[i+1:]
	}
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line, after
}

// cutHeader returns the lines of text before the first empty line, and the rest after
// it. Without an empty line, the header is all of text and after is nil.
func cutHeader(text []byte) (header, after []byte) {
	after = text
	for len(after) > 0 {
		from := len(text) - len(after)
		var line []byte
		if line, after = cutLine(after); len(line) == 0 {
			return text[:from], after
		}
	}
	return text, nil
}

// skipEmpty removes leading empty lines from text.
func skipEmpty(text []byte) []byte {
	for len(text) > 0 && (text[0] == '\n' || text[0] == '\r') {
		line, after := cutLine(text)
		if len(line) > 0 {
			break
		}
		text = after
	}
	return text
}
