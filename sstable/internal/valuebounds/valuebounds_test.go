package valuebounds

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
)

// TestTextBounds checks that a shortened bound is never less than the string.
func TestTextBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	runes := []rune("az~\u007Fé\uD7FF\uE000\uFFFF\U00010000\U0010FFFF")
	for range 20000 {
		var list [][]byte
		var b Bounds
		stem := []rune("0123456789abcdefgh")[:r.IntN(19)]
		var other Bounds // of another shape's rows
		for range 1 + r.IntN(4) {
			s := slices.Clone(stem)
			for range r.IntN(9) {
				s = append(s, runes[r.IntN(len(runes))])
			}
			list = append(list, []byte(string(s)))
			if r.IntN(2) == 0 {
				b.AddText(list[len(list)-1])
			} else {
				other.AddText(list[len(list)-1])
			}
		}
		b.Merge(edm.TypeString, &other)
		lo := b.textLo.get()
		hi, ok := b.upperText()
		for _, s := range list {
			if edm.Compare(s, lo) < 0 || ok && edm.Compare(s, hi) > 0 {
				t.Fatalf("%q is not within %q..%q", s, lo, hi)
			}
		}
	}
}
