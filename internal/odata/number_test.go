package odata_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/internal/odata"
)

func TestAppendDouble(t *testing.T) {
	for _, c := range []struct {
		in   float64
		want string
	}{
		{0, "0.0"},
		{math.Copysign(0, -1), "-0.0"},
		{1, "1.0"},
		{-3, "-3.0"},
		{3.5, "3.5"},
		{0.1, "0.1"},
		{0.0001, "0.0001"},
		{0.00012345, "0.00012345"},
		{0.00001, "1E-05"},
		{-1.5e-7, "-1.5E-07"},
		{100, "100.0"},
		{12.34, "12.34"},
		{999999999999999, "999999999999999.0"},
		{1e15, "1E+15"},
		{1.5e15, "1.5E+15"},
		{123456789012345.6, "123456789012345.59"},
		{9.2233720368547758e21, "9.2233720368547758E+21"},
		{9007199254740993, "9007199254740992.0"},
		{1234567890123456.7, "1234567890123456.8"},
		{0.30000000000000004, "0.30000000000000004"},
		{math.Pi, "3.1415926535897931"},
		{1e100, "1E+100"},
		{math.MaxFloat64, "1.7976931348623157E+308"},
		{math.SmallestNonzeroFloat64, "4.94065645841247E-324"},
		{math.NaN(), "NaN"},
		{math.Inf(1), "Infinity"},
		{math.Inf(-1), "-Infinity"},
	} {
		if got := string(odata.AppendDouble([]byte("x"), c.in)); got != "x"+c.want {
			t.Errorf("AppendDouble(x, %v) = %q, want %q", c.in, got, "x"+c.want)
		}
	}
}

// TestDoublesRoundTrip encodes random bit patterns and parses the texts with the
// standard library.
func TestDoublesRoundTrip(t *testing.T) {
	const seed = 11
	r := rand.New(rand.NewPCG(seed, seed))
	for range 200_000 {
		f := math.Float64frombits(r.Uint64())
		if r.IntN(2) == 0 {
			f = math.Round(r.NormFloat64()*1e6) / 1e3
		}
		if r.IntN(20) == 0 {
			f = math.Float64frombits(r.Uint64() >> 12) // subnormal
		}
		if math.IsNaN(f) || math.IsInf(f, 0) {
			continue
		}
		text := string(odata.AppendDouble(nil, f))
		got, err := strconv.ParseFloat(text, 64)
		if err != nil || math.Float64bits(got) != math.Float64bits(f) {
			t.Fatalf("seed %d: %x encoded as %q parses as %x, %v", seed, f, text, got, err)
		}
	}
}

// fixedText is the text of f between 1E-4 and 1E+15: 15 digits if they parse as f, 17
// otherwise.
func fixedText(f float64) string {
	precision := 15
	text := strconv.FormatFloat(f, 'e', precision-1, 64)
	if g, _ := strconv.ParseFloat(text, 64); g != f {
		precision = 17
		text = strconv.FormatFloat(f, 'e', precision-1, 64)
	}
	_, e, _ := strings.Cut(text, "e")
	exponent, _ := strconv.Atoi(e)
	text = strconv.FormatFloat(f, 'f', max(1, precision-1-exponent), 64)
	for strings.HasSuffix(text, "0") && !strings.HasSuffix(text, ".0") {
		text = text[:len(text)-1]
	}
	return text
}

// TestDecimals encodes decimal numbers with some fractional digits, and the adjacent
// Doubles.
func TestDecimals(t *testing.T) {
	const seed = 12
	r := rand.New(rand.NewPCG(seed, seed))
	for range 100_000 {
		f := float64(r.Uint64N(1e15) / uint64(math.Pow10(r.IntN(15))))
		f /= math.Pow10(r.IntN(7))
		for _, f := range []float64{f, math.Nextafter(f, 0), math.Nextafter(f, 1e15)} {
			if f < 1e-4 {
				continue
			}
			for sign, f := range map[string]float64{"": f, "-": -f} {
				if got, want := string(odata.AppendDouble(nil, f)), sign+fixedText(math.Abs(f)); got != want {
					t.Fatalf("seed %d: %x encoded as %q, want %q", seed, f, got, want)
				}
			}
		}
	}
}

// doubleText is the text of f, a normal number above 0, by two conversions: 15 digits if they
// parse as f, 17 otherwise.
func doubleText(f float64) string {
	precision := 15
	text := strconv.FormatFloat(f, 'e', precision-1, 64)
	if g, _ := strconv.ParseFloat(text, 64); g != f {
		precision = 17
		text = strconv.FormatFloat(f, 'e', precision-1, 64)
	}
	digits, e, _ := strings.Cut(text, "e")
	exponent, _ := strconv.Atoi(e)
	if exponent > -5 && exponent < precision {
		return fixedText(f)
	}
	sign := "+"
	if exponent < 0 {
		sign, exponent = "-", -exponent
	}
	return fmt.Sprintf("%sE%s%02d", strings.TrimSuffix(strings.TrimRight(digits, "0"), "."), sign, exponent)
}

// TestDoubleDigits encodes random Doubles, numbers of 15 digits, and the adjacent Doubles.
func TestDoubleDigits(t *testing.T) {
	const seed = 13
	r := rand.New(rand.NewPCG(seed, seed))
	for range 30_000 {
		f := math.Float64frombits(r.Uint64() &^ (1 << 63))
		switch r.IntN(4) {
		case 0:
			f = r.Float64() * 100
		case 1:
			f, _ = strconv.ParseFloat(fmt.Sprintf("%de%d", r.Uint64N(1e15), r.IntN(600)-300), 64)
		case 2:
			f, _ = strconv.ParseFloat(fmt.Sprintf("%de%d", r.Uint64N(1e15), r.IntN(24)-20), 64)
		}
		for _, f := range []float64{f, math.Nextafter(f, 0), math.Nextafter(f, math.Inf(1)), f + f*0x1p-51} {
			if f < 0x1p-1022 || math.IsInf(f, 0) || math.IsNaN(f) {
				continue
			}
			if got, want := string(odata.AppendDouble(nil, f)), doubleText(f); got != want {
				t.Fatalf("seed %d: %x encoded as %q, want %q", seed, f, got, want)
			}
		}
	}
}
