package odata

import (
	"math"
	"strconv"

	"github.com/tablerock-db/tablerock/edm"
)

// The texts of the Doubles that are not JSON numbers.
const (
	textNaN      = "NaN"
	textInfinity = "Infinity"
)

// isNonFinite reports whether f is NaN or an infinity, which JSON numbers cannot hold.
func isNonFinite(f float64) bool { return math.IsNaN(f) || math.IsInf(f, 0) }

// AppendDouble appends f in the service's format: at most 15 significant digits if
// these parse as f, otherwise 17; always with a decimal point or an exponent, such as
// 3.0 and 9.2233720368547758E+21; and NaN, Infinity, -Infinity.
func AppendDouble(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, textNaN...)
	case math.IsInf(f, 1):
		return append(dst, textInfinity...)
	case math.IsInf(f, -1):
		return append(append(dst, '-'), textInfinity...)
	}
	if i := int64(f); float64(i) == f && -1e15 < f && f < 1e15 && (i != 0 || !math.Signbit(f)) {
		return append(strconv.AppendInt(dst, i, 10), ".0"...)
	}
	if math.Signbit(f) {
		dst, f = append(dst, '-'), -f
	}
	if out, ok := appendShortDecimal(dst, f); ok {
		return out
	}
	var buf [32]byte
	digits, exponent, precision := significantDigits(buf[:0], f)
	if exponent > -5 && exponent < precision {
		return appendFixed(dst, digits, exponent)
	}
	return appendScientific(dst, digits, exponent)
}

// appendShortDecimal appends f, which is not negative, if it is a decimal number of at most
// 15 digits that has few fractional ones, like most measurements and prices. Without it, the
// server needs 6 % more CPU for batches and scans (bench/endpoint). The result parses as f,
// so it is the number that significantDigits finds.
func appendShortDecimal(dst []byte, f float64) (out []byte, ok bool) {
	switch {
	case f < 1e-4:
		return dst, false
	case f < 1e6:
		return appendScaled(dst, f, 1e9, 9)
	case f < 1e11:
		return appendScaled(dst, f, 1e4, 4)
	}
	return dst, false
}

// appendScaled appends f if it is a whole number divided by scale, which is ten to the
// power of width. f times scale must be at most 1e15.
func appendScaled(dst []byte, f, scale float64, width int) (out []byte, ok bool) {
	n := uint64(f*scale + 0.5)
	if float64(n)/scale != f { // the quotient is rounded like a parsed text
		return dst, false
	}
	whole, rest := n/uint64(scale), n%uint64(scale)
	dst = append(strconv.AppendUint(dst, whole, 10), '.')
	var digits [9]byte
	for i := width - 1; i >= 0; i-- {
		digits[i] = '0' + byte(rest%10)
		rest /= 10
	}
	for width > 1 && digits[width-1] == '0' {
		width--
	}
	return append(dst, digits[:width]...), true
}

// significantDigits returns the significant digits of f without trailing zeros, the
// power of ten of the first digit, and the precision: the number of digits allowed.
// The digits share the memory of buf.
func significantDigits(buf []byte, f float64) (digits []byte, exponent, precision int) {
	const (
		short, long = 15, 17
		leastNormal = 0x1p-1022 // below it, a few digits can parse as f without being its first 15
	)
	if f >= leastNormal {
		// A number of 15 digits that parses as f differs from f by at most half of the
		// distance between Doubles, which is less than 12 in the 17th digit. So the last two
		// of 17 digits mostly show that there is none. Without this, pages of entities
		// with two arbitrary Doubles need 10 % more CPU (bench, BenchmarkPage).
		all := strconv.AppendFloat(buf, f, 'e', long-1, 64)
		if tail := int(all[long-1]-'0')*10 + int(all[long]-'0'); 12 < tail && tail < 88 {
			digits, exponent = splitScientific(all)
			return trimZeros(digits), exponent, long
		}
	}
	precision = short
	fewest := strconv.AppendFloat(buf, f, 'e', -1, 64)
	if f < leastNormal {
		first := strconv.AppendFloat(nil, f, 'e', short-1, 64)
		if g, err := strconv.ParseFloat(string(first), 64); err == nil && g == f {
			fewest = first
		}
	}
	if digits, exponent = splitScientific(fewest); len(digits) > short {
		precision = long
		digits, exponent = splitScientific(strconv.AppendFloat(buf, f, 'e', long-1, 64))
	}
	return trimZeros(digits), exponent, precision
}

// trimZeros returns digits without trailing zeros, but at least one.
func trimZeros(digits []byte) []byte {
	for len(digits) > 1 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	return digits
}

// splitScientific splits d.ddde±dd into digits and exponent. It joins the digits in
// place.
func splitScientific(e []byte) (digits []byte, exponent int) {
	at := len(e) - 1
	for e[at] != 'e' {
		at--
	}
	for _, c := range e[at+2:] {
		exponent = exponent*10 + int(c-'0')
	}
	if e[at+1] == '-' {
		exponent = -exponent
	}
	if at > 1 {
		e[1] = e[0] // overwrite the decimal point
		return e[1:at], exponent
	}
	return e[:1], exponent
}

func appendFixed(dst, digits []byte, exponent int) []byte {
	if exponent < 0 {
		dst = append(dst, "0.0000"[:1-exponent]...)
		return append(dst, digits...)
	}
	whole := min(exponent+1, len(digits))
	dst = append(dst, digits[:whole]...)
	for range exponent + 1 - whole {
		dst = append(dst, '0')
	}
	if whole == len(digits) {
		return append(dst, ".0"...)
	}
	return append(append(dst, '.'), digits[whole:]...)
}

func appendScientific(dst, digits []byte, exponent int) []byte {
	dst = append(dst, digits[0])
	if len(digits) > 1 {
		dst = append(append(dst, '.'), digits[1:]...)
	}
	sign := byte('+')
	if exponent < 0 {
		sign, exponent = '-', -exponent
	}
	dst = append(dst, 'E', sign)
	if exponent < 10 {
		dst = append(dst, '0')
	}
	return strconv.AppendInt(dst, int64(exponent), 10)
}

// AppendValue appends the text of v that ParseValue parses: a String as it is, a
// Binary in base64, and other types as in JSON but without quotes. It appends nothing
// for null.
func AppendValue(dst []byte, v edm.Value) []byte {
	switch v.Type() {
	case edm.TypeString:
		return append(dst, v.Bytes()...)
	case edm.TypeBinary:
		return appendBase64(dst, v.Bytes())
	case edm.TypeBoolean:
		return strconv.AppendBool(dst, v.Word() != 0)
	case edm.TypeInt32, edm.TypeInt64:
		return strconv.AppendInt(dst, int64(v.Word()), 10)
	case edm.TypeDouble:
		return AppendDouble(dst, math.Float64frombits(v.Word()))
	case edm.TypeDateTime:
		return edm.Ticks(v.Word()).AppendText(dst)
	case edm.TypeGuid:
		return appendGuid(dst, v.Bytes())
	}
	return dst
}
