package edm

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Classes of ASCII characters, as bits.
const (
	notKey    = 1 << iota // not allowed in a key
	notASCII              // a byte of a character beyond ASCII
	nameStart             // may begin the name of a property
	namePart              // may follow in the name of a property
)

// class maps each byte to its classes.
var class = func() (t [256]uint8) {
	for i := range t {
		c := byte(i)
		switch {
		case c >= utf8.RuneSelf:
			t[i] = notASCII
		case c < ' ' || c == 0x7F || strings.IndexByte(`/\#?`, c) >= 0:
			t[i] = notKey
		case isLetter(c) || c == '_':
			t[i] = nameStart | namePart
		case isDigit(c):
			t[i] = namePart
		}
	}
	return t
}()

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

const (
	minTableNameLen = 3
	maxTableNameLen = 63
)

// CheckTableName returns an *Error unless name is legal for a table: 3 to 63 ASCII
// letters and digits, a letter first, and not "tables" in any case. It checks the
// length first. Text that is not UTF-8 breaks RuleTableName.
func CheckTableName(name string) error {
	if n := utf8.RuneCountInString(name); n == 1 {
		return &Error{RuleTableNameLength, name, minTableNameLen, "1 character"}
	} else if n < minTableNameLen {
		return &Error{RuleTableNameLength, name, minTableNameLen, fmt.Sprintf("%d characters", n)}
	} else if n > maxTableNameLen {
		return &Error{RuleTableNameLength, name, maxTableNameLen, fmt.Sprintf("%d characters", n)}
	}
	if strings.EqualFold(name, "tables") {
		return &Error{RuleTableName, name, 0, "a reserved name"}
	}
	for i := range len(name) {
		if c := name[i]; !isLetter(c) && (!isDigit(c) || i == 0) {
			return &Error{RuleTableName, name, 0, characterAt(name, i)}
		}
	}
	return nil
}

// FoldTableName returns name with its ASCII letters in lower case. Two names are of
// the same table if they are equal in this form.
func FoldTableName(name string) string {
	for i := range len(name) {
		if c := name[i]; 'A' <= c && c <= 'Z' {
			return foldFrom(name, i)
		}
	}
	return name
}

func foldFrom(name string, i int) string {
	b := []byte(name)
	for ; i < len(b); i++ {
		if 'A' <= b[i] && b[i] <= 'Z' {
			b[i] |= 0x20
		}
	}
	return string(b)
}

// CheckKey returns an *Error unless both parts of k are valid UTF-8 of at most
// MaxKeyUnits code units, without / \ # ? and control characters (U+0000 to
// U+001F, U+007F to U+009F). Empty parts are allowed. It checks Partition first,
// and in each part UTF-8, then length, then characters.
func CheckKey(k Key) error {
	if !plainKey(k.Partition) {
		if err := checkKeyPart(PartitionKeyName, k.Partition); err != nil {
			return err
		}
	}
	if !plainKey(k.Row) {
		return checkKeyPart(RowKeyName, k.Row)
	}
	return nil
}

// plainKey reports whether s is a legal key in ASCII. It does not branch on the
// bytes.
func plainKey(s string) bool {
	var bits uint8
	for i := range len(s) {
		bits |= class[s[i]]
	}
	return bits&(notKey|notASCII) == 0 && len(s) <= MaxKeyUnits
}

func checkKeyPart(name, s string) error {
	if i := invalidUTF8(s); i >= 0 {
		return &Error{RuleUTF8, name, 0, describeAt(s, i)}
	}
	if len(s) > MaxKeyUnits { // a text has at most as many code units as bytes
		if n := UTF16Len(s); n > MaxKeyUnits {
			return &Error{RuleKeyLength, name, MaxKeyUnits, fmt.Sprintf("%d code units, %s", n, quote(s))}
		}
	}
	for i, r := range s {
		if r < utf8.RuneSelf && class[r]&notKey != 0 || 0x80 <= r && r <= 0x9F {
			return &Error{RuleKey, name, 0, describeAt(s, i)}
		}
	}
	return nil
}

// The classes of characters in the name of a property: identifierStart and _ may
// begin it, identifierPart may follow too.
var (
	identifierStart = []*unicode.RangeTable{unicode.Lu, unicode.Ll, unicode.Lt, unicode.Lm, unicode.Lo, unicode.Nl}
	identifierPart  = []*unicode.RangeTable{unicode.Nd, unicode.Pc, unicode.Mn, unicode.Mc, unicode.Cf}
)

// checkPropertyName returns an *Error unless name is legal for a custom property: a
// C# identifier of at most MaxNameUnits code units that is not PartitionKey,
// RowKey or Timestamp. The first character is a letter (Unicode classes Lu, Ll,
// Lt, Lm, Lo, Nl) or _. The others may also be digits (Nd), connectors (Pc), marks
// (Mn, Mc) and format characters (Cf). It checks UTF-8 first, then the length, then
// the characters.
func checkPropertyName(name string) error {
	if plainName(name) {
		return checkReserved(name)
	}
	if i := invalidUTF8(name); i >= 0 {
		return &Error{RuleUTF8, name, 0, characterAt(name, i)}
	}
	if n := UTF16Len(name); n > MaxNameUnits {
		return &Error{RulePropertyNameLength, name, MaxNameUnits, fmt.Sprintf("%d code units", n)}
	}
	if name == "" {
		return &Error{RulePropertyName, name, 0, "an empty name"}
	}
	for i, r := range name {
		if !namesProperty(r, i == 0) {
			return &Error{RulePropertyName, name, 0, characterAt(name, i)}
		}
	}
	return nil
}

// plainName reports whether s is an identifier in ASCII.
func plainName(s string) bool {
	if s == "" || len(s) > MaxNameUnits || class[s[0]]&nameStart == 0 {
		return false
	}
	bits := uint8(namePart)
	for i := range len(s) {
		bits &= class[s[i]]
	}
	return bits != 0
}

func checkReserved(name string) error {
	switch name {
	case PartitionKeyName, RowKeyName, TimestampName:
		return &Error{RulePropertyName, name, 0, "a reserved name"}
	}
	return nil
}

// namesProperty reports whether the name of a property may have r.
func namesProperty(r rune, first bool) bool {
	if r < utf8.RuneSelf {
		return class[r]&nameStart != 0 || !first && class[r]&namePart != 0
	}
	return unicode.In(r, identifierStart...) || !first && unicode.In(r, identifierPart...)
}

// invalidUTF8 returns the offset of the first byte of s that is not valid UTF-8, or
// -1.
func invalidUTF8(s string) int {
	if utf8.ValidString(s) {
		return -1
	}
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)) {
			return i
		}
	}
	return -1
}

// describeAt describes the character or byte at s[i] and quotes s.
func describeAt(s string, i int) string { return characterAt(s, i) + " of " + quote(s) }

// characterAt describes the character or byte at s[i].
func characterAt(s string, i int) string {
	r, n := utf8.DecodeRuneInString(s[i:])
	if r == utf8.RuneError && n == 1 {
		return fmt.Sprintf("byte 0x%02X at offset %d", s[i], i)
	}
	return fmt.Sprintf("%q (%U) at offset %d", r, r, i)
}
