package edm

import (
	"errors"
	"time"

	"github.com/tablerock-db/tablerock/edm/internal/datetime"
)

// Ticks is a time: the number of 100 ns since 1601-01-01T00:00:00Z, which is the
// earliest Edm.DateTime.
type Ticks int64

const (
	// MinTicks is 1601-01-01T00:00:00Z.
	MinTicks Ticks = 0
	// MaxTicks is 9999-12-31T23:59:59.9999999Z.
	MaxTicks Ticks = 2650467743999999999

	unixEpochTicks = 11644473600 * datetime.Second // 1970-01-01 in Ticks
)

// TicksOf returns t truncated to 100 ns. For a time outside the range of
// Edm.DateTime, Valid is false for the result.
func TicksOf(t time.Time) Ticks {
	s := t.Unix()
	if s < -unixEpochTicks/datetime.Second {
		return -1
	}
	if s > int64(MaxTicks)/datetime.Second {
		return MaxTicks + 1
	}
	return Ticks(s*datetime.Second + unixEpochTicks + int64(t.Nanosecond()/100))
}

// Valid reports whether t is in the range of Edm.DateTime.
func (t Ticks) Valid() bool { return t >= MinTicks && t <= MaxTicks }

// Time returns t as a time in UTC.
func (t Ticks) Time() time.Time {
	d := int64(t) - unixEpochTicks
	s, f := d/datetime.Second, d%datetime.Second
	return time.Unix(s, f*100).UTC()
}

// AppendText appends the text of t to dst, YYYY-MM-DDThh:mm:ss[.f]Z. The fraction
// has up to seven digits without trailing zeros.
func (t Ticks) AppendText(dst []byte) []byte {
	if !t.Valid() { // in a message
		return t.Time().AppendFormat(dst, "2006-01-02T15:04:05.9999999Z")
	}
	return datetime.Append(dst, uint64(t))
}

var errTicks = errors.New("a DateTime has the form YYYY-MM-DDThh:mm:ss, then a fraction or none, then Z, an offset as +hh:mm, or nothing for UTC")

// ParseTicks parses YYYY-MM-DDThh:mm:ss, then an optional fraction, then Z, an
// offset +hh:mm or -hh:mm, or nothing for UTC. It truncates the fraction to seven
// digits. Second 60 and hour 24 are invalid. A valid text for a time outside the
// range of Edm.DateTime is an *Error of RuleRange; any other error means that the
// text is invalid.
func ParseTicks(s string) (Ticks, error) {
	n, ok := datetime.Parse(s)
	if !ok {
		return 0, errTicks
	}
	t := Ticks(n)
	if !t.Valid() {
		return 0, &Error{RuleRange, "", 0, "the DateTime " + quote(s)}
	}
	return t, nil
}

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
