package sstable

import "math/bits"

// The filter: blocks of 64 bytes. A user key's hash (codec.KeyHash) chooses a
// block by its upper half, and seven bits in it by a second mixing. Ten bits a
// key give about one false answer in a hundred. An empty file has no block.
const (
	filterBlockBytes = 64
	filterBitsPerKey = 10 // how a writer sizes it; a reader does not rely on it
	filterProbes     = 7  // part of the file format
)

// appendFilter appends the filter of the keys with the given hashes.
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

// filterHas reports whether a key with the given hash may be among those of
// filter.
func filterHas(filter []byte, hash uint64) bool {
	if len(filter) == 0 {
		return false
	}
	block, m := filterBlock(filter, hash)
	// Four bits at once, then the others: a look at one after the other would have
	// the processor guess each time, and wait for the block when it was wrong.
	if filterBit(block, m)&filterBit(block, m>>9)&filterBit(block, m>>18)&filterBit(block, m>>27)&1 == 0 {
		return false
	}
	m >>= 36
	return filterBit(block, m)&filterBit(block, m>>9)&filterBit(block, m>>18)&1 != 0
}

// filterBit returns a number whose lowest bit is the one at the place that the
// lowest nine bits of m name.
func filterBit(block *[filterBlockBytes]byte, m uint64) byte { return block[m>>3&63] >> (m & 7) }

// filterPlace returns the block of a hash, and the bits' places, nine bits each.
func filterBlock(filter []byte, hash uint64) (block *[filterBlockBytes]byte, positions uint64) {
	i, _ := bits.Mul64(hash, uint64(len(filter)/filterBlockBytes))
	m := bits.RotateLeft64(hash, 32) * 0x9E3779B97F4A7C15
	return (*[filterBlockBytes]byte)(filter[i*filterBlockBytes:]), m ^ m>>32
}
