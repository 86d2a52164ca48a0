// Package codec encodes and decodes keys and rows: the user and internal keys, by
// which everything is sorted, the shapes, which are the names and types of a row's
// properties, the packed values of a row, and the entries, which are one operation
// each. Row is a lazy edm.Row over such bytes.
//
// Decoders check every length against their input and return a *corrupt.Error. Its
// File is empty, and its Offset counts from the first byte of the input; the caller
// knows the file and completes both. A decoded value encodes back to the same bytes:
// each content has one encoding.
//
// The API serves Tablerock's engine. It is not stable.
//
// # Keys
//
// Numbers in a key are big-endian, so that bytes.Compare orders keys.
//
//	user key      table id (4 B) | PartitionKey | 01 | RowKey | 01
//	internal key  user key | trailer (8 B) = ^(sequence number << 8 | kind)
//
// A component is a PartitionKey or a RowKey. Each of its UTF-16 code units is
// encoded as 1 to 3 bytes, as in UTF-8, and each half of a surrogate pair as 3 bytes
// of its own (CESU-8):
//
//	U+0020..U+007F   0xxxxxxx
//	U+0080..U+07FF   110xxxxx 10xxxxxx
//	U+0800..U+FFFF   1110xxxx 10xxxxxx 10xxxxxx
//	U+10000..        the same 3 bytes for the high, then for the low surrogate
//
// Byte order is thus the order of code units, and a prefix in code units is a
// prefix in bytes. Text without a character above U+FFFF equals its UTF-8. A
// component has at most 1,024 code units, 3,072 bytes, each byte in 20..EF;
// hence 01 ends a component, 02 sorts after everything with that component,
// and FF sorts after every continuation. No bound needs carry arithmetic:
//
//	partition             [T PK 01, T PK 02)
//	rows that begin in p  [T PK 01 p, T PK 01 p FF)
//	RowKey > r            from T PK 01 r 02
//	PartitionKey >= a     from T a
//	PartitionKey > a      from T a 02
//	table                 [T, T+1)
//
// The trailer sorts newer versions of a key first: the sequence number has 56 bits,
// the kind 8. A table id is never reused for another table.
//
// # Shapes
//
// Numbers outside keys are little-endian. A shape is the ordered list of names
// and types of a row's properties:
//
//	0  2  number of properties, 0..252
//	then for each property
//	0  1  type: 1 String, 2 Binary, 3 Boolean, 4 Int32, 5 Int64, 6 Double, 7 DateTime, 8 Guid
//	1  2  length of the name, 1..765
//	3  n  name, valid UTF-8; no name occurs twice
//
// # Values
//
// The values of a row are a fixed section, in the order of the shape, and a
// variable section:
//
//	Boolean   1  0 or 1
//	Int32     4  two's complement
//	Int64     8  two's complement
//	Double    8  IEEE 754 bits
//	DateTime  8  100 ns since 1601-01-01T00:00:00Z, up to the end of the year 9999
//	Guid     16  the bytes in the order of the text form
//	String    2  end of its bytes, counted from the start of the variable section;
//	Binary    2  it begins where the String or Binary before it ends, the first at 0
//
// The variable section is the bytes of the Strings (valid UTF-8) and Binaries,
// nothing between or after them. When it is longer than 65,535 bytes the row
// is wide, and only then: each end has 4 bytes instead of 2. The offset of a property
// in the fixed section depends on the shape and on wide only.
//
// # Entries
//
// An entry is one operation inside a log record:
//
//	 0  1  kind: 1 delete, 2 put, 3 shape definition; 4 is reserved for range tombstones
//	 1  1  flags: bit 0 = wide; the others are 0
//	 2  2  shape id, per segment, from 1; 0 in a delete
//	 4  4  length of the values
//	 8  8  Timestamp, 100 ns since 1601-01-01T00:00:00Z
//	16  2  length of the key
//	18  k  user key
//	    v  values
//
// A delete has no values. A shape definition has an empty key, its shape id is
// the one it defines and its values are the encoded shape; it consumes no
// sequence number.
package codec

import "github.com/tablerock-db/tablerock/internal/corrupt"

// Kind is the operation of an entry. The numbers are part of the file format; zero is
// not a kind.
type Kind uint8

// The kinds.
const (
	KindDelete Kind = 1 // the key has no row: a tombstone
	KindPut    Kind = 2 // the key has the row that follows
	KindShape  Kind = 3 // defines a shape id; occurs in log records only
	// KindRangeDelete is reserved for range tombstones. No build writes it, and every
	// decoder refuses it.
	KindRangeDelete Kind = 4
)

// Limits of the format; they are part of the file format.
const (
	// TrailerLen is the length of an internal key's trailer.
	TrailerLen = 8
	// MaxSeq is the greatest sequence number.
	MaxSeq = 1<<56 - 1
	// TableLen is the length of the table id with which a user key begins.
	TableLen = 4
	// EndOfComponent ends the PartitionKey and the RowKey of a user key, and so the key.
	EndOfComponent = 0x01
	// MinKeyLen is the length of the shortest user key, which has two empty components.
	MinKeyLen = TableLen + 2
	// MaxKeyLen is the length of the longest user key.
	MaxKeyLen = TableLen + maxComponentLen + 1 + maxComponentLen + 1
	// MaxProperties is the greatest number of properties in a shape.
	MaxProperties = 252
	// MaxNameLen is the length of the longest property name in bytes.
	MaxNameLen = 765
	// EntryHeaderLen is the length of an entry before its key.
	EntryHeaderLen = 18
)

const (
	maxComponentUnits = 1024
	maxComponentLen   = 3 * maxComponentUnits

	afterComponent = 0x02 // sorts after all keys with that component

	shapeHeaderLen    = 2
	propertyHeaderLen = 3

	maxNarrow = 1<<16 - 1 // longest variable section with 2-byte ends

	flagWide = 1 << 0
)

// damaged returns the error for input bytes that break the format at off.
func damaged(off int, format string, args ...any) error {
	return corrupt.Newf("", int64(off), format, args...)
}
