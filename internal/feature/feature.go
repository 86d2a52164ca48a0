// Package feature lets a file format grow without a new version: feature words, and
// extension areas of typed records.
//
// A format has two words of 64 feature bits. A required feature changes how the rest of
// the format is read: a build that does not know it refuses the file. An optional
// feature is one that an older build may ignore, and that remains true when such a
// build changes the database.
//
// An extension area is a sequence of records without gaps. Integers are little-endian.
//
//	0  2  type
//	2  2  flags: 1 = required; the others are 0
//	4  4  length of the data
//	8     data
//
// Types of 2 and above belong to the structure with the area.
// Type 1 names a required feature: u8 bit, then 1 to 64 bytes of printable ASCII. So an
// older build can name what it does not know. Each required feature that is set has a
// name in the extension area of the same structure. A record of an unknown type is
// ignored and preserved, unless it is required.
package feature

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/bits"
)

// ErrNewerFormat is wrapped by the error of a file that a later version of Tablerock
// wrote.
var ErrNewerFormat = errors.New("newer format")

// ErrUnknown is wrapped by the error of a required feature or record that this build
// does not know.
var ErrUnknown = errors.New("unknown required feature")

// Sizes and numbers that are part of the formats.
const (
	recordLen    = 8
	typeName     = 1
	flagRequired = 1
	maxName      = 64
)

// Zstd is the required feature of an sstable whose compressed heap units and value blocks are
// Zstandard frames, and of a manifest that may list such sstables.
const Zstd = 1 << zstdBit

const (
	zstdBit  = 0
	zstdName = "zstd"
)

// AppendZstd appends the record that names the feature Zstd.
func AppendZstd(dst []byte) []byte { return AppendName(dst, zstdBit, zstdName) }

// Record is a record of an extension area.
type Record struct {
	Type     uint16
	Required bool // a build that does not know Type refuses the file
	Data     []byte
}

// AppendRecord appends the encoding of r.
func AppendRecord(dst []byte, r Record) []byte {
	flags := uint16(0)
	if r.Required {
		flags = flagRequired
	}
	dst = binary.LittleEndian.AppendUint16(dst, r.Type)
	dst = binary.LittleEndian.AppendUint16(dst, flags)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(r.Data)))
	return append(dst, r.Data...)
}

// AppendName appends the record that names the required feature with that bit.
func AppendName(dst []byte, bit uint8, name string) []byte {
	return AppendRecord(dst, Record{Type: typeName, Data: append([]byte{bit}, name...)})
}

// Records yields the records of an area that Check has accepted. Their data share its
// memory.
func Records(area []byte) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for len(area) > 0 {
			r, n, err := decodeRecord(area)
			if err != nil || !yield(r) {
				return
			}
			area = area[n:]
		}
	}
}

func decodeRecord(src []byte) (r Record, n int, err error) {
	if len(src) < recordLen {
		return Record{}, 0, fmt.Errorf("record of %d bytes", len(src))
	}
	r.Type = binary.LittleEndian.Uint16(src)
	flags, size := binary.LittleEndian.Uint16(src[2:]), binary.LittleEndian.Uint32(src[4:])
	if r.Type == 0 || flags&^flagRequired != 0 {
		return Record{}, 0, fmt.Errorf("record of type %d with flags %#x", r.Type, flags)
	}
	if uint64(size) > uint64(len(src)-recordLen) {
		return Record{}, 0, fmt.Errorf("record of %d bytes, left %d", size, len(src)-recordLen)
	}
	n = recordLen + int(size)
	r.Required, r.Data = flags&flagRequired != 0, src[recordLen:n:n]
	return r, n, nil
}

// Check verifies an extension area, and that this build knows every required feature
// and record: known has the bits of the features that it knows. The error wraps
// ErrUnknown and names the feature if it does not; any other error is damage.
func Check(area []byte, required, known uint64) error {
	names := make(map[uint8]string)
	var unknown error
	for rest := area; len(rest) > 0; {
		r, n, err := decodeRecord(rest)
		if err != nil {
			return fmt.Errorf("extension area at %d: %w", len(area)-len(rest), err)
		}
		rest = rest[n:]
		switch {
		case r.Type == typeName:
			bit, name, err := decodeName(r.Data)
			if err != nil {
				return err
			}
			names[bit] = name
		case r.Required && unknown == nil:
			unknown = fmt.Errorf("%w: extension record of type %d", ErrUnknown, r.Type)
		}
	}
	if missing := required &^ known; missing != 0 {
		bit := uint8(bits.TrailingZeros64(missing))
		if name, ok := names[bit]; ok {
			return fmt.Errorf("%w: %q", ErrUnknown, name)
		}
		return fmt.Errorf("%w: bit %d, which has no name", ErrUnknown, bit)
	}
	return unknown
}

func decodeName(data []byte) (bit uint8, name string, err error) {
	if len(data) < 2 || len(data) > 1+maxName || data[0] > 63 {
		return 0, "", fmt.Errorf("name of a feature in %d bytes", len(data))
	}
	for _, c := range data[1:] {
		if c <= ' ' || c > '~' {
			return 0, "", fmt.Errorf("name %q of a feature", data[1:])
		}
	}
	return data[0], string(data[1:]), nil
}

// Names returns the names of the required features that are set, "bit N" for one
// without a name. Check has accepted the area.
func Names(area []byte, required uint64) []string {
	named := make(map[uint8]string)
	for r := range Records(area) {
		if r.Type == typeName && len(r.Data) > 1 {
			named[r.Data[0]] = string(r.Data[1:])
		}
	}
	names := []string{}
	for ; required != 0; required &= required - 1 {
		bit := uint8(bits.TrailingZeros64(required))
		name := named[bit]
		if name == "" {
			name = fmt.Sprintf("bit %d", bit)
		}
		names = append(names, name)
	}
	return names
}
