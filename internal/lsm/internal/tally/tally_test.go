package tally_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/internal/lsm/internal/tally"
)

func of(keys ...[]byte) (t tally.Tally) {
	for _, k := range keys {
		t.Add(k)
	}
	return t
}

// TestTally changes each bit of keys of many lengths, and looks for keys that
// count alike.
func TestTally(t *testing.T) {
	seen := make(map[tally.Tally]string)
	for n := 8; n < 60; n++ {
		key := bytes.Repeat([]byte{'k'}, n)
		for bit := range 8*n + 1 {
			changed := bytes.Clone(key)
			if bit > 0 {
				changed[(bit-1)/8] ^= 1 << ((bit - 1) % 8)
			}
			got := of(changed)
			if other, ok := seen[got]; ok {
				t.Fatalf("%x counts as %s does", changed, other)
			}
			seen[got] = fmt.Sprintf("%x", changed)
		}
	}
}

func TestPlus(t *testing.T) {
	a, b, c := []byte("a0123456"), []byte("b01234567"), []byte("c012345678")
	for _, tt := range []struct {
		name string
		a, b tally.Tally
		same bool
	}{
		{"in another order", of(a, b, c), of(c, b).Plus(of(a)), true},
		{"one lost", of(a, b, c), of(a, b), false},
		{"one twice and one lost", of(a, b, c), of(a, b, b), false},
		{"nothing", of(), of().Plus(of()), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.a == tt.b; got != tt.same {
				t.Errorf("%+v and %+v: equal %t, want %t", tt.a, tt.b, got, tt.same)
			}
		})
	}
}
