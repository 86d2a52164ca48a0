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
	mark   []byte // the dashes and the boundary
	anchor int    // the index of a byte of mark that is rare in other text
}

// newSections returns the sections of a text. Most clients have an underscore in their
// boundaries, as in batch_a1. Bodies have fewer of them than dashes.
func newSections(text []byte, boundary string) *sections {
	mark := []byte(dashes + boundary)
	return &sections{text, mark, max(0, bytes.IndexByte(mark, '_'))}
}

// find returns the index of the first mark in text, from at on, that begins a line or follows
// a brace, -1 if there is none: the C++ client sends no line end after a body. No other mark
// ends a body, in which only a brace can end an entity.
func (s *sections) find(text []byte, at int) int {
	for at += s.anchor; at < len(text); at++ {
		i := bytes.IndexByte(text[at:], s.mark[s.anchor])
		if i < 0 {
			return -1
		}
		at += i
		from := at - s.anchor
		if bytes.HasPrefix(text[from:], s.mark) && (from == 0 || text[from-1] == '\n' || text[from-1] == '}') {
			return from
		}
	}
	return -1
}

// next returns the text before the next line of the boundary.
func (s *sections) next() (section []byte, end delimiter) {
	text := s.rest
	for from := s.find(text, 0); from >= 0; from = s.find(text, from+len(s.mark)) {
		if end, after := cutDelimiter(text[from+len(s.mark):]); end != noDelimiter {
			s.rest = after
			return text[:from], end
		}
	}
	s.rest = nil
	return text, noDelimiter
}

// cutDelimiter returns the kind of a boundary, given the text after it, and the text after its
// line. Trailing blanks are valid.
func cutDelimiter(text []byte) (is delimiter, after []byte) {
	is = boundaryLine
	if rest, ok := bytes.CutPrefix(text, []byte(dashes)); ok {
		is, text = closingLine, rest
	}
	for len(text) > 0 && (text[0] == ' ' || text[0] == '\t') {
		text = text[1:]
	}
	text = bytes.TrimPrefix(text, []byte{'\r'})
	switch {
	case len(text) == 0:
		return is, nil
	case text[0] == '\n':
		return is, text[1:]
	}
	return noDelimiter, nil
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
