package parquetfile

import (
	"encoding/binary"
	"errors"

	"github.com/parquet-go/parquet-go/encoding/thrift"
)

const (
	// maxStructures and maxItems limit the structures and the other items in all lists of a
	// file's metadata. The library allocates a list, up to 600 bytes a structure, before it
	// reads any item.
	maxStructures = 1 << 18
	maxItems      = 1 << 21
	maxDepth      = 32
)

// The types of values in Thrift's compact protocol.
const (
	thriftStop   = 0
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
)

var (
	errShort   = errors.New("it ends early")
	errHostile = errors.New("it has more items than its length or the limit allows")
)

// thriftWalk walks over a value without allocating.
type thriftWalk struct {
	b                 []byte
	at                int
	structures, items uint64
}

// thriftLength returns the length of the structure at the start of b, after a check of all
// lengths in it. The error is errShort if b is a prefix of a valid structure.
func thriftLength(b []byte) (int, error) {
	w := thriftWalk{b: b}
	err := w.structure(0)
	return w.at, err
}

func (w *thriftWalk) byte() (byte, error) {
	if w.at >= len(w.b) {
		return 0, errShort
	}
	w.at++
	return w.b[w.at-1], nil
}

func (w *thriftWalk) varint() (uint64, error) {
	n, size := binary.Uvarint(w.b[w.at:])
	switch {
	case size == 0:
		return 0, errShort
	case size < 0:
		return 0, errHostile
	}
	w.at += size
	return n, nil
}

// skip skips n bytes.
func (w *thriftWalk) skip(n uint64) error {
	if n > uint64(len(w.b)-w.at) {
		return errShort
	}
	w.at += int(n)
	return nil
}

func (w *thriftWalk) structure(depth int) error {
	if depth > maxDepth {
		return errHostile
	}
	for {
		head, err := w.byte()
		if err != nil || head == thriftStop {
			return err
		}
		if head>>4 == 0 {
			if _, err := w.varint(); err != nil { // the number of the field
				return err
			}
		}
		if typ := head & 15; typ != thriftTrue && typ != thriftFalse { // the head has these values
			if err := w.value(typ, depth); err != nil {
				return err
			}
		}
	}
}

func (w *thriftWalk) value(typ byte, depth int) error {
	switch typ {
	case thriftTrue, thriftFalse, thriftByte:
		return w.skip(1)
	case 4, 5, 6: // integers
		_, err := w.varint()
		return err
	case thriftDouble:
		return w.skip(8)
	case thriftBinary:
		n, err := w.varint()
		if err != nil {
			return err
		}
		return w.skip(n)
	case thriftList, thriftSet:
		head, err := w.byte()
		if err != nil {
			return err
		}
		n := uint64(head >> 4)
		if n == 15 {
			if n, err = w.varint(); err != nil {
				return err
			}
		}
		return w.elements(n, head&15, thriftStop, depth)
	case thriftMap:
		n, err := w.varint()
		if err != nil || n == 0 {
			return err
		}
		types, err := w.byte()
		if err != nil {
			return err
		}
		return w.elements(n, types>>4, types&15, depth)
	case thriftStruct:
		return w.structure(depth + 1)
	}
	return errHostile
}

// elements skips n elements of a type, or of a key and a value type.
func (w *thriftWalk) elements(n uint64, first, second byte, depth int) error {
	if n > maxItems {
		return errHostile
	}
	w.items += n
	if first == thriftStruct || second == thriftStruct {
		w.structures += n
	}
	if depth > maxDepth || w.items > maxItems || w.structures > maxStructures {
		return errHostile
	}
	for range n {
		if err := w.value(first, depth+1); err != nil {
			return err
		}
		if second != thriftStop {
			if err := w.value(second, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// decode decodes a structure that thriftLength has checked.
func decode(b []byte, to any) error {
	return guard(func() error {
		if err := thrift.Unmarshal(new(thrift.CompactProtocol), b, to); err != nil {
			return damaged("its metadata: %v", err)
		}
		return nil
	})
}
