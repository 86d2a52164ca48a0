// Package rowgroup encodes and decodes row groups, which an sstable consists of: a head
// with keys and columns, heap units, and value blocks. It does not read or write
// files: a Row asks its Blocks for the data outside the head.
package rowgroup

import "github.com/tablerock-db/tablerock/sstable/internal/checksum"

// A group is a sequence of sections: one for its head, one for each heap unit, and
// one for each value block:
//
//	heap unit ... | head | heap unit ... | value block ...
//
// The index of the file says where the head is.
//
// A heap unit holds the values of some consecutive rows. A value block holds one
// value of more than 4 KiB. Both are as package compression stores them: raw if the stored
// length, without the sum, equals the raw length.
//
// Integers are little-endian, except in key bytes.

// Limits of the format. Values beyond them are refused before memory is allocated for
// them.
const (
	MaxBytes     = 32 << 10 // size before encoding at which a group ends
	MaxRows      = 1024
	MaxHeadBytes = 1 << 20

	maxBefore          = 1<<16 - 1 // bytes of heap units before the head
	heapUnitBytes      = 4 << 10   // a heap unit ends with the row that reaches this size
	smallHeapUnitBytes = 12 << 10  // with compression.Small
	maxHeapUnitBytes   = 2 << 20
	maxHeapBytes       = 1 << 30 // of all heap units, decoded
	bigValueBytes      = 4 << 10 // a longer value has a value block
	maxValueBlockBytes = 1 << 20
)

// SumBytes is the length of the sum that ends a section.
const SumBytes = checksum.Bytes

// The head of a group holds its keys and columns. Rows are in internal-key order.
//
// A prefix group is the rows of one partition. Their common prefix is stored once.
// The rest of each key is the suffix of the row; its first bytes are in an array of
// fixed width, padded with zeros, which no key contains. The 01 that ends every user
// key is not stored.
//
//	 0  u16 rows, 1..1024
//	 2  u16 prefix groups
//	 4  u16 heap units
//	 6  u16 shape sections
//	 8  u16 value blocks
//	10  u8  width of the suffix array, 0..8
//	11  u8  flags: 1 = some user key has several rows
//	12  u16 length of the prefix of all keys
//	14  u16 length of the rest of every suffix, or FFFF
//	16  u32 length of the prefixes of all prefix groups
//	20  u32 zero
//	24  u64 largest sequence number
//	32  prefix of all keys
//	    for each prefix group
//	        0  u16 first row
//	        2  u16 length of the partition key: table id, PartitionKey, 01
//	        4  u16 end of the prefix
//	    prefixes of the prefix groups, without the prefix of all keys
//	    suffix array: rows times width bytes
//	    only with FFFF: for each row u16 end of its rest
//	    rests of the suffixes
//	    vector of sequence numbers
//	    vector of timestamps; undefined for tombstones
//	    vector of shape sections, from 1; 0 is a tombstone
//	    unless all rows have the same section: vector of ordinals, the index of the
//	        row in its section
//	    vector of rows + 1 offsets in the heap, which is the raw bytes of all units
//	    for each heap unit
//	        0  u16 first row
//	        2  u16 zero
//	        4  u32 offset within the group
//	        8  u32 stored length, sum included
//	    for each value block, ordered by row and property
//	        0  u16 row
//	        2  u16 property
//	        4  u32 offset within the group
//	        8  u32 stored length, sum included
//	       12  u32 raw length
//	    for each shape section
//	        0  u32 shape id
//	        4  u16 rows
//	        6  u8  mode
//	        7  mode 1: the columns, in the order of the shape
//
// A shape section is the rows of one shape. In mode 1 their values are in columns.
// In mode 2, for shapes of few rows, the values of each row are in the heap: a byte
// that is 1 for the wide form, then the bytes of codec.AppendValues.
const (
	prefixGroupBytes   = 6
	heapUnitDirBytes   = 12
	valueBlockDirBytes = 16

	flagVersions = 1      // part of the file format
	restsVary    = 0xFFFF // part of the file format

	modeColumns = 1 // part of the file format
	modeRows    = 2 // part of the file format
)

// A column holds the values of one property for the rows of one shape section, by
// ordinal. Its first byte is the encoding:
//
//	1  word        vector of words: Int32 and Int64 sign-extended, Double as its
//	               IEEE 754 bits, DateTime as ticks
//	2  bits        (rows + 7) / 8 bytes, least significant bit first: Boolean
//	3  guid        16 bytes each
//	4  heap        vector of the ends of the values in the row's bytes of the heap
//	5  heap, last  nothing: the value ends where the row ends
//	6  dictionary  u8 entries - 1, u16 length of all entries, for each entry u16 end,
//	               the bytes of the entries, vector of codes
//
// String and Binary have one of the last three encodings. A value with a value block
// is empty in the heap.
const (
	encodingWord     = 1 // part of the file format
	encodingBits     = 2 // part of the file format
	encodingGuid     = 3 // part of the file format
	encodingHeap     = 4 // part of the file format
	encodingHeapLast = 5 // part of the file format
	encodingDict     = 6 // part of the file format

	guidBytes = 16
)
