package odata

import (
	"errors"
	"math"
	"strconv"

	"github.com/tablerock-db/tablerock/edm"
)

// ParseValue parses text as a value of type t, as the service parses a JSON string
// with an annotation: integers in decimal, true and false in any case, Doubles also
// as NaN, Infinity and -Infinity, times like edm.ParseTicks, Binary in base64. A
// String shares the memory of text. Every error matches ErrText.
func ParseValue(t edm.Type, text []byte) (edm.Value, error) {
	switch t {
	case edm.TypeString:
		return edm.StringBytes(text), nil
	case edm.TypeBinary:
		if b, ok := appendBinary(make([]byte, 0, base64Text.DecodedLen(len(text))), text); ok {
			return edm.Binary(b), nil
		}
	case edm.TypeBoolean:
		if b, ok := parseBool(text); ok {
			return edm.Boolean(b), nil
		}
	case edm.TypeInt32:
		if n, ok := parseInteger(text); ok && n == int64(int32(n)) {
			return edm.Int32(int32(n)), nil
		}
	case edm.TypeInt64:
		if n, ok := parseInteger(text); ok {
			return edm.Int64(n), nil
		}
	case edm.TypeDouble:
		if f, ok := parseDouble(text); ok {
			return edm.Double(f), nil
		}
	case edm.TypeDateTime:
		ticks, err := edm.ParseTicks(string(text))
		if err == nil {
			return edm.DateTime(ticks), nil
		}
		return edm.Value{}, &textError{t: t, got: quote(text), outside: errors.Is(err, edm.ErrInvalid)}
	case edm.TypeGuid:
		if hi, lo, ok := parseGuid(text); ok {
			return edm.GuidWords(hi, lo), nil
		}
	}
	return edm.Value{}, &textError{t: t, got: quote(text)}
}

func parseBool(text []byte) (value, ok bool) {
	switch {
	case equalFolded(text, "true"):
		return true, true
	case equalFolded(text, "false"):
		return false, true
	}
	return false, false
}

// equalFolded reports whether text equals word, ignoring case. The word is in lower
// case.
func equalFolded(text []byte, word string) bool {
	if len(text) != len(word) {
		return false
	}
	for i, c := range text {
		if c|0x20 != word[i] {
			return false
		}
	}
	return true
}

// parseInteger parses a 64-bit integer without a conversion through float64.
func parseInteger(text []byte) (n int64, ok bool) {
	digits := text
	negative := len(digits) > 0 && digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	if len(digits) == 0 {
		return 0, false
	}
	limit := uint64(math.MaxInt64)
	if negative {
		limit++
	}
	u := uint64(0)
	for _, c := range digits {
		d := uint64(c - '0')
		if d > 9 || u > (limit-d)/10 {
			return 0, false
		}
		u = u*10 + d
	}
	if negative {
		return -int64(u), true
	}
	return int64(u), true
}

// parseDouble parses a decimal number, NaN, Infinity or -Infinity.
func parseDouble(text []byte) (f float64, ok bool) {
	switch string(text) {
	case textNaN:
		return math.NaN(), true
	case textInfinity:
		return math.Inf(1), true
	case "-" + textInfinity:
		return math.Inf(-1), true
	}
	if !isDecimal(text) {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(text), 64)
	return f, err == nil
}

// isDecimal reports whether text is a decimal number. Beyond the JSON forms it accepts
// a plus sign, leading zeros, and no digit on one side of the decimal point.
func isDecimal(text []byte) bool {
	i, n := 0, 0
	if i < len(text) && (text[i] == '-' || text[i] == '+') {
		i++
	}
	count := func() {
		for ; i < len(text) && '0' <= text[i] && text[i] <= '9'; i++ {
			n++
		}
	}
	count()
	if i < len(text) && text[i] == '.' {
		i++
		count()
	}
	if n == 0 {
		return false
	}
	if i < len(text) && text[i]|0x20 == 'e' {
		i++
		if i < len(text) && (text[i] == '-' || text[i] == '+') {
			i++
		}
		n = 0
		count()
	}
	return n > 0 && i == len(text)
}

func parseGuid(text []byte) (hi, lo uint64, ok bool) {
	if len(text) != 36 {
		return 0, 0, false
	}
	if text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return 0, 0, false
	}
	var bad int8
	hi, bad = readHex(hi, text[:8], bad)
	hi, bad = readHex(hi, text[9:13], bad)
	hi, bad = readHex(hi, text[14:18], bad)
	lo, bad = readHex(lo, text[19:23], bad)
	lo, bad = readHex(lo, text[24:], bad)
	return hi, lo, bad >= 0
}

// readHex appends hexadecimal digits to n. It makes bad negative if one of them is
// not a hexadecimal digit.
func readHex(n uint64, digits []byte, bad int8) (uint64, int8) {
	for _, c := range digits {
		d := hexDigit[c]
		bad |= d
		n = n<<4 | uint64(d)&0xF
	}
	return n, bad
}
