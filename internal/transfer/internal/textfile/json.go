package textfile

import (
	"bytes"
	"encoding/json"
	"io"
)

// JSON splits JSON text of any size into values. It checks the structure of a value as far as
// needed to find its end.
type JSON struct{ r *Reader }

// NewJSON returns the values of r.
func NewJSON(r *Reader) JSON { return JSON{r} }

// IsArray reports whether the next value is an array. At the end of the file there is none.
func (j JSON) IsArray() (bool, error) {
	c, err := j.peek()
	if err == errTruncated {
		err = nil
	}
	return c == '[', err
}

// Object consumes an object. It calls member with each name to consume the value.
func (j JSON) Object(member func(name string) error) error {
	return j.list('{', '}', func() error {
		c, err := j.peek()
		if err != nil {
			return err
		}
		if c != '"' {
			return j.syntax(c, "the name of a member")
		}
		name := ""
		if err := j.Decode(&name); err != nil {
			return err
		}
		if err := j.expect(':'); err != nil {
			return err
		}
		return member(name)
	})
}

// Array consumes an array. It calls item to consume each item.
func (j JSON) Array(item func() error) error { return j.list('[', ']', item) }

func (j JSON) list(open, end byte, item func() error) error {
	if err := j.expect(open); err != nil {
		return err
	}
	for first := true; ; first = false {
		c, err := j.peek()
		switch {
		case err != nil:
			return err
		case c == end:
			j.r.consume(1, 0)
			return nil
		case !first:
			if err := j.expect(','); err != nil {
				return err
			}
		}
		if err := item(); err != nil {
			return err
		}
	}
}

// Decode consumes the next value and stores it in to, as json.Unmarshal does.
func (j JSON) Decode(to any) error {
	text, err := j.value()
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

// value consumes the next value and returns its text. A value that is too long is consumed all
// the same.
func (j JSON) value() ([]byte, error) {
	if _, err := j.peek(); err != nil {
		return nil, err
	}
	var e valueEnd
	n := 0
	for {
		rest := j.r.buf[j.r.from+n : j.r.end]
		i, found := e.find(rest)
		n += i
		switch {
		case n > MaxRecordBytes:
			j.r.consume(n, int64(bytes.Count(j.r.view(n), []byte{'\n'})))
			if !found {
				if err := j.skipRest(&e); err != nil {
					return nil, err
				}
			}
			return nil, errTooLong
		case found:
			text := j.r.view(n)
			j.r.consume(n, int64(bytes.Count(text, []byte{'\n'})))
			return text, nil
		}
		if err := j.r.more(); err != nil {
			return nil, err
		}
	}
}

// Skip consumes the next value, of any size.
func (j JSON) Skip() error {
	if _, err := j.peek(); err != nil {
		return err
	}
	return j.skipRest(new(valueEnd))
}

// skipRest consumes the rest of a value whose start e has seen.
func (j JSON) skipRest(e *valueEnd) error {
	for {
		rest := j.r.buf[j.r.from:j.r.end]
		n, found := e.find(rest)
		j.r.consume(n, int64(bytes.Count(rest[:n], []byte{'\n'})))
		if found {
			return nil
		}
		if err := j.r.more(); err != nil {
			return err
		}
	}
}

// peek skips white space and returns the next byte. At the end of the file it returns
// errTruncated.
func (j JSON) peek() (byte, error) {
	for {
		rest := j.r.buf[j.r.from:j.r.end]
		for i, c := range rest {
			switch c {
			case '\n':
				j.r.line++
			case ' ', '\t', '\r':
			default:
				j.r.from += i
				return c, nil
			}
		}
		j.r.from = j.r.end
		if err := j.r.more(); err != nil {
			return 0, err
		}
	}
}

// expect consumes the next byte after white space, which must be c.
func (j JSON) expect(c byte) error {
	got, err := j.peek()
	if err != nil {
		return err
	}
	if got != c {
		return j.syntax(got, string(c))
	}
	j.r.consume(1, 0)
	return nil
}

// syntax returns the error for a byte that is not what the JSON text needs.
func (j JSON) syntax(got byte, want string) error {
	return badFile("line %d: JSON syntax: %q where %s is expected", j.r.line, got, want)
}

// more reads more bytes after those in view.
func (r *Reader) more() error {
	if r.err == nil {
		r.fill()
		return nil
	}
	if r.err == io.EOF {
		return errTruncated
	}
	return r.err
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
