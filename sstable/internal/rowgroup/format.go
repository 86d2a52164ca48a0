// Package rowgroup encodes and decodes row groups, the parts that an sstable is
// made of: a head with keys and columns, heap units, extents. It reads and
// writes no files: a Row asks for what is not in its head.
package rowgroup

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// A group is one section for its head, one for each heap unit and one for each
// extent:
//
//	head | heap unit ... | extent ...
//
// A heap unit is the values of some consecutive rows, an extent is one value of
// more than 4 KiB; both are either an s2 block or, when that would not be
// clearly smaller, the raw bytes, which is the case when the stored length is
// the raw length. The head and its columns are described below.
//
// Integers are little-endian, except where key bytes stand.

// Limits of the format. What exceeds them is refused before it is allocated.
const (
	MaxBytes     = 32 << 10 // logical size at which a group ends
	MaxRows      = 1024
	MaxHeadBytes = 1 << 20

	unitBytes      = 4 << 10 // a unit ends with the row that reaches it
	maxUnitBytes   = 2 << 20
	maxHeapBytes   = 1 << 30 // of all units, decoded
	bigValueBytes  = 4 << 10 // a longer value is an extent
	maxExtentBytes = 1 << 20
)

// SumBytes is the length of the sum that ends a section.
const SumBytes = 8

// Binding is what the sums of one file are bound to: a section that is found at another
// place, or in another file, has a wrong sum. The sum of a section is
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

// Sum returns the sum of a section that stands at off and holds p.
func (b Binding) Sum(p []byte, off int64) uint64 {
	m := (uint64(b) + uint64(off)) * 0x9E3779B97F4A7C15
	m = (m ^ m>>32) * 0xD6E8FEB86659FD93
	return xxhash.Sum64(p) ^ m ^ m>>29
}

// AppendSum ends the section that begins at dst[from] and will stand at off.
func (b Binding) AppendSum(dst []byte, from int, off int64) []byte {
	return binary.LittleEndian.AppendUint64(dst, b.Sum(dst[from:], off))
}

// Check reports whether section, which stands at off, has the right sum.
func (b Binding) Check(section []byte, off int64) bool {
	n := len(section) - SumBytes
	return n >= 0 && binary.LittleEndian.Uint64(section[n:]) == b.Sum(section[:n], off)
}

// A group's head: its keys and columns. Rows are in internal-key order.
//
// A stretch is the rows of one partition. It keeps what its keys have in common
// once; what follows is the row's suffix, of which the first bytes stand in an
// array of fixed width, padded with zeros, which no key contains. The 01 that
// ends every user key is left out.
//
//	 0  u16 rows, 1..1024
//	 2  u16 stretches
//	 4  u16 heap units
//	 6  u16 slots
//	 8  u16 extents
//	10  u8  width of the suffix array, 0..8
//	11  u8  flags: 1 = some user key has several rows
//	12  u16 length of what all keys have in common
//	14  u16 length of every suffix's rest, or FFFF
//	16  u32 length of all stretch prefixes
//	20  u32 zero
//	24  u64 largest sequence
//	32  what all keys have in common
//	    stretches times
//	        0  u16 first row
//	        2  u16 length of the partition's key: table id, PartitionKey, 01
//	        4  u16 end of the prefix
//	    prefixes, without what all keys have in common
//	    rows times width bytes: suffixes
//	    only with FFFF: rows times u16: ends of the rests
//	    rests of the suffixes
//	    vector of sequences
//	    vector of timestamps; those of tombstones mean nothing
//	    vector of slots, from 1; 0 is a tombstone
//	    unless all rows have one slot: vector of ranks, places within the slot
//	    vector of rows + 1 places in the heap, the raw bytes of all units
//	    heap units times
//	        0  u16 first row
//	        2  u16 zero
//	        4  u32 offset within the group
//	        8  u32 stored length, sum included
//	    extents, by row and property, times
//	        0  u16 row
//	        2  u16 property
//	        4  u32 offset within the group
//	        8  u32 stored length, sum included
//	       12  u32 raw length
//	    slots times
//	        0  u32 shape id
//	        4  u16 rows
//	        6  u8  mode
//	        7  mode 1: the columns, in the order of the shape
//
// A slot is the rows of one shape. Of mode 1, its values are in columns. Of mode
// 2, for shapes of few rows, they are in the heap: a byte that is 1 for the wide
// form, and what codec.AppendValues writes.
const (
	stretchBytes   = 6
	unitDirBytes   = 12
	extentDirBytes = 16

	flagVersions = 1      // part of the file format
	restsVary    = 0xFFFF // part of the file format

	modeColumns = 1 // part of the file format
	modeRows    = 2 // part of the file format
)

// A column: the values of one property of the rows of one slot, by rank. It
// begins with a byte that names the encoding:
//
//	1  word        vector of words: Int32 and Int64 sign-extended, Double as its
//	               IEEE 754 bits, DateTime as ticks
//	2  bits        (rows + 7) / 8 bytes, least significant bit first: Boolean
//	3  guid        16 bytes each
//	4  heap        vector of the values' ends within the row's part of the heap
//	5  heap, last  nothing: the value ends where the row's part ends
//	6  dictionary  u8 entries - 1, u16 length of all, entries times u16 ends, the
//	               entries' bytes, vector of codes
//
// String and Binary have one of the last three. A value that is an extent is
// empty in the heap.
const (
	encodingWord     = 1 // part of the file format
	encodingBits     = 2 // part of the file format
	encodingGuid     = 3 // part of the file format
	encodingHeap     = 4 // part of the file format
	encodingHeapLast = 5 // part of the file format
	encodingDict     = 6 // part of the file format

	guidBytes = 16
)

// maxDictEntries is the most entries of a dictionary.
const maxDictEntries = 256 // part of the file format

// Summaries tell what the columns of each group hold between which bounds, so
// that a scan can leave out groups in which nothing can match. A column is a
// name and a type, whatever shapes it is part of.
//
//	0  u32 columns, at most 256; with 256 there may be more that have no summary
//	   columns times: u8 type, u16 length of the name, the name
//	   groups times:
//	       0  u16 columns that rows of the group have
//	       2  u64 smallest timestamp, tombstones left out
//	      10  u64 largest timestamp
//	      18  for each of the columns:
//	              u16 column
//	              u8  flags: 1 = all rows have it, 2 = NaN may be among the values,
//	                  4 = a lower bound follows, 8 = an upper bound follows
//	              bounds: of a Guid 16 bytes in its order, of a String u8 length
//	              and at most 16 bytes, of Int32, Int64, Double, DateTime and Boolean
//	              u64; a Binary has none
const (
	maxSummaryColumns = 256 // part of the file format

	summaryGroupBytes = 18

	summaryAll   = 1 // part of the file format
	summaryNaN   = 2 // part of the file format
	summaryLower = 4 // part of the file format
	summaryUpper = 8 // part of the file format
)

// maxBoundText is the length of the longest bound of a String.
const maxBoundText = 16 // part of the file format
