package bloom

import (
	"math/rand/v2"
	"testing"
)

// TestRate checks that about one answer of the filter in a hundred is a false positive.
func TestRate(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	hashes := make([]uint64, 20000)
	for i := range hashes {
		hashes[i] = rnd.Uint64()
	}
	filter := Append(nil, hashes)
	for _, h := range hashes {
		if !Has(filter, h) {
			t.Fatalf("key with hash %x is not in the filter", h)
		}
	}
	wrong := 0
	for range 100_000 {
		if Has(filter, rnd.Uint64()) {
			wrong++
		}
	}
	if wrong > 1500 {
		t.Errorf("%d false positives in 100000", wrong)
	}
	t.Logf("%d false positives in 100000, %d bits a key", wrong, len(filter)*8/len(hashes))
}
