package fingerprint

import (
	"bytes"
	"fmt"
	"testing"
)

func fingerprintOf(keys ...[]byte) (f Fingerprint) {
	for _, k := range keys {
		f.Add(k)
	}
	return f
}

// TestFingerprintOfChangedKeys flips each bit of keys of many lengths and
// compares all fingerprints.
func TestFingerprintOfChangedKeys(t *testing.T) {
	seen := make(map[Fingerprint]string)
	for n := 8; n < 60; n++ {
		key := bytes.Repeat([]byte{'k'}, n)
		for bit := range 8*n + 1 {
			changed := bytes.Clone(key)
			if bit > 0 {
				changed[(bit-1)/8] ^= 1 << ((bit - 1) % 8)
			}
			got := fingerprintOf(changed)
			if other, ok := seen[got]; ok {
				t.Fatalf("%x and %s have the same fingerprint", changed, other)
			}
			seen[got] = fmt.Sprintf("%x", changed)
		}
	}
}

func TestFingerprintPlus(t *testing.T) {
	a, b, c := []byte("a0123456"), []byte("b01234567"), []byte("c012345678")
	for _, tt := range []struct {
		name string
		a, b Fingerprint
		same bool
	}{
		{"in another order", fingerprintOf(a, b, c), fingerprintOf(c, b).Plus(fingerprintOf(a)), true},
		{"one lost", fingerprintOf(a, b, c), fingerprintOf(a, b), false},
		{"one twice and one lost", fingerprintOf(a, b, c), fingerprintOf(a, b, b), false},
		{"nothing", fingerprintOf(), fingerprintOf().Plus(fingerprintOf()), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.a == tt.b; got != tt.same {
				t.Errorf("%+v and %+v: equal %t, want %t", tt.a, tt.b, got, tt.same)
			}
		})
	}
}
