package edm

import "time"

// Ticks is a moment: a count of 100 ns since 1601-01-01T00:00:00Z, the first
// moment an Edm.DateTime can name.
type Ticks int64

const (
	// MinTicks is 1601-01-01T00:00:00Z.
	MinTicks Ticks = 0
	// MaxTicks is 9999-12-31T23:59:59.9999999Z.
	MaxTicks Ticks = 2650467743999999999

	ticksPerSecond = 10_000_000
	unixEpochTicks = 11644473600 * ticksPerSecond // 1970-01-01 in Ticks
)

// TicksOf returns the Ticks of t, cut to 100 ns. A moment outside the range of
// Edm.DateTime gives a value for which Valid is false.
func TicksOf(t time.Time) Ticks {
	s := t.Unix()
	if s < -unixEpochTicks/ticksPerSecond {
		return -1
	}
	if s > int64(MaxTicks)/ticksPerSecond {
		return MaxTicks + 1
	}
	return Ticks(s*ticksPerSecond + unixEpochTicks + int64(t.Nanosecond()/100))
}

// Valid reports whether t is in the range of Edm.DateTime.
func (t Ticks) Valid() bool { return t >= MinTicks && t <= MaxTicks }

// Time returns t as a time in UTC.
func (t Ticks) Time() time.Time {
	d := int64(t) - unixEpochTicks
	s, f := d/ticksPerSecond, d%ticksPerSecond
	return time.Unix(s, f*100).UTC()
}

// AppendText appends the service's text of t, YYYY-MM-DDThh:mm:ss[.f]Z with up
// to seven digits of fraction and no trailing zeros.
func (t Ticks) AppendText(dst []byte) []byte { return t.appendText(dst, ":") }

func (t Ticks) appendText(dst []byte, colon string) []byte {
	tm := t.Time()
	year, month, day := tm.Date()
	hour, minute, second := tm.Clock()
	dst = appendDigits(dst, year, 4)
	dst = append(dst, '-')
	dst = appendDigits(dst, int(month), 2)
	dst = append(dst, '-')
	dst = appendDigits(dst, day, 2)
	dst = append(dst, 'T')
	dst = appendDigits(dst, hour, 2)
	dst = append(dst, colon...)
	dst = appendDigits(dst, minute, 2)
	dst = append(dst, colon...)
	dst = appendDigits(dst, second, 2)
	return appendFraction(dst, t)
}

// appendFraction appends what follows the second.
func appendFraction(dst []byte, t Ticks) []byte {
	if f := int(t % ticksPerSecond); f != 0 {
		dst = appendDigits(append(dst, '.'), f, 7)
		for dst[len(dst)-1] == '0' {
			dst = dst[:len(dst)-1]
		}
	}
	return append(dst, 'Z')
}

func appendDigits(dst []byte, n, width int) []byte {
	var b [8]byte
	for i := width - 1; i >= 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
	return append(dst, b[:width]...)
}

// String returns the service's text of t.
func (t Ticks) String() string { return string(t.AppendText(make([]byte, 0, 28))) }

// ETag names one content of one entity. It is compared byte for byte.
type ETag string

// AppendETag appends the text of the ETag that belongs to the Timestamp t,
// W/"datetime'2024-02-03T04%3A05%3A06.789Z'", to dst.
func AppendETag(dst []byte, t Ticks) []byte {
	dst = append(dst, `W/"datetime'`...)
	dst = t.appendText(dst, "%3A")
	return append(dst, `'"`...)
}

// ETagFormat appends ETags of Timestamps that mostly lie within the same second,
// as those of a batch do, and works the second out once. The zero ETagFormat is
// ready for use.
type ETagFormat struct {
	second Ticks // of text, plus one
	text   [len(`W/"datetime'2024-02-03T04%3A05%3A06`)]byte
}

// Append appends what AppendETag does.
func (f *ETagFormat) Append(dst []byte, t Ticks) []byte {
	second := t/ticksPerSecond + 1
	if second != f.second || t < 0 {
		start := len(dst)
		dst = AppendETag(dst, t)
		if len(dst)-start >= len(f.text) {
			f.second = second
			copy(f.text[:], dst[start:])
		}
		return dst
	}
	return append(appendFraction(append(dst, f.text[:]...), t), `'"`...)
}

// ETag returns the ETag that belongs to the Timestamp t.
func (t Ticks) ETag() ETag { return ETag(AppendETag(make([]byte, 0, 48), t)) }
