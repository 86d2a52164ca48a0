package request

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// isControl reports whether the service's front end refuses a path with c.
func isControl(c rune) bool {
	return c < 0x20 || c == 0x7f || c == 0x81 || c == 0x8d || c == 0x8f || c == 0x90 || c == 0x9d
}

// HasControl reports whether the service's front end refuses the path s.
func HasControl(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= utf8.RuneSelf:
			return strings.ContainsFunc(s[i:], isControl)
		case isControl(rune(c)):
			return true
		}
	}
	return false
}

// EscapeControls returns s with its control characters percent-encoded.
func EscapeControls(s string) string {
	var b strings.Builder
	for _, c := range s {
		if c < 0x20 || c >= 0x7f && c <= 0x9f {
			for _, octet := range []byte(string(c)) {
				fmt.Fprintf(&b, "%%%02x", octet)
			}
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}
