package odata

import (
	"math/bits"
	"unicode/utf8"
)

// Masks for the eight bytes of a word, which are examined together.
const (
	ones        = 0x0101010101010101
	highs       = 0x80 * ones
	backslashes = '\\' * ones
)

// specials sets the high bit of each byte of w that is a quote, a backslash or a
// control character. Only the lowest set bit is exact; ignore the bits above it.
//
// Flipping bit 1 of a byte moves the quote, 0x22, down to 0x20. The control
// characters stay below 0x20, and no other byte moves below 0x21.
func specials(w uint64) uint64 {
	return (((w ^ 2*ones) - 0x21*ones) | ((w ^ backslashes) - ones)) &^ w & highs
}

// plainLen returns the length of the prefix of s that a JSON string holds without
// escapes. With ascii, the prefix is ASCII.
func plainLen[T string | []byte](s T, ascii bool) int {
	var also uint64
	if ascii {
		also = highs
	}
	rest := s
	if len(s) >= longText {
		rest = s[plainBlocks(s, also):]
	}
	for ; len(rest) >= 8; rest = rest[8:] { // reslicing instead of indexing removes bounds checks
		w := load64(rest)
		if m := specials(w) | w&also; m != 0 {
			return len(s) - len(rest) + bits.TrailingZeros64(m)/8
		}
	}
	for i := range len(rest) {
		if c := rest[i]; c < ' ' || c == '"' || c == '\\' || ascii && c >= utf8.RuneSelf {
			return len(s) - len(rest) + i
		}
	}
	return len(s)
}

// longText is the length from which plainBlocks gains more than its call costs.
const longText = 64

// plainBlocks returns the length of the longest prefix of s of whole blocks of 32 bytes
// without special bytes and without the bits of also. Without it, pages of entities of
// 1 KiB need 4 % more CPU (bench, BenchmarkPage).
func plainBlocks[T string | []byte](s T, also uint64) int {
	rest := s
	for ; len(rest) >= 32; rest = rest[32:] {
		a, b, c, d := load64(rest), load64(rest[8:]), load64(rest[16:]), load64(rest[24:])
		if specials(a)|specials(b)|specials(c)|specials(d)|(a|b|c|d)&also != 0 {
			break
		}
	}
	return len(s) - len(rest)
}

// load64 returns the first eight bytes of s as a little-endian word.
func load64[T string | []byte](s T) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// AppendText appends s, which is valid UTF-8, as a JSON string with its quotes.
// With ascii, it escapes characters beyond ASCII, like the service.
func AppendText[T string | []byte](dst []byte, s T, ascii bool) []byte {
	return append(appendEscaped(append(dst, '"'), s, ascii), '"')
}

// appendEscaped appends s with escapes, without quotes.
func appendEscaped[T string | []byte](dst []byte, s T, ascii bool) []byte {
	for {
		n := plainLen(s, ascii)
		dst = append(dst, s[:n]...)
		if s = s[n:]; len(s) == 0 {
			return dst
		}
		c := s[0]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(string(s[:min(utf8.UTFMax, len(s))]))
			dst, s = appendUnits(dst, r), s[size:]
			continue
		}
		if short := shortEscape[c]; short != 0 {
			dst = append(dst, '\\', short)
		} else {
			dst = appendUnit(dst, uint16(c))
		}
		s = s[1:]
	}
}

// shortEscape holds the character after the backslash in two-character escapes.
var shortEscape = [utf8.RuneSelf]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}

// appendUnits appends r as one escape, or as two if it has two UTF-16 code units.
func appendUnits(dst []byte, r rune) []byte {
	if r < 0x10000 {
		return appendUnit(dst, uint16(r))
	}
	r -= 0x10000
	return appendUnit(appendUnit(dst, uint16(0xD800|r>>10)), uint16(0xDC00|r&0x3FF))
}

func appendUnit(dst []byte, u uint16) []byte {
	return append(dst, '\\', 'u', lowerHex[u>>12], lowerHex[u>>8&15], lowerHex[u>>4&15], lowerHex[u&15])
}

// quoteTail escapes dst[from:], which is UTF-8, and appends the closing quote.
func quoteTail(dst []byte, from int, ascii bool) []byte {
	if n := plainLen(dst[from:], ascii); from+n < len(dst) {
		mid := len(dst)
		dst = replaceTail(appendEscaped(dst, dst[from+n:], ascii), from+n, mid)
	}
	return append(dst, '"')
}

// appendUnescaped appends the decoded text of raw, the content of a JSON string that
// the scanner has checked.
func appendUnescaped(dst, raw []byte) []byte {
	for i := 0; i < len(raw); {
		c := raw[i]
		if c != '\\' {
			dst = append(dst, c)
			i++
			continue
		}
		c = raw[i+1]
		if c != 'u' {
			dst = append(dst, longEscape[c])
			i += 2
			continue
		}
		r := rune(hex4(raw[i+2:]))
		i += 6
		if r >= 0xD800 && r < 0xE000 {
			r = 0x10000 + (r-0xD800)<<10 + rune(hex4(raw[i+2:])) - 0xDC00
			i += 6
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

// longEscape holds the decoded character of each two-character escape, 0 for an
// invalid escape.
var longEscape = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// hex4 returns the value of the first four hexadecimal digits of s, or -1.
func hex4(s []byte) int {
	if len(s) < 4 {
		return -1
	}
	n := 0
	for _, c := range s[:4] {
		d := hexDigit[c]
		if d < 0 {
			return -1
		}
		n = n<<4 | int(d)
	}
	return n
}

var hexDigit = func() (t [256]int8) {
	for i := range t {
		switch c := byte(i); {
		case '0' <= c && c <= '9':
			t[i] = int8(c - '0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			t[i] = int8(c|0x20-'a') + 10
		default:
			t[i] = -1
		}
	}
	return t
}()
