package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/tablerock-db/tablerock/bench"
	"github.com/tablerock-db/tablerock/edm"
)

// The peers store bytes. They get the smallest encoding for the dataset: it has a fixed
// set of properties and omits everything that only a general store needs.
//
//	key    "Telemetry" 00 PartitionKey 00 RowKey
//	value  properties in order, each: u8 id | u8 type | value
//
//	Boolean          u8
//	Int32, Int64     zigzag varint
//	DateTime         uvarint
//	Double           8 bytes
//	Guid             16 bytes
//	String, Binary   uvarint length | bytes

const keyPrefix = "Telemetry\x00"

func appendKey(dst []byte, key edm.Key) []byte {
	dst = append(dst, keyPrefix...)
	dst = append(dst, key.Partition...)
	dst = append(dst, 0)
	return append(dst, key.Row...)
}

// appendBounds appends the bounds of a partition, or of the table for "".
func appendBounds(lower, upper []byte, partition string) (lo, up []byte) {
	lower, upper = append(lower, keyPrefix...), append(upper, keyPrefix...)
	if partition == "" {
		upper[len(upper)-1]++
		return lower, upper
	}
	lower, upper = append(lower, partition...), append(upper, partition...)
	return append(lower, 0), append(upper, 1)
}

func appendValue(dst []byte, props edm.Properties) []byte {
	for i := range props {
		v := props[i].Value
		t := v.Type()
		dst = append(dst, byte(i), byte(t))
		switch t {
		case edm.TypeString, edm.TypeBinary:
			b := v.Bytes()
			dst = binary.AppendUvarint(dst, uint64(len(b)))
			dst = append(dst, b...)
		case edm.TypeBoolean:
			dst = append(dst, byte(v.Word()))
		case edm.TypeInt32, edm.TypeInt64:
			dst = binary.AppendVarint(dst, int64(v.Word()))
		case edm.TypeDateTime:
			dst = binary.AppendUvarint(dst, v.Word())
		case edm.TypeDouble:
			dst = binary.LittleEndian.AppendUint64(dst, v.Word())
		case edm.TypeGuid:
			dst = append(dst, v.Bytes()...)
		}
	}
	return dst
}

var errValue = errors.New("value cannot be decoded")

// foldValue folds all properties of a value.
func foldValue(src []byte, f *bench.Fold) error {
	for len(src) >= 2 {
		t := edm.Type(src[1])
		src = src[2:]
		switch t {
		case edm.TypeString, edm.TypeBinary:
			n, used := binary.Uvarint(src)
			if used <= 0 || uint64(len(src)-used) < n {
				return errValue
			}
			f.Bytes(t, src[used:used+int(n)])
			src = src[used+int(n):]
		case edm.TypeBoolean:
			if len(src) < 1 {
				return errValue
			}
			f.Word(t, uint64(src[0]))
			src = src[1:]
		case edm.TypeInt32, edm.TypeInt64:
			n, used := binary.Varint(src)
			if used <= 0 {
				return errValue
			}
			f.Word(t, uint64(n))
			src = src[used:]
		case edm.TypeDateTime:
			n, used := binary.Uvarint(src)
			if used <= 0 {
				return errValue
			}
			f.Word(t, n)
			src = src[used:]
		case edm.TypeDouble:
			if len(src) < 8 {
				return errValue
			}
			f.Word(t, binary.LittleEndian.Uint64(src))
			src = src[8:]
		case edm.TypeGuid:
			if len(src) < 16 {
				return errValue
			}
			f.Bytes(t, src[:16])
			src = src[16:]
		default:
			return fmt.Errorf("%w: type %d", errValue, t)
		}
	}
	f.End()
	return nil
}

// hot reports whether a value matches bench.Filter. It decodes only the property that the
// filter needs.
func hot(src []byte) (bool, error) {
	for len(src) >= 2 {
		id, t := src[0], edm.Type(src[1])
		src = src[2:]
		switch t {
		case edm.TypeDouble:
			if len(src) < 8 {
				return false, errValue
			}
			if id == bench.PropTemperature {
				return math.Float64frombits(binary.LittleEndian.Uint64(src)) > bench.HotAbove, nil
			}
			src = src[8:]
		case edm.TypeInt32, edm.TypeInt64, edm.TypeDateTime:
			_, used := binary.Uvarint(src)
			if used <= 0 {
				return false, errValue
			}
			src = src[used:]
		case edm.TypeString, edm.TypeBinary:
			n, used := binary.Uvarint(src)
			if used <= 0 || uint64(len(src)-used) < n {
				return false, errValue
			}
			src = src[used+int(n):]
		case edm.TypeBoolean:
			if len(src) < 1 {
				return false, errValue
			}
			src = src[1:]
		case edm.TypeGuid:
			if len(src) < 16 {
				return false, errValue
			}
			src = src[16:]
		default:
			return false, errValue
		}
	}
	return false, errValue
}

// fold folds a value unless onlyHot is set and the value is not hot.
func fold(value []byte, onlyHot bool, f *bench.Fold) error {
	if onlyHot {
		if is, err := hot(value); err != nil || !is {
			return err
		}
	}
	return foldValue(value, f)
}
