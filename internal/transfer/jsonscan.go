package transfer

import (
	"bytes"
	"io"
)

// jsonScanner splits a JSON text of any size into values. It checks the structure of a
// value as far as needed to find its end.
type jsonScanner struct{ in *input }

// errTruncated reports a JSON text that ends within a value.
var errTruncated = brokenFile("the JSON text ends before its end: the file is truncated; copy it again")

// more reads more bytes after those in view.
func (in *input) more() error {
	if in.err == nil {
		in.fill()
		return nil
	}
	if in.err == io.EOF {
		return errTruncated
	}
	return in.err
}

// peek skips white space and returns the next byte. At the end of the file it returns
// errTruncated.
func (s jsonScanner) peek() (byte, error) {
	for {
		rest := s.in.buf[s.in.from:s.in.end]
		for i, c := range rest {
			switch c {
			case '\n':
				s.in.line++
			case ' ', '\t', '\r':
			default:
				s.in.from += i
				return c, nil
			}
		}
		s.in.from = s.in.end
		if err := s.in.more(); err != nil {
			return 0, err
		}
	}
}

// expect consumes the next byte after white space, which must be c.
func (s jsonScanner) expect(c byte) error {
	got, err := s.peek()
	if err != nil {
		return err
	}
	if got != c {
		return s.syntax(got, string(c))
	}
	s.in.consume(1, 0)
	return nil
}

// syntax returns the error for a byte that is not what the JSON text needs.
func (s jsonScanner) syntax(got byte, want string) error {
	return brokenFile("line %d: JSON syntax: %q where %s is expected", s.in.line, got, want)
}

// value consumes the next value and returns its text, valid until the next call. After
// errTooLong the value is consumed all the same.
func (s jsonScanner) value() ([]byte, error) {
	if _, err := s.peek(); err != nil {
		return nil, err
	}
	var e valueEnd
	n := 0
	for {
		rest := s.in.buf[s.in.from+n : s.in.end]
		i, found := e.find(rest)
		n += i
		switch {
		case n > MaxRecordBytes:
			s.in.consume(n, int64(bytes.Count(s.in.view(n), []byte{'\n'})))
			if !found {
				if err := s.skipRest(&e); err != nil {
					return nil, err
				}
			}
			return nil, errTooLong
		case found:
			text := s.in.view(n)
			s.in.consume(n, int64(bytes.Count(text, []byte{'\n'})))
			return text, nil
		}
		if err := s.in.more(); err != nil {
			return nil, err
		}
	}
}

// skip consumes the next value, of any size.
func (s jsonScanner) skip() error {
	if _, err := s.peek(); err != nil {
		return err
	}
	return s.skipRest(new(valueEnd))
}

// skipRest consumes the rest of a value whose start e has seen.
func (s jsonScanner) skipRest(e *valueEnd) error {
	for {
		rest := s.in.buf[s.in.from:s.in.end]
		n, found := e.find(rest)
		s.in.consume(n, int64(bytes.Count(rest[:n], []byte{'\n'})))
		if found {
			return nil
		}
		if err := s.in.more(); err != nil {
			return err
		}
	}
}

// valueEnd finds the end of one JSON value in pieces of its text.
type valueEnd struct {
	depth   int
	started bool
	text    bool // within a string
	escaped bool // after a backslash in a string
	literal bool // within a number, true, false or null
}

// find returns the length of the value's part in b, and whether the value ends there. It
// must not be called again after the end.
func (e *valueEnd) find(b []byte) (n int, found bool) {
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch {
		case e.text:
			switch {
			case e.escaped:
				e.escaped = false
			case c == '\\':
				e.escaped = true
			case c == '"':
				e.text = false
				if e.depth == 0 {
					return i + 1, true
				}
			}
		case e.literal:
			if c == ',' || c == ']' || c == '}' || c == ':' || c <= ' ' {
				return i, true
			}
		case c == '"':
			e.text, e.started = true, true
		case c == '{' || c == '[':
			e.depth++
			e.started = true
		case c == '}' || c == ']':
			if e.depth--; e.depth <= 0 {
				return i + 1, true
			}
		case !e.started:
			e.started, e.literal = true, true
			if c == ',' || c == ':' {
				return i + 1, true // no value: the caller's parser refuses it
			}
		}
	}
	return len(b), false
}

// arraySource reads the entities of one JSON array.
type arraySource struct {
	parser  entityParser
	json    jsonScanner
	whole   bool // nothing may follow the array
	started bool
	ended   bool
	first   int64 // line of the item
}

func (s *arraySource) next() (Record, error) {
	text, err := s.item()
	rec := Record{First: s.first, Last: s.json.in.line}
	if err == nil {
		rec.Entity, err = s.parser.parse(text)
	}
	return rec, err
}

// item returns the text of the next item, valid until the next call. After errTooLong the
// item is consumed.
func (s *arraySource) item() ([]byte, error) {
	if s.ended {
		return nil, io.EOF
	}
	first := !s.started
	if first {
		if err := s.json.expect('['); err != nil {
			return nil, err
		}
		s.started = true
	}
	c, err := s.json.peek()
	switch {
	case err != nil:
		return nil, err
	case c == ']':
		s.json.in.consume(1, 0)
		s.ended = true
		return nil, s.end()
	case first:
	case c != ',':
		return nil, s.json.syntax(c, "a comma or the end of the array")
	default:
		s.json.in.consume(1, 0)
		if c, err = s.json.peek(); err != nil {
			return nil, err
		}
	}
	if c == ']' || c == ',' || c == '}' || c == ':' {
		return nil, s.json.syntax(c, "an entity")
	}
	s.first = s.json.in.line
	return s.json.value()
}

// end returns io.EOF if nothing follows an array that is the whole text.
func (s *arraySource) end() error {
	if !s.whole {
		return io.EOF
	}
	c, err := s.json.peek()
	switch {
	case err == errTruncated:
		return io.EOF
	case err != nil:
		return err
	}
	return s.json.syntax(c, "the end of the file, after the array,")
}
