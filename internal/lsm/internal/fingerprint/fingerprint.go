// Package fingerprint identifies sets of entries.
package fingerprint

import (
	"encoding/binary"
	"math/bits"

	"github.com/tablerock-db/tablerock/codec"
)

// Fingerprint counts entries and sums the hashes of their internal keys. A
// compaction compares the fingerprint of its inputs with that of its output and
// of what it dropped. The order of the entries does not matter.
type Fingerprint struct{ Entries, Sum uint64 }

// Add includes an entry.
func (f *Fingerprint) Add(key []byte) {
	f.Entries++
	f.Sum += hashEntry(key)
}

// Plus returns the fingerprint of the entries of both.
func (f Fingerprint) Plus(g Fingerprint) Fingerprint {
	return Fingerprint{f.Entries + g.Entries, f.Sum + g.Sum}
}

// hashEntry is good enough to notice that an entry was lost, duplicated or
// changed by mistake. Each entry that is written is hashed twice; a hash that
// also spreads well would cost three times as much.
func hashEntry(key []byte) uint64 {
	h, trailer := mix(uint64(len(key))), len(key)-codec.TrailerLen
	for i := 0; i < trailer; i += 8 {
		h = mix(h ^ binary.LittleEndian.Uint64(key[i:]))
	}
	return mix(h ^ binary.LittleEndian.Uint64(key[trailer:]))
}

func mix(x uint64) uint64 {
	hi, lo := bits.Mul64(x, 0x9E3779B97F4A7C15)
	return hi ^ lo
}
