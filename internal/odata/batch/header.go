package batch

import "strings"

// Field is a line of a header.
type Field struct{ Name, Value string }

// Header holds the fields of an operation in the order they were sent.
type Header []Field

// Is reports whether h and g are one header, in the same memory. Those of two parts
// are if they were sent with the same bytes, one right after the other.
func (h Header) Is(g Header) bool {
	return len(h) == len(g) && (len(h) == 0 || &h[0] == &g[0])
}

// Get returns the first value of the field called name, in any case, or "".
func (h Header) Get(name string) string {
	for i := range h {
		if equalFold(h[i].Name, name) {
			return h[i].Value
		}
	}
	return ""
}

// Count returns how many fields are called name, in any case.
func (h Header) Count(name string) int {
	n := 0
	for i := range h {
		if equalFold(h[i].Name, name) {
			n++
		}
	}
	return n
}

// Values returns the values of the fields called name, in any case, nil if there are
// none.
func (h Header) Values(name string) []string {
	var all []string
	for i := range h {
		if equalFold(h[i].Name, name) {
			all = append(all, h[i].Value)
		}
	}
	return all
}

// equalFold compares ASCII. strings.EqualFold also takes letters for equal that
// only look alike to it.
func equalFold(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c |= 0x20
	}
	return c
}

// token holds the characters of names of fields, parameters and methods.
var token = func() (t [256]bool) {
	for c := byte('0'); c <= 'z'; c++ {
		t[c] = c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c
	}
	for _, c := range "!#$%&'*+-.^_`|~" {
		t[c] = true
	}
	return t
}()

func isToken(s string) bool {
	for i := range len(s) {
		if !token[s[i]] {
			return false
		}
	}
	return s != ""
}

// isText reports whether s has no control character but tabs.
func isText(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7F {
			return false
		}
	}
	return true
}

// maxFields is the most fields that one header may have.
const maxFields = 32

// appendFields appends the lines of text, which is a head without its first
// line, to h. It returns what is wrong with the first one that is no field.
func appendFields(h Header, text string) (Header, string) {
	for n := 0; text != ""; n++ {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		line = strings.TrimSuffix(line, "\r")
		name, value, ok := strings.Cut(line, ":")
		switch {
		case !ok || !isToken(name) || !isText(value):
			return h, quote(line) + " stands where a header as Name: value should"
		case n == maxFields:
			return h, "more headers than an operation needs"
		}
		h = append(h, Field{name, trim(value)})
	}
	return h, ""
}

// trim cuts blanks off both ends of s. strings.Trim makes a set of them each time.
func trim(s string) string {
	for s != "" && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	for s != "" && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}

// trimBlank cuts blanks and line ends off both ends of b, and returns nil if nothing
// is left.
func trimBlank(b []byte) []byte {
	for len(b) > 0 && isBlank(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && isBlank(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	if len(b) == 0 {
		return nil
	}
	return b
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }
