package sharedkey

import "strings"

const upperHex = "0123456789ABCDEF"

// normalPath writes an escaped path as RFC 3986 prefers it: what may stand for
// itself in a segment does, all else is escaped with upper-case digits. Escapes
// of a slash and of a percent sign stay, so two paths with the same normal form
// name the same thing. It returns path itself if nothing changes.
func normalPath(path string) string {
	for i := 0; i < len(path); i++ {
		c, escaped := escapedByte(path, i)
		switch {
		case !escaped && (plainInSegment(c) || c == '/'):
		case escaped && !plainInSegment(c) && isUpperHex(path[i+1]) && isUpperHex(path[i+2]):
			i += 2
		default:
			return normalFrom(path, i)
		}
	}
	return path
}

// normalFrom is normalPath for a path that is normal up to i.
func normalFrom(path string, i int) string {
	var b strings.Builder
	b.Grow(len(path) + 16)
	b.WriteString(path[:i])
	for ; i < len(path); i++ {
		c, escaped := escapedByte(path, i)
		if escaped {
			i += 2
		}
		if plainInSegment(c) || c == '/' && !escaped {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(upperHex[c>>4])
		b.WriteByte(upperHex[c&15])
	}
	return b.String()
}

// escapedByte returns the byte that is written at path[i], and whether as an
// escape. A percent sign that begins no escape stands for itself.
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

// plainInSegment reports whether c may stand for itself in a segment of a path.
func plainInSegment(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return strings.IndexByte("-._~!$&'()*+,;=:@", c) >= 0
}
