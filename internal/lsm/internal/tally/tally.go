// Package tally holds what goes into a merge against what comes out of it.
package tally

import (
	"encoding/binary"
	"math/bits"
)

// Tally counts entries and adds up fingerprints of their internal keys.
type Tally struct{ N, Sum uint64 }

// Add takes an entry into account.
func (t *Tally) Add(key []byte) {
	t.N++
	t.Sum += fingerprint(key)
}

// Plus returns the tally of what both have counted.
func (t Tally) Plus(u Tally) Tally { return Tally{t.N + u.N, t.Sum + u.Sum} }

// fingerprint is enough to notice that an entry was lost, doubled or changed by
// mistake. Two are taken of each entry that is written, and a hash that also
// spreads well would cost three times as much.
func fingerprint(key []byte) uint64 {
	h, last := mix(uint64(len(key))), len(key)-8 // a trailer is that long
	for i := 0; i < last; i += 8 {
		h = mix(h ^ binary.LittleEndian.Uint64(key[i:]))
	}
	return mix(h ^ binary.LittleEndian.Uint64(key[last:]))
}

func mix(x uint64) uint64 {
	hi, lo := bits.Mul64(x, 0x9E3779B97F4A7C15)
	return hi ^ lo
}
