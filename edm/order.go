package edm

import (
	"math/bits"
	"unicode/utf8"
)

// UTF16Len returns the number of UTF-16 code units of s, which must be valid
// UTF-8. It never exceeds len(s).
func UTF16Len[T string | []byte](s T) int {
	// Count the bytes that begin a character, and again the bytes that begin a
	// character of two code units, eight bytes at a time.
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	n, i := 0, 0
	for ; i+8 <= len(s); i += 8 {
		w := load64(s, i)
		if w&highs == 0 {
			n += 8
			continue
		}
		continuation := w & ^(w << 1) & highs              // 10xxxxxx
		pair := w & (w << 1) & (w << 2) & (w << 3) & highs // 1111xxxx
		n += 8 - bits.OnesCount64(continuation) + bits.OnesCount64(pair)
	}
	for ; i < len(s); i++ {
		switch c := s[i]; {
		case c < utf8.RuneSelf || c&0xC0 == 0xC0 && c < 0xF0:
			n++
		case c >= 0xF0:
			n += 2
		}
	}
	return n
}

// load64 returns s[i:i+8] as a little-endian integer.
func load64[T string | []byte](s T, i int) uint64 {
	_ = s[i+7]
	return uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
		uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
}

// Compare compares two texts, which must be valid UTF-8, by their UTF-16 code
// units. It returns -1 if a is before b, 0 if they are equal, +1 if a is after b.
//
// This order differs from that of the bytes only for characters above U+FFFF:
// they are before U+E000 to U+FFFF, since their first code unit is a surrogate.
func Compare[T string | []byte](a, b T) int {
	n, i := min(len(a), len(b)), 0
	for ; i+8 <= n; i += 8 {
		if x := load64(a, i) ^ load64(b, i); x != 0 {
			i += bits.TrailingZeros64(x) / 8
			return compareByte(a[i], b[i])
		}
	}
	for ; i < n; i++ {
		if a[i] != b[i] {
			return compareByte(a[i], b[i])
		}
	}
	switch {
	case len(a) < len(b):
		return -1
	case len(a) > len(b):
		return 1
	}
	return 0
}

// compareByte compares the first bytes in which two texts differ. Since all bytes
// before are equal, both begin a character or neither does.
func compareByte(x, y byte) int {
	const (
		afterSurrogates = 0xEE // 0xEE and 0xEF begin U+E000 to U+FFFF
		pair            = 0xF0 // 0xF0 and above begin a surrogate pair
	)
	if x >= afterSurrogates && y >= afterSurrogates && (x >= pair) != (y >= pair) {
		x, y = y, x
	}
	if x < y {
		return -1
	}
	return 1
}

// Compare compares keys by Partition, then by Row. It returns -1 if k is before
// o, 0 if they are equal, +1 if k is after o.
func (k Key) Compare(o Key) int {
	if c := Compare(k.Partition, o.Partition); c != 0 {
		return c
	}
	return Compare(k.Row, o.Row)
}
