package main

import (
	"encoding/binary"
	"errors"
	"fmt"

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

// matches reports whether a value matches m. It decodes only the property that m needs.
func matches(src []byte, m *bench.Match) (bool, error) {
	for len(src) >= 2 {
		id, t := src[0], edm.Type(src[1])
		src = src[2:]
		wanted := int(id) == m.Prop
		switch t {
		case edm.TypeDouble:
			if len(src) < 8 {
				return false, errValue
			}
			if wanted {
				return m.Double(binary.LittleEndian.Uint64(src)), nil
			}
			src = src[8:]
		case edm.TypeInt32, edm.TypeInt64, edm.TypeDateTime:
			n, used := binary.Uvarint(src)
			if used <= 0 {
				return false, errValue
			}
			if wanted {
				return m.Word(wordOf(t, n)), nil
			}
			src = src[used:]
		case edm.TypeString, edm.TypeBinary:
			n, used := binary.Uvarint(src)
			if used <= 0 || uint64(len(src)-used) < n {
				return false, errValue
			}
			if wanted {
				return m.Bytes(src[used : used+int(n)]), nil
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

// wordOf returns the integer or the ticks in the varint of a property.
func wordOf(t edm.Type, n uint64) int64 {
	if t == edm.TypeDateTime {
		return int64(n)
	}
	return int64(n>>1) ^ -int64(n&1)
}

// fold folds a value unless m is not nil and the value does not match.
func fold(value []byte, m *bench.Match, f *bench.Fold) (matched bool, err error) {
	if m != nil {
		if is, err := matches(value, m); err != nil || !is {
			return false, err
		}
	}
	return true, foldValue(value, f)
}

// bounds sets the bounds of the keys that a scan selects.
func (k *keys) bounds(s bench.Scan) {
	k.lower, k.upper = appendBounds(k.lower[:0], k.upper[:0], s.Partition)
	if s.Partition == "" && s.From.Partition != "" {
		k.lower = appendKey(k.lower[:0], s.From)
	}
}

// keys has the buffers of a session.
type keys struct{ key, value, lower, upper []byte }

// encode encodes an entity. The slices are valid until the next call.
func (k *keys) encode(e *edm.Entity) (key, value []byte) {
	k.key, k.value = appendKey(k.key[:0], e.Key), appendValue(k.value[:0], e.Properties)
	return k.key, k.value
}

// pairs has the encoded entities of one transaction, for stores that read the slices
// when it ends.
type pairs struct {
	buf  []byte
	ends []int // of each key and each value in buf
}

func (p *pairs) encode(entities []edm.Entity) {
	p.buf, p.ends = p.buf[:0], p.ends[:0]
	for i := range entities {
		p.buf = appendKey(p.buf, entities[i].Key)
		p.ends = append(p.ends, len(p.buf))
		p.buf = appendValue(p.buf, entities[i].Properties)
		p.ends = append(p.ends, len(p.buf))
	}
}

// encodeKeys encodes keys with empty values.
func (p *pairs) encodeKeys(keys []edm.Key) {
	p.buf, p.ends = p.buf[:0], p.ends[:0]
	for i := range keys {
		p.buf = appendKey(p.buf, keys[i])
		p.ends = append(p.ends, len(p.buf), len(p.buf))
	}
}

// each calls f with all pairs.
func (p *pairs) each(f func(key, value []byte) error) error {
	from := 0
	for i := 0; i < len(p.ends); i += 2 {
		mid, to := p.ends[i], p.ends[i+1]
		if err := f(p.buf[from:mid:mid], p.buf[mid:to:to]); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// limited counts the rows of a scan and reports when they are enough.
func limited(s bench.Scan, rows *int, matched bool) bool {
	if matched {
		*rows++
	}
	return s.Limit > 0 && *rows >= s.Limit
}
