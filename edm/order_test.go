package edm_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
)

// borders has the first and last characters of each class that UTF-8, UTF-16 or their
// orders distinguish.
var borders = []rune{
	0x00, 0x01, 0x1F, 0x20, 0x2F, 0x41, 0x61, 0x7E, 0x7F, 0x80, 0x9F, 0xA0, 0x7FF, 0x800, 0xFFF, 0x1000,
	0xCFFF, 0xD000, 0xD7FE, 0xD7FF, 0xE000, 0xE001, 0xEFFF, 0xF000, 0xFDD0, 0xFFFD, 0xFFFE, 0xFFFF,
	0x10000, 0x10001, 0x103FF, 0x10400, 0x1F600, 0x3FFFF, 0x40000, 0xFFFFF, 0x100000, 0x10FFFE, 0x10FFFF,
}

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		name, a, b string
		want       int
	}{
		{"equal", "a", "a", 0},
		{"empty is first", "", "\x00", -1},
		{"prefix is first", "a", "ab", -1},
		{"case matters, upper first", "B", "a", -1},
		{"pair before U+E000", "\U0001F600", "\ue000", -1},
		{"pair before U+FFFF", "\U0010FFFF", "\uffff", -1},
		{"U+D7FF before pair", "\ud7ff", "\U00010000", -1},
		{"first unit of a pair", "\U000103FF", "\U00010400", -1},
		{"in the ninth byte", "12345678\ue000", "12345678\U00010000", 1},
		{"no normalisation", "e\u0301", "\u00e9", -1},
	} {
		t.Run(c.name, func(t *testing.T) { checkCompare(t, c.a, c.b, c.want) })
	}
}

// checkCompare compares a and b with every function.
func checkCompare(t *testing.T, a, b string, want int) {
	t.Helper()
	for _, c := range []struct {
		how       string
		got, want int
	}{
		{"oracle", oracleCompare(a, b), want},
		{"Compare", edm.Compare(a, b), want},
		{"Compare, reversed", edm.Compare(b, a), -want},
		{"Compare of bytes", edm.Compare([]byte(a), []byte(b)), want},
		{"Key.Compare of partitions", edm.Key{Partition: a, Row: "z"}.Compare(edm.Key{Partition: b, Row: "z"}), want},
		{"Key.Compare of rows", edm.Key{Partition: "z", Row: a}.Compare(edm.Key{Partition: "z", Row: b}), want},
	} {
		if c.got != c.want {
			t.Fatalf("%s of %+q and %+q = %d, want %d", c.how, a, b, c.got, c.want)
		}
	}
}

// TestCompareBorders compares all pairs of texts of up to two border characters
// after common prefixes of lengths around a machine word.
func TestCompareBorders(t *testing.T) {
	texts := []string{""}
	for _, r := range borders {
		texts = append(texts, string(r))
		for _, q := range []rune{'a', 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF} {
			texts = append(texts, string(r)+string(q))
		}
	}
	for _, a := range texts {
		for _, b := range texts {
			want := oracleCompare(a, b)
			for _, n := range []int{0, 7, 8} {
				p := strings.Repeat("p", n)
				if got := edm.Compare(p+a, p+b); got != want {
					t.Fatalf("Compare(%+q, %+q) = %d, want %d", p+a, p+b, got, want)
				}
			}
			if got := edm.Compare([]byte(a), []byte(b)); got != want {
				t.Fatalf("Compare of bytes (%+q, %+q) = %d, want %d", a, b, got, want)
			}
		}
	}
}

func TestKeyCompare(t *testing.T) {
	for _, c := range []struct {
		name string
		a, b edm.Key
		want int
	}{
		{"equal", edm.Key{Partition: "a", Row: "b"}, edm.Key{Partition: "a", Row: "b"}, 0},
		{"partition decides", edm.Key{Partition: "a", Row: "z"}, edm.Key{Partition: "b", Row: "a"}, -1},
		{"row decides", edm.Key{Partition: "a", Row: "z"}, edm.Key{Partition: "a", Row: "a"}, 1},
		{"shorter partition first", edm.Key{Partition: "a", Row: "z"}, edm.Key{Partition: "ab"}, -1},
		{"empty keys first", edm.Key{}, edm.Key{Row: " "}, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.a.Compare(c.b); got != c.want {
				t.Errorf("%+v.Compare(%+v) = %d, want %d", c.a, c.b, got, c.want)
			}
			if got := c.b.Compare(c.a); got != -c.want {
				t.Errorf("%+v.Compare(%+v) = %d, want %d", c.b, c.a, got, -c.want)
			}
		})
	}
}

func TestUTF16Len(t *testing.T) {
	const seed = 1
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for i := range 5000 {
		var b strings.Builder
		for range rnd.IntN(24) {
			if rnd.IntN(3) == 0 {
				b.WriteRune(borders[rnd.IntN(len(borders))])
			} else {
				b.WriteByte('a')
			}
		}
		s := b.String()
		if got, want := edm.UTF16Len(s), len(units(s)); got != want {
			t.Fatalf("text %d: UTF16Len(%+q) = %d, want %d", i, s, got, want)
		}
		if got, want := edm.UTF16Len([]byte(s)), len(units(s)); got != want {
			t.Fatalf("text %d: UTF16Len of bytes (%+q) = %d, want %d", i, s, got, want)
		}
	}
	for _, r := range borders {
		for n := range 9 {
			s := strings.Repeat("a", n) + string(r) + strings.Repeat("a", 8-n)
			t.Run(fmt.Sprintf("%U at %d", r, n), func(t *testing.T) {
				if got, want := edm.UTF16Len(s), len(units(s)); got != want {
					t.Errorf("UTF16Len(%+q) = %d, want %d", s, got, want)
				}
			})
		}
	}
}
