package sstable

import "math/bits"

// A filter is a sequence of blocks of 64 bytes. The upper half of a user key's hash
// (codec.KeyHash) selects a block, a second mixing selects seven bits in it. Ten bits
// a key give about one false positive in a hundred. An empty file has no block.
const (
	filterBlockBytes = 64
	filterBitsPerKey = 10 // used by the writer only
	filterProbes     = 7  // part of the file format
)

// appendFilter appends the filter of the keys with these hashes.
func appendFilter(dst []byte, hashes []uint64) []byte {
	blocks := (len(hashes)*filterBitsPerKey + 8*filterBlockBytes - 1) / (8 * filterBlockBytes)
	from := len(dst)
	dst = append(dst, make([]byte, blocks*filterBlockBytes)...)
	for _, h := range hashes {
		block, m := filterBlock(dst[from:], h)
		for range filterProbes {
			block[m>>3&63] |= 1 << (m & 7)
			m >>= 9
		}
	}
	return dst
}

// filterHas reports whether the filter may have a key with this hash.
func filterHas(filter []byte, hash uint64) bool {
	if len(filter) == 0 {
		return false
	}
	block, m := filterBlock(filter, hash)
	// Test four bits at once, then three. With a test of each bit in turn, the
	// processor would predict each branch, and wait for the block after a wrong
	// prediction.
	if filterBit(block, m)&filterBit(block, m>>9)&filterBit(block, m>>18)&filterBit(block, m>>27)&1 == 0 {
		return false
	}
	m >>= 36
	return filterBit(block, m)&filterBit(block, m>>9)&filterBit(block, m>>18)&1 != 0
}

// filterBit returns a byte whose lowest bit is the bit of block at the position in the
// lowest nine bits of m.
func filterBit(block *[filterBlockBytes]byte, m uint64) byte { return block[m>>3&63] >> (m & 7) }

// filterBlock returns the block of a hash, and the positions of its bits, nine bits
// each.
func filterBlock(filter []byte, hash uint64) (block *[filterBlockBytes]byte, positions uint64) {
	i, _ := bits.Mul64(hash, uint64(len(filter)/filterBlockBytes))
	m := bits.RotateLeft64(hash, 32) * 0x9E3779B97F4A7C15
	return (*[filterBlockBytes]byte)(filter[i*filterBlockBytes:]), m ^ m>>32
}
