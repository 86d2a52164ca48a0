package edm_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm"
)

const shortest = "2006-01-02T15:04:05.9999999Z"

func TestParseTicks(t *testing.T) {
	at := func(year int, month time.Month, day, hour, minute, second, ticks int) edm.Ticks {
		return edm.TicksOf(time.Date(year, month, day, hour, minute, second, ticks*100, time.UTC))
	}
	for _, c := range []struct {
		name, input string
		want        edm.Ticks
	}{
		{"first", "1601-01-01T00:00:00Z", 0},
		{"last", "9999-12-31T23:59:59.9999999Z", edm.MaxTicks},
		{"no fraction", "2014-05-07T08:20:53Z", at(2014, 5, 7, 8, 20, 53, 0)},
		{"1 digit", "2014-05-07T08:20:53.5Z", at(2014, 5, 7, 8, 20, 53, 5000000)},
		{"5 digits", "2017-08-22T22:12:09.25652Z", at(2017, 8, 22, 22, 12, 9, 2565200)},
		{"7 digits", "2014-05-07T08:20:53.1234567Z", at(2014, 5, 7, 8, 20, 53, 1234567)},
		{"zeros", "1973-10-04T00:00:00.000000Z", at(1973, 10, 4, 0, 0, 0, 0)},
		{"8 digits are cut", "2014-05-07T08:20:53.12345679Z", at(2014, 5, 7, 8, 20, 53, 1234567)},
		{"many digits are cut", "2014-05-07T08:20:53.0000001" + strings.Repeat("9", 100) + "Z", at(2014, 5, 7, 8, 20, 53, 1)},
		{"digits beyond the last are cut", "9999-12-31T23:59:59.99999999Z", edm.MaxTicks},
		{"no zone is UTC", "2012-01-02T23:00:00", at(2012, 1, 2, 23, 0, 0, 0)},
		{"no zone with a fraction", "2012-01-02T23:00:00.25", at(2012, 1, 2, 23, 0, 0, 2500000)},
		{"ahead of UTC", "2012-01-02T01:30:00+02:00", at(2012, 1, 1, 23, 30, 0, 0)},
		{"behind UTC", "2012-12-31T20:00:00.5-05:30", at(2013, 1, 1, 1, 30, 0, 5000000)},
		{"no offset", "2012-01-02T01:30:00-00:00", at(2012, 1, 2, 1, 30, 0, 0)},
		{"offset brings it into range", "1600-12-31T23:00:00-01:00", 0},
		{"leap day", "2000-02-29T00:00:00Z", at(2000, 2, 29, 0, 0, 0, 0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := edm.ParseTicks(c.input)
			if err != nil || got != c.want {
				t.Errorf("ParseTicks(%q) = %d (%v), %v, want %d (%v)", c.input, got, got, err, c.want, c.want)
			}
		})
	}
}

func TestParseTicksRefuses(t *testing.T) {
	for _, c := range []struct{ name, input string }{
		{"empty", ""},
		{"date only", "2014-05-07"},
		{"no seconds", "2014-05-07T08:20Z"},
		{"no seconds digits", "2014-05-07T08:20:Z"},
		{"point without digits", "2014-05-07T08:20:53.Z"},
		{"comma", "2014-05-07T08:20:53,5Z"},
		{"space for T", "2014-05-07 08:20:53Z"},
		{"small t", "2014-05-07t08:20:53Z"},
		{"small z", "2014-05-07T08:20:53z"},
		{"text after Z", "2014-05-07T08:20:53ZZ"},
		{"space before", " 2014-05-07T08:20:53Z"},
		{"space after", "2014-05-07T08:20:53Z "},
		{"sign", "+2014-05-07T08:20:53Z"},
		{"five digits of year", "12014-05-07T08:20:53Z"},
		{"three digits of year", "999-05-07T08:20:53Z"},
		{"two letters of year", "00xx-05-07T08:20:53Z"},
		{"one digit of day", "2014-05-7T08:20:53Z"},
		{"letter", "2014-05-0xT08:20:53Z"},
		{"digits beyond ASCII", "201\u0664-05-07T08:20:53Z"},
		{"month 0", "2014-00-07T08:20:53Z"},
		{"month 13", "2014-13-07T08:20:53Z"},
		{"day 0", "2014-05-00T08:20:53Z"},
		{"day 32", "2014-05-32T08:20:53Z"},
		{"February 30", "2012-02-30T08:20:53Z"},
		{"February 29 of no leap year", "1900-02-29T08:20:53Z"},
		{"hour 24", "2014-05-07T24:00:00Z"},
		{"minute 60", "2014-05-07T08:60:00Z"},
		{"leap second", "2016-12-31T23:59:60Z"},
		{"offset without colon", "2014-05-07T08:20:53+0200"},
		{"offset of hours alone", "2014-05-07T08:20:53+02"},
		{"offset of 24 hours", "2014-05-07T08:20:53+24:00"},
		{"offset of 60 minutes", "2014-05-07T08:20:53+01:60"},
		{"offset and Z", "2014-05-07T08:20:53+01:00Z"},
		{"name of a zone", "2014-05-07T08:20:53UTC"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := edm.ParseTicks(c.input)
			if err == nil {
				t.Fatalf("ParseTicks(%q) = %d (%v), want an error", c.input, got, got)
			}
			if errors.As(err, new(*edm.Error)) {
				t.Errorf("ParseTicks(%q): %v is about the range, want one about the form", c.input, err)
			}
		})
	}
}

func TestParseTicksRange(t *testing.T) {
	for _, c := range []struct{ name, input string }{
		{"last tick of 1600", "1600-12-31T23:59:59.9999999Z"},
		{"year 1", "0001-01-01T00:00:00Z"},
		{"year 0", "0000-01-01T00:00:00Z"},
		{"offset takes it before 1601", "1601-01-01T00:00:00+00:01"},
		{"offset takes it after 9999", "9999-12-31T23:59:59-00:01"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := edm.ParseTicks(c.input)
			wantRule(t, c.input, err, edm.RuleRange)
		})
	}
}

// TestTicksText compares the text of times with package time, and parses it again.
func TestTicksText(t *testing.T) {
	ticks := []edm.Ticks{0, 1, 9, 10, 9999999, 10000000, edm.MaxTicks, edm.MaxTicks - 1, edm.MaxTicks - 9999999}
	for f := edm.Ticks(1); f < 10000000; f *= 10 { // each length of fraction
		ticks = append(ticks, 132000000000000000+f, 132000000000000000+10000000-f)
	}
	const seed = 1
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 5000 {
		ticks = append(ticks, edm.Ticks(rnd.Int64N(int64(edm.MaxTicks)+1)))
	}
	for _, k := range ticks {
		want := k.Time().Format(shortest)
		if got := k.String(); got != want {
			t.Fatalf("Ticks(%d).String() = %q, want %q", k, got, want)
		}
		if got, want := string(k.ETag()), `W/"datetime'`+strings.ReplaceAll(want, ":", "%3A")+`'"`; got != want {
			t.Fatalf("Ticks(%d).ETag() = %q, want %q", k, got, want)
		}
		if got, err := edm.ParseTicks(want); err != nil || got != k {
			t.Fatalf("ParseTicks(%q) = %d, %v, want %d", want, got, err, k)
		}
		if got := edm.TicksOf(k.Time()); got != k {
			t.Fatalf("TicksOf(%v) = %d, want %d", k.Time(), got, k)
		}
	}
}

func TestTicksOfOutsideRange(t *testing.T) {
	for _, c := range []struct {
		name string
		time time.Time
		want bool
	}{
		{"first", time.Date(1601, 1, 1, 0, 0, 0, 0, time.UTC), true},
		{"last", time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC), true},
		{"before", time.Date(1600, 12, 31, 23, 59, 59, 999999999, time.UTC), false},
		{"after", time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), false},
		{"zero time", time.Time{}, false},
		{"so long before that its ticks would be 0 modulo 2^64", time.Unix(-1<<60, 0), false},
		{"so long after", time.Unix(1<<60, 0), false},
		{"other zone", time.Date(1601, 1, 1, 0, 0, 0, 0, time.FixedZone("ahead", 3600)), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := edm.TicksOf(c.time); got.Valid() != c.want {
				t.Errorf("TicksOf(%v) = %d, valid %v, want %v", c.time, got, got.Valid(), c.want)
			}
		})
	}
}

// TestTicksTextInvalid formats times that no DateTime has, as messages do.
func TestTicksTextInvalid(t *testing.T) {
	for k, want := range map[edm.Ticks]string{
		-1: "1600-12-31T23:59:59.9999999Z", edm.MaxTicks + 1: "10000-01-01T00:00:00Z",
		math.MaxInt64: "30828-09-14T02:48:05.4775807Z",
	} {
		if got := k.String(); got != want {
			t.Errorf("text of %d: %s, want %s", int64(k), got, want)
		}
		if got := string(k.ETag()); !strings.HasPrefix(got, `W/"datetime'`) {
			t.Errorf("ETag of %d: %s", int64(k), got)
		}
	}
}
