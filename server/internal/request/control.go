package request

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// isControl reports whether a character is one of those for which the service's
// front end refuses a path.
func isControl(c rune) bool {
	return c < 0x20 || c == 0x7f || c == 0x81 || c == 0x8d || c == 0x8f || c == 0x90 || c == 0x9d
}

// HasControl reports whether a text has one of those.
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

// EscapeControls writes control characters as percent escapes.
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
