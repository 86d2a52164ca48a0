package sharedkey

import "strings"

const upperHex = "0123456789ABCDEF"

// normalPath normalizes an escaped path as RFC 3986 recommends: characters that are
// valid in a segment are not escaped, all others are, with upper-case digits. Escaped
// slashes and percent signs stay escaped, so paths with the same normal form are
// equivalent. It returns path itself if it is normal.
func normalPath(path string) string {
	for i := 0; i < len(path); i++ {
		c, escaped := escapedByte(path, i)
		switch {
		case !escaped && (validInSegment(c) || c == '/'):
		case escaped && !validInSegment(c) && isUpperHex(path[i+1]) && isUpperHex(path[i+2]):
			i += 2
		default:
			return normalizeFrom(path, i)
		}
	}
	return path
}

// normalizeFrom is normalPath for a path that is normal up to i.
func normalizeFrom(path string, i int) string {
	var b strings.Builder
	b.Grow(len(path) + 16)
	b.WriteString(path[:i])
	for ; i < len(path); i++ {
		c, escaped := escapedByte(path, i)
		if escaped {
			i += 2
		}
		if validInSegment(c) || c == '/' && !escaped {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(upperHex[c>>4])
		b.WriteByte(upperHex[c&15])
	}
	return b.String()
}

// escapedByte returns the byte at path[i] and reports whether it is escaped. A percent
// sign that does not begin an escape is a plain byte.
func escapedByte(path string, i int) (c byte, escaped bool) {
	if path[i] == '%' && i+2 < len(path) {
		high, low := hexDigit(path[i+1]), hexDigit(path[i+2])
		if high < 16 && low < 16 {
			return high<<4 | low, true
		}
	}
	return path[i], false
}

func hexDigit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 16
}

func isUpperHex(c byte) bool { return hexDigit(c) < 16 && c < 'a' }

// validInSegment reports whether a path segment may contain c without an escape.
func validInSegment(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return strings.IndexByte("-._~!$&'()*+,;=:@", c) >= 0
}
