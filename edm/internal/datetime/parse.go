package datetime

// Parse parses YYYY-MM-DDThh:mm:ss, then an optional fraction, then Z, an offset +hh:mm or
// -hh:mm, or nothing for UTC. It truncates the fraction to seven digits. Second 60 and hour 24
// are invalid. The time can be outside the range of Edm.DateTime; before 1601, ticks is negative.
func Parse(s string) (ticks int64, ok bool) {
	if len(s) < len("YYYY-MM-DDThh:mm:ss") || s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[13] != ':' || s[16] != ':' {
		return 0, false
	}
	year, month, day := pair(s, 0)*100+pair(s, 2), pair(s, 5), pair(s, 8)
	hour, minute, second := pair(s, 11), pair(s, 14), pair(s, 17)
	fraction, rest, ok := cutFraction(s[len("YYYY-MM-DDThh:mm:ss"):])
	offset, known := offsetOf(rest)
	if !ok || !known || hour > 23 || minute > 59 || second > 59 ||
		year > 9999 || month < 1 || month > 12 || day < 1 || day > daysOf(year, month) {
		return 0, false
	}
	seconds := int64(daysBefore(year, month)+day-1)*86400 + int64(hour*3600+minute*60+second-offset)
	return seconds*Second + int64(fraction), true
}

// pair returns the number of the two digits at s[i:], or a number above every year
// if they are not digits.
func pair(s string, i int) int {
	tens, units := s[i]-'0', s[i+1]-'0'
	if tens > 9 || units > 9 {
		return 10_000
	}
	return int(tens)*10 + int(units)
}

// daysOf returns the number of days in a month.
func daysOf(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// daysBefore returns the number of days from 1601-01-01 to the first of a month, for
// years from 0. Package time would double the time to parse a DateTime.
func daysBefore(year, month int) int {
	// Count years from March, so that a leap day is the last day of a year, and
	// months 0 to 4 and 5 to 9 have 153 days each. March 1, 1600 is 306 days before
	// 1601.
	if month -= 3; month < 0 {
		year, month = year-1, month+12
	}
	year += 400 // the calendar repeats after 400 years; keep the year positive
	const since = 365*2000 + 2000/4 - 2000/100 + 2000/400 + 306
	return 365*year + year/4 - year/100 + year/400 + (153*month+2)/5 - since
}

// cutFraction parses an optional fraction of a second at the start of s and returns
// it in ticks. It reports false for a point without digits.
func cutFraction(s string) (ticks int, rest string, ok bool) {
	if s == "" || s[0] != '.' {
		return 0, s, true
	}
	n := 1
	for ; n < len(s) && '0' <= s[n] && s[n] <= '9'; n++ {
		if n <= 7 {
			ticks = ticks*10 + int(s[n]-'0')
		}
	}
	for i := n; i <= 7; i++ {
		ticks *= 10
	}
	return ticks, s[n:], n > 1
}

// offsetOf parses a time zone and returns its offset from UTC in seconds.
func offsetOf(s string) (seconds int, ok bool) {
	if s == "" || s == "Z" {
		return 0, true
	}
	if len(s) != len("+hh:mm") || s[0] != '+' && s[0] != '-' || s[3] != ':' {
		return 0, false
	}
	hours, minutes := pair(s, 1), pair(s, 4)
	seconds = (hours*60 + minutes) * 60
	if s[0] == '-' {
		seconds = -seconds
	}
	return seconds, hours <= 23 && minutes <= 59
}
