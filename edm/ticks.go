package edm

import "time"

// Ticks is a time: the number of 100 ns since 1601-01-01T00:00:00Z, which is the
// earliest Edm.DateTime.
type Ticks int64

const (
	// MinTicks is 1601-01-01T00:00:00Z.
	MinTicks Ticks = 0
	// MaxTicks is 9999-12-31T23:59:59.9999999Z.
	MaxTicks Ticks = 2650467743999999999

	ticksPerSecond = 10_000_000
	unixEpochTicks = 11644473600 * ticksPerSecond // 1970-01-01 in Ticks
)

// TicksOf returns t truncated to 100 ns. For a time outside the range of
// Edm.DateTime, Valid is false for the result.
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

// AppendText appends the text of t to dst, YYYY-MM-DDThh:mm:ss[.f]Z. The fraction
// has up to seven digits without trailing zeros.
func (t Ticks) AppendText(dst []byte) []byte { return t.appendText(dst, ":") }

func (t Ticks) appendText(dst []byte, colon string) []byte {
	tm := t.Time()
	year, month, day := tm.Date()
	hour, minute, second := tm.Clock()
	dst = appendDigits(dst, uint(year), 2)
	dst = append(dst, '-')
	dst = appendPair(dst, int(month))
	dst = append(dst, '-')
	dst = appendPair(dst, day)
	dst = append(dst, 'T')
	dst = appendPair(dst, hour)
	dst = append(dst, colon...)
	dst = appendPair(dst, minute)
	dst = append(dst, colon...)
	dst = appendPair(dst, second)
	return appendFraction(dst, t)
}

// appendFraction appends the fraction of a second and Z.
func appendFraction(dst []byte, t Ticks) []byte {
	if f := uint(t % ticksPerSecond); f != 0 {
		dst = append(dst, '.', byte('0'+f/1_000_000))
		dst = appendDigits(dst, f, 3)
		for dst[len(dst)-1] == '0' {
			dst = dst[:len(dst)-1]
		}
	}
	return append(dst, 'Z')
}

// pairs holds the numbers below 100.
const pairs = "00010203040506070809" +
	"10111213141516171819" +
	"20212223242526272829" +
	"30313233343536373839" +
	"40414243444546474849" +
	"50515253545556575859" +
	"60616263646566676869" +
	"70717273747576777879" +
	"80818283848586878889" +
	"90919293949596979899"

func appendPair(dst []byte, v int) []byte { return append(dst, pairs[2*v:2*v+2]...) }

// appendDigits appends the last 2*n digits of v.
func appendDigits(dst []byte, v uint, n int) []byte {
	var b [8]byte
	for i := 2 * (n - 1); i >= 0; i -= 2 {
		at := v % 100 * 2
		b[i], b[i+1] = pairs[at], pairs[at+1]
		v /= 100
	}
	return append(dst, b[:2*n]...)
}

// String returns the text of t, such as 2024-02-03T04:05:06.789Z.
func (t Ticks) String() string { return string(t.AppendText(make([]byte, 0, 28))) }

// ETag identifies one version of an entity. Stores compare ETags byte for byte.
type ETag string

// AppendETag appends the ETag of an entity with the Timestamp t to dst, such as
// W/"datetime'2024-02-03T04%3A05%3A06.789Z'".
func AppendETag(dst []byte, t Ticks) []byte {
	dst = append(dst, `W/"datetime'`...)
	dst = t.appendText(dst, "%3A")
	return append(dst, `'"`...)
}

// ETag returns the ETag of an entity with the Timestamp t.
func (t Ticks) ETag() ETag { return ETag(AppendETag(make([]byte, 0, 48), t)) }
