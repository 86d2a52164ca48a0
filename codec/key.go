package codec

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
)

// AppendKey appends the user key of a row. As in all functions that take text,
// partition and row must be valid UTF-8 of at most 1,024 UTF-16 code units without
// control characters; the engine has checked that.
func AppendKey(dst []byte, table uint32, partition, row string) []byte {
	return AppendRow(AppendPartition(dst, table, partition), row)
}

// AppendRow appends the rest of a user key after AppendPartition.
func AppendRow(dst []byte, row string) []byte {
	return append(AppendText(dst, row), EndOfComponent)
}

// AppendTable appends the lower bound of a table's keys, which is the upper
// bound of those of table - 1.
func AppendTable(dst []byte, table uint32) []byte {
	return binary.BigEndian.AppendUint32(dst, table)
}

// AppendPartitionStart appends the lower bound of the keys whose PartitionKey
// is at least partition.
func AppendPartitionStart(dst []byte, table uint32, partition string) []byte {
	return AppendText(AppendTable(dst, table), partition)
}

// AppendPartition appends the common prefix of all keys of a partition, which is their
// lower bound.
func AppendPartition(dst []byte, table uint32, partition string) []byte {
	return append(AppendPartitionStart(dst, table, partition), EndOfComponent)
}

// AppendPartitionEnd appends the upper bound of a partition's keys, which is
// the lower bound of the keys whose PartitionKey is greater than partition.
func AppendPartitionEnd(dst []byte, table uint32, partition string) []byte {
	return append(AppendPartitionStart(dst, table, partition), afterComponent)
}

// AppendRowStart appends the lower bound of the keys in a partition whose
// RowKey is at least row.
func AppendRowStart(dst []byte, table uint32, partition, row string) []byte {
	return AppendText(AppendPartition(dst, table, partition), row)
}

// AppendRowEnd appends the lower bound of the keys in a partition whose RowKey
// is greater than row.
func AppendRowEnd(dst []byte, table uint32, partition, row string) []byte {
	return append(AppendRowStart(dst, table, partition, row), afterComponent)
}

// AppendText appends s as a component, without the byte that ends it.
func AppendText(dst []byte, s string) []byte {
	// Most keys are ASCII. If this looked at each byte, missing gets would need 7 % more CPU time
	// (bench/peers, get/key=missing).
	from := len(dst)
	if dst = append(dst, s...); ascii(dst[from:]) {
		return dst
	}
	dst = dst[:from]
	for {
		i := 0
		for i < len(s) && s[i] < 0xF0 {
			i++
		}
		dst = append(dst, s[:i]...)
		if i == len(s) {
			return dst
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		hi, lo := utf16.EncodeRune(r)
		dst = appendUnit(appendUnit(dst, hi), lo)
		s = s[i+n:]
	}
}

// appendUnit appends the three bytes of one surrogate, which package utf8
// refuses to write.
func appendUnit(dst []byte, u rune) []byte {
	return append(dst, 0xE0|byte(u>>12), 0x80|byte(u>>6)&0x3F, 0x80|byte(u)&0x3F)
}

// AppendUTF8 appends the UTF-8 of a well-formed component.
func AppendUTF8(dst, component []byte) []byte {
	for {
		i := nextSurrogate(component)
		dst = append(dst, component[:i]...)
		if i == len(component) {
			return dst
		}
		if len(component) < i+6 {
			return append(dst, component[i:]...)
		}
		hi, lo := unit(component[i:]), unit(component[i+3:])
		dst = utf8.AppendRune(dst, utf16.DecodeRune(hi, lo))
		component = component[i+6:]
	}
}

// nextSurrogate returns the offset of the first surrogate in b, or len(b).
func nextSurrogate(b []byte) int {
	for i := 0; ; {
		j := bytes.IndexByte(b[i:], 0xED)
		if j < 0 {
			return len(b)
		}
		i += j + 1
		if i < len(b) && b[i] >= 0xA0 {
			return i - 1
		}
	}
}

// unit returns the code unit in the first three bytes of b.
func unit(b []byte) rune {
	return rune(b[0]&0x0F)<<12 | rune(b[1]&0x3F)<<6 | rune(b[2]&0x3F)
}

// PartitionLen returns the length of the partition key in a user key: the table id and
// the PartitionKey with its end, which all keys of the partition share. It is 0 if
// userKey, perhaps a bound, has no whole PartitionKey.
func PartitionLen(userKey []byte) int {
	if len(userKey) <= TableLen {
		return 0
	}
	i := bytes.IndexByte(userKey[TableLen:], EndOfComponent)
	if i < 0 {
		return 0
	}
	return TableLen + i + 1
}

// IsPartitionEnd reports whether bound was made by AppendPartitionEnd.
func IsPartitionEnd(bound []byte) bool {
	last := len(bound) - 1
	return last >= TableLen && bound[last] == afterComponent && PartitionLen(bound) == 0
}

// AppendPartitionOfEnd appends the lower bound of the partition whose upper bound is
// end, as AppendPartition does.
func AppendPartitionOfEnd(dst, end []byte) []byte {
	return append(append(dst, end[:len(end)-1]...), EndOfComponent)
}

// SplitKey returns the table id and the encoded components of a user key; they share
// its memory. ok is false if userKey does not have the two ends of a user key.
// CheckKey is stricter.
func SplitKey(userKey []byte) (table uint32, partition, row []byte, ok bool) {
	p := PartitionLen(userKey)
	if p == 0 || len(userKey) == p || userKey[len(userKey)-1] != EndOfComponent {
		return 0, nil, nil, false
	}
	return binary.BigEndian.Uint32(userKey), userKey[TableLen : p-1], userKey[p : len(userKey)-1], true
}

// CheckKey returns an error unless AppendKey can have written userKey.
func CheckKey(userKey []byte) error {
	if len(userKey) < TableLen {
		return damaged(len(userKey), "key ends within the table id")
	}
	off, err := checkComponent(userKey, TableLen)
	if err != nil {
		return err
	}
	off, err = checkComponent(userKey, off)
	if err != nil {
		return err
	}
	if off != len(userKey) {
		return damaged(off, "%d bytes after the end of a key", len(userKey)-off)
	}
	return nil
}

// CheckInternalKey returns an error unless key is an internal key of a row or
// a tombstone.
func CheckInternalKey(key []byte) error {
	n := len(key) - TrailerLen
	if n < 0 {
		return damaged(len(key), "internal key of %d bytes", len(key))
	}
	if _, _, kind := SplitTrailer(key); kind != KindDelete && kind != KindPut {
		return damaged(len(key)-1, "kind %d in an internal key", kind)
	}
	return CheckKey(key[:n])
}

// UserKey returns the user key of an internal key, which has at least TrailerLen bytes. It
// shares its memory.
func UserKey(internal []byte) []byte {
	n := len(internal) - TrailerLen
	return internal[:n:n]
}

// checkComponent checks the component of key at off and returns the offset after it.
func checkComponent(key []byte, off int) (int, error) {
	units := 0
	for i := off; i < len(key); units++ {
		c := key[i]
		if c == EndOfComponent {
			if units > maxComponentUnits {
				return 0, damaged(off, "key component of %d code units, limit %d", units, maxComponentUnits)
			}
			return i + 1, nil
		}
		if c >= 0x20 && c < 0x80 {
			i++
			continue
		}
		n := unitLen(key[i:])
		if n == 0 {
			return 0, damaged(i, "byte %#02x does not begin a code unit", c)
		}
		if n == 6 {
			units++
		}
		i += n
	}
	return 0, damaged(len(key), "key component without end")
}

// unitLen returns the length of the code unit or surrogate pair beyond ASCII at the
// start of b, 0 if it is malformed.
func unitLen(b []byte) int {
	switch c := b[0]; {
	case c < 0xC2:
		return 0 // a control character, a continuation or an overlong form
	case c < 0xE0:
		if len(b) >= 2 && b[1]&0xC0 == 0x80 {
			return 2
		}
		return 0
	case c < 0xF0:
		if len(b) < 3 || b[1]&0xC0 != 0x80 || b[2]&0xC0 != 0x80 {
			return 0
		}
	default:
		return 0
	}
	switch u := unit(b); {
	case u < 0x800:
		return 0
	case u < 0xD800 || u > 0xDFFF:
		return 3
	case u > 0xDBFF || len(b) < 6 || b[3] != 0xED || b[4]&0xF0 != 0xB0 || b[5]&0xC0 != 0x80:
		return 0
	}
	return 6
}

// AppendTrailer appends a trailer, which makes an internal key of the user key in dst.
func AppendTrailer(dst []byte, seq uint64, kind Kind) []byte {
	return binary.BigEndian.AppendUint64(dst, ^(seq<<8 | uint64(kind)))
}

// SplitTrailer splits an internal key, which has at least TrailerLen bytes; user
// shares its memory.
func SplitTrailer(internal []byte) (user []byte, seq uint64, kind Kind) {
	n := len(internal) - TrailerLen
	t := ^binary.BigEndian.Uint64(internal[n:])
	return internal[:n:n], t >> 8, Kind(t)
}

// CommonLen returns the length of the common prefix of a and b.
func CommonLen(a, b []byte) int {
	n, i := min(len(a), len(b)), 0
	for ; i+8 <= n; i += 8 {
		if x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// PartitionHash returns the hash of the partition of userKey.
func PartitionHash(userKey []byte) uint64 {
	return xxhash.Sum64(userKey[:PartitionLen(userKey)])
}

// KeyHash returns the hash of a user key. It is part of the file format: the filters
// of sstables are made of it.
func KeyHash(userKey []byte) uint64 { return xxhash.Sum64(userKey) }
