package codec

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/tablerock-db/tablerock/edm"
)

// Entry is one operation of a log record.
type Entry struct {
	Kind      Kind
	Wide      bool   // the values have the wide form
	Shape     uint16 // id of the shape of the values; 0 in a delete
	Timestamp edm.Ticks
	Key       []byte // user key; empty in a shape definition
	Values    []byte // values of a row, or an encoded shape
}

// AppendEntry appends the encoding of e.
func AppendEntry(dst []byte, e Entry) []byte {
	var h [EntryHeaderLen]byte
	h[0] = byte(e.Kind)
	if e.Wide {
		h[1] = flagWide
	}
	binary.LittleEndian.PutUint16(h[2:], e.Shape)
	binary.LittleEndian.PutUint32(h[4:], uint32(len(e.Values)))
	binary.LittleEndian.PutUint64(h[8:], uint64(e.Timestamp))
	binary.LittleEndian.PutUint16(h[16:], uint16(len(e.Key)))
	dst = append(dst, h[:]...)
	dst = append(dst, e.Key...)
	return append(dst, e.Values...)
}

// AppendPut appends the entry of a put of key with the values of props, which s must
// match. PatchEntry sets the shape id and the Timestamp.
func AppendPut(dst, key []byte, s *Shape, props edm.Properties) []byte {
	start := len(dst)
	dst = append(dst, make([]byte, EntryHeaderLen)...)
	dst = append(dst, key...)
	values := len(dst)
	dst, wide := AppendValues(dst, s, props)
	h := dst[start:]
	h[0] = byte(KindPut)
	if wide {
		h[1] = flagWide
	}
	binary.LittleEndian.PutUint32(h[4:], uint32(len(dst)-values))
	binary.LittleEndian.PutUint16(h[16:], uint16(len(key)))
	return dst
}

// DecodeEntry decodes the entry at the start of src and returns its length. Key and
// Values share the memory of src. It checks the frame only: CheckKey, CheckValues and
// DecodeShape check the contents.
func DecodeEntry(src []byte) (e Entry, n int, err error) {
	if len(src) < EntryHeaderLen {
		return Entry{}, 0, damaged(len(src), "entry ends within its header")
	}
	e.Kind = Kind(src[0])
	e.Wide = src[1]&flagWide != 0
	e.Shape = binary.LittleEndian.Uint16(src[2:])
	e.Timestamp = edm.Ticks(binary.LittleEndian.Uint64(src[8:]))
	k := int(binary.LittleEndian.Uint16(src[16:]))
	v := uint64(binary.LittleEndian.Uint32(src[4:]))
	if src[1]&^flagWide != 0 {
		return Entry{}, 0, damaged(1, "flags %#02x in an entry", src[1])
	}
	if !e.Timestamp.Valid() {
		return Entry{}, 0, damaged(8, "Timestamp of %d ticks in an entry", e.Timestamp)
	}
	if err := e.checkFields(k, v); err != nil {
		return Entry{}, 0, damaged(0, "entry of kind %d with %v", e.Kind, err)
	}
	if total := EntryHeaderLen + uint64(k) + v; total > uint64(len(src)) {
		return Entry{}, 0, damaged(4, "entry of %d bytes, left %d", total, len(src))
	}
	n = EntryHeaderLen + k + int(v)
	e.Key = src[EntryHeaderLen : EntryHeaderLen+k : EntryHeaderLen+k]
	e.Values = src[EntryHeaderLen+k : n : n]
	return e, n, nil
}

// checkFields checks that the fields of e, its key of k bytes and its values of v
// bytes are allowed for its kind.
func (e *Entry) checkFields(k int, v uint64) error {
	if k > MaxKeyLen {
		return errors.New("too long a key")
	}
	switch e.Kind {
	case KindPut:
		if e.Shape == 0 {
			return errors.New("no shape")
		}
	case KindDelete:
		if e.Shape != 0 || e.Wide || v != 0 {
			return errors.New("values")
		}
	case KindShape:
		if e.Shape == 0 || e.Wide || k != 0 {
			return errors.New("a key, or without an id")
		}
		return nil
	default:
		return errors.New("an unknown meaning")
	}
	if k == 0 {
		return errors.New("no key")
	}
	return nil
}

// PatchEntry sets the shape id and the Timestamp of an encoded entry. They are known
// when the entry has its position in the log.
func PatchEntry(entry []byte, shape uint16, ts edm.Ticks) {
	binary.LittleEndian.PutUint16(entry[2:], shape)
	binary.LittleEndian.PutUint64(entry[8:], uint64(ts))
}

// EntryKind returns the kind of a well-formed entry.
func EntryKind(entry []byte) Kind { return Kind(entry[0]) }

// EntryShape returns the shape id of a well-formed entry.
func EntryShape(entry []byte) uint16 { return binary.LittleEndian.Uint16(entry[2:]) }

// EntryKeyLen returns the length of a well-formed entry's key.
func EntryKeyLen(entry []byte) int { return int(binary.LittleEndian.Uint16(entry[16:])) }

// EntryKey returns the key of a well-formed entry; it shares its memory.
func EntryKey(entry []byte) []byte {
	n := EntryHeaderLen + EntryKeyLen(entry)
	return entry[EntryHeaderLen:n:n]
}

// ResetEntry sets r to the row in a well-formed put whose values have shape s and have
// passed CheckValues.
func (r *Row) ResetEntry(entry []byte, s *Shape) {
	k := EntryHeaderLen + EntryKeyLen(entry)
	v := k + int(binary.LittleEndian.Uint32(entry[4:])&math.MaxInt32)
	r.key, r.values, r.shape = entry[EntryHeaderLen:k:k], entry[k:v:v], s
	r.ts = edm.Ticks(binary.LittleEndian.Uint64(entry[8:]))
	r.width = entry[1] & flagWide
}

// EntryLen returns the length of a well-formed entry.
func EntryLen(entry []byte) int {
	return EntryHeaderLen + EntryKeyLen(entry) + int(binary.LittleEndian.Uint32(entry[4:]))
}

// TouchEntry reads a byte of each line of the processor's cache of a well-formed entry, up to
// 512 bytes, and returns something that depends on them, so that the compiler keeps the loads.
// They do not wait for each other. Call it for entries in random order before they are used.
func TouchEntry(entry []byte) (read byte) {
	const line, most = 64, 512
	for at, n := 0, min(EntryLen(entry), most); at < n; at += line {
		read |= entry[at]
	}
	return read
}
