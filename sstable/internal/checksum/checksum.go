// Package checksum has the sums of the sections of a file.
package checksum

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// Bytes is the length of the sum that ends a section.
const Bytes = 8

// Binding binds the sums of a file to it: a section at another offset, or in another
// file, has a wrong sum. The sum of a section is
//
//	XXH64(bytes before the sum) xor f(file, offset of the section)
type Binding uint64

// Bind returns the Binding of a file.
func Bind(dbid [16]byte, number uint64) Binding {
	var b [24]byte
	copy(b[:], dbid[:])
	binary.LittleEndian.PutUint64(b[16:], number)
	return Binding(xxhash.Sum64(b[:]))
}

// Sum returns the sum of a section at off whose bytes before the sum are p.
func (b Binding) Sum(p []byte, off int64) uint64 {
	m := (uint64(b) + uint64(off)) * 0x9E3779B97F4A7C15
	m = (m ^ m>>32) * 0xD6E8FEB86659FD93
	return xxhash.Sum64(p) ^ m ^ m>>29
}

// AppendSum appends the sum of the section dst[from:], whose offset in the file is
// off.
func (b Binding) AppendSum(dst []byte, from int, off int64) []byte {
	return binary.LittleEndian.AppendUint64(dst, b.Sum(dst[from:], off))
}

// Check reports whether section, at off, has the right sum.
func (b Binding) Check(data []byte, off int64) bool {
	n := len(data) - Bytes
	return n >= 0 && binary.LittleEndian.Uint64(data[n:]) == b.Sum(data[:n], off)
}
