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
func (t Ticks) AppendText(dst []byte) []byte {
	if !t.Valid() { // in a message
		return t.Time().AppendFormat(dst, "2006-01-02T15:04:05.9999999Z")
	}
	text := [...]byte{4: '-', 7: '-', 10: 'T', 13: ':', 16: ':', 19: '.', 27: 0}
	seconds, fraction := uint64(t)/ticksPerSecond, uint(uint64(t)%ticksPerSecond)
	year, month, day := dateOf(uint32(seconds / 86400))
	second := uint(seconds % 86400)
	putPair(text[:], 0, year/100)
	putPair(text[:], 2, year%100)
	putPair(text[:], 5, month)
	putPair(text[:], 8, day)
	putPair(text[:], 11, second/3600)
	putPair(text[:], 14, second/60%60)
	putPair(text[:], 17, second%60)
	n := 19
	if fraction != 0 {
		text[20] = '0' + byte(fraction/1_000_000)
		putPair(text[:], 21, fraction/10_000%100)
		putPair(text[:], 23, fraction/100%100)
		putPair(text[:], 25, fraction%100)
		for n = 27; text[n-1] == '0'; {
			n--
		}
	}
	text[n] = 'Z'
	return append(dst, text[:n+1]...)
}

// dateOf returns the date of a day, a number of days since MinTicks. It computes with years
// that begin in March, so that the leap day is the last.
func dateOf(day uint32) (year, month, dayOfMonth uint) {
	const (
		fromMarch0  = 584694 // days from 0000-03-01 to MinTicks
		daysOf400   = 146097
		daysOf4     = 1461
		toJanuary   = 306 // days from March to the end of December
		monthFactor = 153 // days of five months from March, or from August
	)
	n := 4*(day+fromMarch0) + 3
	century, n := n/daysOf400, n%daysOf400|3
	y, n := n/daysOf4, n%daysOf4/4
	m := (5*n + 2) / monthFactor
	year, month, dayOfMonth = uint(100*century+y), uint(m+3), uint(n-(monthFactor*m+2)/5+1)
	if n >= toJanuary {
		year, month = year+1, month-12
	}
	return year, month, dayOfMonth
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

// putPair writes the two digits of v, which is less than 100, to dst[at:].
func putPair(dst []byte, at int, v uint) { copy(dst[at:at+2], pairs[2*v:2*v+2]) }

// String returns the text of t, such as 2024-02-03T04:05:06.789Z.
func (t Ticks) String() string { return string(t.AppendText(make([]byte, 0, 28))) }

// ETag identifies one version of an entity. Stores compare ETags byte for byte.
type ETag string

// AppendETag appends the ETag of an entity with the Timestamp t to dst, such as
// W/"datetime'2024-02-03T04%3A05%3A06.789Z'".
func AppendETag(dst []byte, t Ticks) []byte {
	var buf [32]byte
	text := t.AppendText(buf[:0])
	dst = append(append(dst, `W/"datetime'`...), text[:13]...)
	dst = append(append(dst, "%3A"...), text[14:16]...)
	dst = append(append(dst, "%3A"...), text[17:]...)
	return append(dst, `'"`...)
}

// ETag returns the ETag of an entity with the Timestamp t.
func (t Ticks) ETag() ETag { return ETag(AppendETag(make([]byte, 0, 48), t)) }
