// Package datetime converts between the text of an Edm.DateTime and its ticks: the number of
// 100 ns since 1601-01-01T00:00:00Z.
package datetime

// Second is a second, in ticks.
const Second = 10_000_000

// Append appends the text of ticks to dst, YYYY-MM-DDThh:mm:ss[.f]Z. The fraction has up to
// seven digits without trailing zeros. The time must be before the year 10000.
func Append(dst []byte, ticks uint64) []byte {
	text := [...]byte{4: '-', 7: '-', 10: 'T', 13: ':', 16: ':', 19: '.', 27: 0}
	seconds, fraction := ticks/Second, uint(ticks%Second)
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

// dateOf returns the date of a day, a number of days since 1601-01-01. It computes with years
// that begin in March, so that the leap day is the last.
func dateOf(day uint32) (year, month, dayOfMonth uint) {
	const (
		fromMarch0  = 584694 // days from 0000-03-01 to 1601-01-01
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
