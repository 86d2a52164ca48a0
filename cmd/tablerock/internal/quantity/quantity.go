// Package quantity writes numbers for people.
package quantity

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Count returns n with commas between thousands.
func Count(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// PerSecond returns the rate of n in the time d, with commas between thousands.
func PerSecond(n int64, d time.Duration) string {
	return Count(int64(float64(n) / max(d.Seconds(), 1e-9)))
}

// Plural returns a count and a noun, in the plural unless n is 1.
func Plural(n int64, thing string) string {
	switch stem, isY := strings.CutSuffix(thing, "y"); {
	case n == 1:
	case isY:
		thing = stem + "ies"
	default:
		thing += "s"
	}
	return Count(n) + " " + thing
}

// Bytes returns a number of bytes in the largest unit below it.
func Bytes(n int64) string {
	names := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	f, i := float64(n), 0
	for f >= 1024 && i < len(names)-1 {
		f, i = f/1024, i+1
	}
	if i == 0 {
		if n == 1 {
			return "1 byte"
		}
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.1f %s", f, names[i])
}
