package textfile

import "io"

// Items reads the items of an array one by one.
type Items struct {
	json    JSON
	whole   bool
	started bool
	ended   bool
	first   int64 // line of the item
}

// Items returns the items of the next value, which must be an array. With whole, nothing may
// follow the array.
func (j JSON) Items(whole bool) *Items { return &Items{json: j, whole: whole} }

// Next returns the text of the next item, and its first and last line, also with an error that
// is not final. At the end of the array the error is io.EOF.
func (s *Items) Next() (text []byte, first, last int64, err error) {
	text, err = s.next()
	return text, s.first, s.json.r.line, err
}

func (s *Items) next() ([]byte, error) {
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
		s.json.r.consume(1, 0)
		s.ended = true
		return nil, s.end()
	case first:
	case c != ',':
		return nil, s.json.syntax(c, "a comma or the end of the array")
	default:
		s.json.r.consume(1, 0)
		if c, err = s.json.peek(); err != nil {
			return nil, err
		}
	}
	if c == ']' || c == ',' || c == '}' || c == ':' {
		return nil, s.json.syntax(c, "an entity")
	}
	s.first = s.json.r.line
	return s.json.value()
}

// end returns io.EOF if nothing follows an array that is the whole text.
func (s *Items) end() error {
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
