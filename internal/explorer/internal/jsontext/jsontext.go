// Package jsontext checks the JSON of a request before package json decodes it, which puts U+FFFD
// in the place of text that is no Unicode, and needs forty times the memory of the text if that
// consists of empty objects.
package jsontext

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxValues limits the values of a text: the members of its objects and the elements of its
// arrays.
const maxValues = 1 << 18

// Valid reports whether a text has no invalid UTF-8, no half of a surrogate pair, and at most
// maxValues values. It does not check the syntax.
func Valid(text []byte) bool {
	values, inString := 1, false
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			inString = !inString
		case ',':
			if !inString {
				values++
			}
		case '\\':
			length := escape(text[i:])
			if length == 0 {
				return false
			}
			i += length - 1
		}
	}
	return values <= maxValues && utf8.Valid(text)
}

// escape returns the length of the escape at the start of a text, 0 for half of a surrogate pair.
func escape(text []byte) int {
	switch first := codeUnit(text); {
	case !utf16.IsSurrogate(first):
		return 2 // digits after \u are checked like text
	case utf16.DecodeRune(first, codeUnit(text[6:])) == utf8.RuneError:
		return 0
	}
	return 12
}

// codeUnit returns the code unit of the escape at the start of a text, 0 for other text.
func codeUnit(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	n, _ := strconv.ParseUint(string(text[2:6]), 16, 16) // 0 for an error
	return rune(n)
}
