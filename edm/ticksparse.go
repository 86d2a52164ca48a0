package edm

import (
	"errors"
	"time"
)

var errTicks = errors.New("a DateTime has the form YYYY-MM-DDThh:mm:ss, then a fraction or none, then Z, an offset as +hh:mm, or nothing for UTC")

// ParseTicks reads YYYY-MM-DDThh:mm:ss, with a fraction of any number of digits,
// of which those beyond seven are cut off, and with Z, an offset as +hh:mm or
// -hh:mm, or nothing, which means UTC. There is no second 60 and no hour 24. A
// moment of that form outside the range of Edm.DateTime is an *Error of
// RuleRange; any other text is another error.
func ParseTicks(s string) (Ticks, error) {
	p := ticksParser{rest: s, ok: true}
	year := p.digits(4)
	p.skip('-')
	month := p.digits(2)
	p.skip('-')
	day := p.digits(2)
	p.skip('T')
	hour := p.digits(2)
	p.skip(':')
	minute := p.digits(2)
	p.skip(':')
	second := p.digits(2)
	fraction := p.fraction()
	offset := p.offset()
	if !p.ok || p.rest != "" || hour > 23 || minute > 59 || second > 59 {
		return 0, errTicks
	}
	tm := time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC)
	if tm.Day() != day || tm.Month() != time.Month(month) { // such as February 30, which is March 1 or 2 to time.Date
		return 0, errTicks
	}
	t := Ticks((tm.Unix()-int64(offset))*ticksPerSecond + unixEpochTicks + int64(fraction))
	if !t.Valid() {
		return 0, &Error{RuleRange, "", 0, "the DateTime " + quote(s)}
	}
	return t, nil
}

// ticksParser takes a text apart from its front; ok falls with the first part
// that is not there.
type ticksParser struct {
	rest string
	ok   bool
}

// skip takes the character c.
func (p *ticksParser) skip(c byte) {
	if p.rest == "" || p.rest[0] != c {
		p.ok = false
		return
	}
	p.rest = p.rest[1:]
}

// digits takes a number of n digits.
func (p *ticksParser) digits(n int) int {
	if len(p.rest) < n {
		p.ok = false
		return 0
	}
	v := 0
	for i := range n {
		if !isDigit(p.rest[i]) {
			p.ok = false
			return 0
		}
		v = v*10 + int(p.rest[i]-'0')
	}
	p.rest = p.rest[n:]
	return v
}

// fraction takes a point and one or more digits, if there is a point, and
// returns them as ticks.
func (p *ticksParser) fraction() int {
	if p.rest == "" || p.rest[0] != '.' {
		return 0
	}
	n, v := 1, 0
	for ; n < len(p.rest) && isDigit(p.rest[n]); n++ {
		if n <= 7 {
			v = v*10 + int(p.rest[n]-'0')
		}
	}
	p.ok = p.ok && n > 1
	for i := n; i <= 7; i++ {
		v *= 10
	}
	p.rest = p.rest[n:]
	return v
}

// offset takes what stands for the time zone, and returns by how many seconds
// it is ahead of UTC.
func (p *ticksParser) offset() int {
	if p.rest == "" {
		return 0
	}
	sign := 1
	switch p.rest[0] {
	case 'Z':
		p.rest = p.rest[1:]
		return 0
	case '-':
		sign = -1
	case '+':
	default:
		p.ok = false
		return 0
	}
	p.rest = p.rest[1:]
	hours := p.digits(2)
	p.skip(':')
	minutes := p.digits(2)
	p.ok = p.ok && hours <= 23 && minutes <= 59
	return sign * (hours*60 + minutes) * 60
}
