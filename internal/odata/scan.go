package odata

import (
	"math/bits"
	"unicode/utf8"
)

// tokenKind is the kind of a JSON value.
type tokenKind uint8

const (
	tokenNone tokenKind = iota
	tokenNull
	tokenFalse
	tokenTrue
	tokenInteger // a number without decimal point and exponent
	tokenDecimal // any other number
	tokenText
	tokenSkipped // a value that the parser ignores
)

// token is one value within the JSON.
type token struct {
	kind       tokenKind
	escaped    bool // a string with escapes
	start, end int  // a string without its quotes
}

// scanner scans the tokens of src. It keeps the first error in err and finds no
// tokens after it.
type scanner struct {
	src []byte
	pos int
	err *Error
}

// fail records an error at the offset at.
func (s *scanner) fail(at int, what string) {
	if s.err == nil {
		s.err = &Error{Kind: Malformed, Offset: at, What: what}
		s.pos = len(s.src)
	}
}

// next skips white space and returns the following byte without consuming it, or 0
// at the end.
func (s *scanner) next() byte {
	for ; s.pos < len(s.src); s.pos++ {
		switch c := s.src[s.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// expect consumes the byte c, or fails with a message that names want.
func (s *scanner) expect(c byte, want string) {
	if s.next() == c && s.pos < len(s.src) {
		s.pos++
		return
	}
	s.unexpected(want)
}

// unexpected fails at pos.
func (s *scanner) unexpected(want string) {
	if s.pos >= len(s.src) {
		s.fail(len(s.src), "the JSON ends before "+want)
		return
	}
	_, n := utf8.DecodeRune(s.src[s.pos:])
	s.fail(s.pos, "found "+quote(s.src[s.pos:s.pos+n])+", want "+want)
}

// value scans a scalar value.
func (s *scanner) value() token {
	switch c := s.next(); {
	case c == '"':
		return s.text()
	case c == '-' || '0' <= c && c <= '9':
		return s.number()
	case c == '{' || c == '[':
		s.fail(s.pos, "found an object or array, want a string, a number, true, false or null")
		return token{}
	}
	return s.literal()
}

// literal scans null, true or false.
func (s *scanner) literal() token {
	for _, l := range [...]struct {
		word string
		kind tokenKind
	}{{"null", tokenNull}, {"true", tokenTrue}, {"false", tokenFalse}} {
		end := s.pos + len(l.word)
		if end <= len(s.src) && string(s.src[s.pos:end]) == l.word {
			t := token{kind: l.kind, start: s.pos, end: end}
			s.pos = end
			return t
		}
	}
	s.unexpected("a value")
	return token{}
}

// number scans a number by the grammar of JSON.
func (s *scanner) number() token {
	t := token{kind: tokenInteger, start: s.pos}
	i := s.pos
	if s.src[i] == '-' {
		i++
	}
	first := i
	i = s.digits(i)
	switch {
	case i == first:
		s.fail(s.pos, "a number without digits")
		return token{}
	case s.src[first] == '0' && i > first+1:
		s.fail(s.pos, "a number with a leading zero")
		return token{}
	}
	if i < len(s.src) && s.src[i] == '.' {
		t.kind = tokenDecimal
		from := i + 1
		if i = s.digits(from); i == from {
			s.fail(s.pos, "a number without a digit after its decimal point")
			return token{}
		}
	}
	if i < len(s.src) && s.src[i]|0x20 == 'e' {
		t.kind = tokenDecimal
		from := i + 1
		if from < len(s.src) && (s.src[from] == '+' || s.src[from] == '-') {
			from++
		}
		if i = s.digits(from); i == from {
			s.fail(s.pos, "a number without a digit in its exponent")
			return token{}
		}
	}
	t.end, s.pos = i, i
	return t
}

// digits returns the end of the digits at i.
func (s *scanner) digits(i int) int {
	for i < len(s.src) && '0' <= s.src[i] && s.src[i] <= '9' {
		i++
	}
	return i
}

// text scans a string and checks all of it, so that decoding it cannot fail.
func (s *scanner) text() token {
	t := token{kind: tokenText, start: s.pos + 1}
	var high uint64 // the high bit of a byte is set if the string is not ASCII
	i := t.start
	for {
		n, read := plainWords(s.src[i:])
		i, high = i+n, high|read
		for i < len(s.src) && s.src[i] != '"' && s.src[i] != '\\' && s.src[i] >= ' ' {
			high |= uint64(s.src[i])
			i++
		}
		switch {
		case i >= len(s.src):
			s.fail(t.start-1, "a string without its closing quote")
			return token{}
		case s.src[i] == '"':
			return s.endText(t, i, high&highs != 0)
		case s.src[i] == '\\':
			n := s.escape(i)
			if n == 0 {
				return token{}
			}
			t.escaped = true
			i += n
		default:
			s.fail(i, "a control character in a string; write it as an escape such as \\n or \\u0001")
			return token{}
		}
	}
}

// plainWords returns the length of the prefix of src without specials, and the union
// of its bits. It examines pairs of words, so it excludes the last bytes of src that
// do not fill a pair.
func plainWords(src []byte) (n int, read uint64) {
	rest := src
	for ; len(rest) >= 16; rest = rest[16:] {
		v, w := load64(rest), load64(rest[8:])
		if m := specials(v); m != 0 {
			n := bits.TrailingZeros64(m) / 8
			return len(src) - len(rest) + n, read | v&(1<<(8*n)-1)
		}
		if m := specials(w); m != 0 {
			n := bits.TrailingZeros64(m) / 8
			return len(src) - len(rest) + 8 + n, read | v | w&(1<<(8*n)-1)
		}
		read |= v | w
	}
	return len(src) - len(rest), read
}

// endText ends the string t, whose closing quote is at end.
func (s *scanner) endText(t token, end int, high bool) token {
	t.end, s.pos = end, end+1
	if high && !utf8.Valid(s.src[t.start:end]) {
		at := t.start
		for {
			r, n := utf8.DecodeRune(s.src[at:])
			if r == utf8.RuneError && n <= 1 {
				break
			}
			at += n
		}
		s.fail(at, "invalid UTF-8")
		return token{}
	}
	return t
}

// escape returns the length of the escape at i, or 0 if it is invalid.
func (s *scanner) escape(i int) int {
	rest := s.src[i:]
	if len(rest) < 2 || rest[1] != 'u' && longEscape[rest[1]] == 0 {
		s.fail(i, "an unknown escape")
		return 0
	}
	if rest[1] != 'u' {
		return 2
	}
	u := hex4(rest[2:])
	switch {
	case u < 0:
		s.fail(i, "an escape \\u without four hexadecimal digits")
		return 0
	case u < 0xD800 || u >= 0xE000:
		return 6
	case u < 0xDC00 && len(rest) >= 12 && rest[6] == '\\' && rest[7] == 'u':
		if low := hex4(rest[8:]); 0xDC00 <= low && low < 0xE000 {
			return 12
		}
	}
	s.fail(i, "half of a surrogate pair")
	return 0
}

// maxDepth limits the nesting of values that the parser ignores.
const maxDepth = 32

// skip skips any value.
func (s *scanner) skip(depth int) {
	var closing byte
	switch s.next() {
	case '{':
		closing = '}'
	case '[':
		closing = ']'
	default:
		s.value()
		return
	}
	if depth == maxDepth {
		s.fail(s.pos, "a value that is nested too deeply")
		return
	}
	s.pos++
	if s.next() == closing {
		s.pos++
		return
	}
	for s.err == nil {
		if closing == '}' {
			s.name()
		}
		s.skip(depth + 1)
		if s.next() == ',' {
			s.pos++
			continue
		}
		s.expect(closing, "a comma or the end of the object or array")
		return
	}
}

// name scans the name of a member and the colon.
func (s *scanner) name() token {
	if s.next() != '"' {
		s.unexpected("the name of a member")
		return token{}
	}
	t := s.text()
	s.expect(':', "a colon")
	return t
}
