package filter

import (
	"encoding/hex"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tablerock-db/tablerock/edm"
)

// lexer splits a filter into tokens, in one pass.
type lexer struct {
	text string // valid UTF-8
	pos  int    // of the next token
}

// next returns the next token.
func (l *lexer) next() (token, *Error) {
	l.skipBlanks()
	if l.pos == len(l.text) {
		return token{kind: tokenEnd, pos: l.pos, end: l.pos}, nil
	}
	switch c := l.text[l.pos]; c {
	case '(':
		return l.mark(tokenOpen), nil
	case ')':
		return l.mark(tokenClose), nil
	case ',', '/', '.', '*', '?', ':':
		return l.mark(tokenMark), nil
	case '=':
		return l.mark(tokenArithmetic), nil
	case '\'':
		return l.quoted(l.pos, edm.TypeString)
	case '-':
		return l.minus()
	default:
		if isDigit(c) {
			return l.number(l.pos)
		}
		if n := nameLen(l.text[l.pos:]); n > 0 {
			return l.word(n)
		}
	}
	return token{}, characterError(l.text, l.pos)
}

func (l *lexer) skipBlanks() {
	for l.pos < len(l.text) {
		r, n := utf8.DecodeRuneInString(l.text[l.pos:])
		if !unicode.IsSpace(r) {
			return
		}
		l.pos += n
	}
}

// mark returns the token of one character.
func (l *lexer) mark(kind tokenKind) token {
	l.pos++
	return token{kind: kind, pos: l.pos - 1, end: l.pos}
}

// literal returns the token of the literal from start to l.pos.
func (l *lexer) literal(start int, v edm.Value) (token, *Error) {
	return token{kind: tokenLiteral, pos: start, end: l.pos, value: v}, nil
}

// word returns the token of a name of n bytes, or of the literal that it begins.
func (l *lexer) word(n int) (token, *Error) {
	start := l.pos
	l.pos += n
	name := l.text[start:l.pos]
	if strings.HasPrefix(l.text[l.pos:], "'") {
		switch name {
		case "datetime":
			return l.quoted(start, edm.TypeDateTime)
		case "guid":
			return l.quoted(start, edm.TypeGuid)
		case "X", "binary":
			return l.quoted(start, edm.TypeBinary)
		}
	}
	switch name {
	case "true", "True":
		return l.literal(start, edm.Boolean(true))
	case "false", "False":
		return l.literal(start, edm.Boolean(false))
	case "INF":
		return l.literal(start, edm.Double(math.Inf(1)))
	case "NaN":
		return l.literal(start, edm.Double(math.NaN()))
	case "null":
		return token{kind: tokenNull, pos: start, end: l.pos}, nil
	}
	return token{kind: tokenName, pos: start, end: l.pos}, nil
}

// quoted returns the token of a literal whose opening quote is at l.pos. The literal
// begins at start, with its type unless it is a string.
func (l *lexer) quoted(start int, t edm.Type) (token, *Error) {
	l.pos++
	open := l.pos
	doubled := false
	for {
		n := strings.IndexByte(l.text[l.pos:], '\'')
		if n < 0 {
			words := wordsUnterminated
			if t == edm.TypeString {
				words = wordsUnterminatedString
			}
			return token{}, syntaxError(l.text, len(l.text), words)
		}
		l.pos += n + 1
		if !strings.HasPrefix(l.text[l.pos:], "'") {
			break
		}
		l.pos++
		doubled = true
	}
	s := l.text[open : l.pos-1]
	if doubled {
		s = strings.ReplaceAll(s, "''", "'")
	}
	v, ok := quotedValue(s, t)
	if !ok {
		return token{}, literalError(l.text, start, l.pos, t)
	}
	return l.literal(start, v)
}

// quotedValue converts the text between quotes to a value of type t.
func quotedValue(s string, t edm.Type) (edm.Value, bool) {
	switch t {
	case edm.TypeDateTime:
		return ParseDateTime(s)
	case edm.TypeGuid:
		g, err := edm.ParseGUID(s)
		return edm.Guid(g), err == nil
	case edm.TypeBinary:
		b, err := hex.DecodeString(s)
		return edm.Binary(b), err == nil
	}
	return edm.String(s), true
}

// ParseDateTime parses the text of a DateTime in a filter. Beside the forms of edm.ParseTicks it
// accepts a date alone and a time without seconds, as the service does: the Ruby client sends
// a date alone. Clients compare with the year 1, their minimum, although the store has no time
// before 1601: all such times give one value.
func ParseDateTime(s string) (edm.Value, bool) {
	s = completeTime(s)
	t, err := edm.ParseTicks(s)
	if err == nil {
		return edm.DateTime(t), true
	}
	var outside *edm.Error
	if errors.As(err, &outside) && s >= textBeforeMin[:4] && s[0] < '9' {
		return edm.DateTime(edm.MinTicks - 1), true
	}
	return edm.Value{}, false
}

// completeTime adds the time to a date alone, and the seconds to a time of hours and minutes,
// with an offset or none. It returns any other text as it is.
func completeTime(s string) string {
	const date, minutes = len("2006-01-02"), len("2006-01-02T15:04")
	switch {
	case len(s) == date, len(s) > date && strings.IndexByte("Z+-", s[date]) >= 0:
		return s[:date] + "T00:00:00" + s[date:]
	case len(s) == minutes, len(s) > minutes && strings.IndexByte("Z+-", s[minutes]) >= 0:
		return s[:minutes] + ":00" + s[minutes:]
	}
	return s
}

// minus returns the token of a negative number, or of the sign alone.
func (l *lexer) minus() (token, *Error) {
	start := l.pos
	rest := l.text[start+1:]
	if rest != "" && isDigit(rest[0]) {
		l.pos++
		return l.number(start)
	}
	if nameLen(rest) == len("INF") && strings.HasPrefix(rest, "INF") {
		l.pos += 1 + len("INF")
		return l.literal(start, edm.Double(math.Inf(-1)))
	}
	return l.mark(tokenArithmetic), nil
}

// number returns the token of a number that begins at start, with its first digit at
// l.pos:
//
//	number = [ "-" ] digits [ "." digits ] [ ( "e" | "E" ) [ "+" | "-" ] digits ] [ suffix ] ;
//	suffix = "L" | "l" | "D" | "d" | "F" | "f" | "M" | "m" ;
func (l *lexer) number(start int) (token, *Error) {
	t := edm.TypeInt32
	l.skipDigits()
	if l.at(".") {
		t = edm.TypeDouble
		l.pos++
		if !l.skipDigits() {
			return token{}, syntaxError(l.text, l.pos, wordsDigit)
		}
	}
	if l.at("eE") {
		t = edm.TypeDouble
		l.pos++
		if l.at("+-") {
			l.pos++
		}
		if !l.skipDigits() {
			return token{}, syntaxError(l.text, l.pos, wordsDigit)
		}
	}
	digits := l.text[start:l.pos]
	switch {
	case l.at("Ll"):
		t = edm.TypeInt64
		l.pos++
	case l.at("DdFfMm"):
		t = edm.TypeDouble
		l.pos++
	}
	v, err := numberValue(digits, t)
	if err != nil {
		return token{}, literalError(l.text, start, l.pos, t)
	}
	return l.literal(start, v)
}

// at reports whether the next character is one of chars.
func (l *lexer) at(chars string) bool {
	return l.pos < len(l.text) && strings.IndexByte(chars, l.text[l.pos]) >= 0
}

// skipDigits skips digits and reports whether there were any.
func (l *lexer) skipDigits() bool {
	start := l.pos
	for l.pos < len(l.text) && isDigit(l.text[l.pos]) {
		l.pos++
	}
	return l.pos > start
}

// numberValue converts digits to a value of type t.
func numberValue(digits string, t edm.Type) (edm.Value, error) {
	switch t {
	case edm.TypeInt32:
		n, err := strconv.ParseInt(digits, 10, 32)
		return edm.Int32(int32(n)), err
	case edm.TypeInt64:
		n, err := strconv.ParseInt(digits, 10, 64)
		return edm.Int64(n), err
	}
	f, err := strconv.ParseFloat(digits, 64)
	return edm.Double(f), err
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// The Unicode classes of the characters in the name of a property: nameStart and _
// may begin it, namePart may follow too.
var (
	nameStart = []*unicode.RangeTable{unicode.Lu, unicode.Ll, unicode.Lt, unicode.Lm, unicode.Lo, unicode.Nl}
	namePart  = []*unicode.RangeTable{unicode.Nd, unicode.Pc, unicode.Mn, unicode.Mc, unicode.Cf}
)

// nameLen returns the length of the name at the start of s, 0 if there is none.
func nameLen(s string) int {
	for i, r := range s {
		if r < utf8.RuneSelf {
			c := byte(r)
			if 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' || i > 0 && isDigit(c) {
				continue
			}
			return i
		}
		if !unicode.In(r, nameStart...) && (i == 0 || !unicode.In(r, namePart...)) {
			return i
		}
	}
	return len(s)
}
