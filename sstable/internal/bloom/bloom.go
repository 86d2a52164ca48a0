// Package bloom is the filter block of a file: it excludes most keys that the file does not have.
package bloom

import "math/bits"

// A filter is a sequence of blocks of 64 bytes. The upper half of a user key's hash
// (codec.KeyHash) selects a block, a second mixing selects seven bits in it. Ten bits
// a key give about one false positive in a hundred. An empty file has no block.
const (
	BlockBytes = 64
	BitsPerKey = 10 // used by the writer only

	probes = 7 // part of the file format
)

// Append appends the filter of the keys with these hashes.
func Append(dst []byte, hashes []uint64) []byte {
	blocks := (len(hashes)*BitsPerKey + 8*BlockBytes - 1) / (8 * BlockBytes)
	from := len(dst)
	dst = append(dst, make([]byte, blocks*BlockBytes)...)
	for _, h := range hashes {
		block, m := blockOf(dst[from:], h)
		for range probes {
			block[m>>3&63] |= 1 << (m & 7)
			m >>= 9
		}
	}
	return dst
}

// Has reports whether the filter may have a key with this hash.
func Has(filter []byte, hash uint64) bool {
	if len(filter) == 0 {
		return false
	}
	block, m := blockOf(filter, hash)
	// Test four bits at once, then three. With a test of each bit in turn, the
	// processor would predict each branch, and wait for the block after a wrong
	// prediction.
	if bit(block, m)&bit(block, m>>9)&bit(block, m>>18)&bit(block, m>>27)&1 == 0 {
		return false
	}
	m >>= 36
	return bit(block, m)&bit(block, m>>9)&bit(block, m>>18)&1 != 0
}

// bit returns a byte whose lowest bit is the bit of block at the position in the
// lowest nine bits of m.
func bit(block *[BlockBytes]byte, m uint64) byte { return block[m>>3&63] >> (m & 7) }

// blockOf returns the block of a hash, and the positions of its bits, nine bits
// each.
func blockOf(filter []byte, hash uint64) (block *[BlockBytes]byte, positions uint64) {
	i, _ := bits.Mul64(hash, uint64(len(filter)/BlockBytes))
	m := bits.RotateLeft64(hash, 32) * 0x9E3779B97F4A7C15
	return (*[BlockBytes]byte)(filter[i*BlockBytes:]), m ^ m>>32
}
