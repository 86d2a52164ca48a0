package codec

import (
	"encoding/binary"
	"slices"

	"github.com/tablerock-db/tablerock/edm"
)

// ShapedRow is a row that knows its shape. Values of a row in a file are read when
// they are first asked for. At and Lookup give null for a value that cannot be read.
type ShapedRow interface {
	edm.Row
	// Shape returns the names and types of the row's properties.
	Shape() *Shape
	// Load reads all values that are not in memory. After Load has returned nil, At
	// and Lookup do not fail.
	Load() error
	// LoadAt reads value i, if it is not in memory. After LoadAt has returned nil, At(i)
	// does not fail.
	LoadAt(i int) error
	// Err returns why a value that was asked for is null. Call it before anything
	// depends on a value that was asked for without Load.
	Err() error
}

// Row is the lazy view of an encoded row: it decodes a value when it is asked for. It
// and the bytes of its values are valid until the bytes that it was set to change. Its
// methods are safe for concurrent use, except the Reset methods. Only Key allocates.
type Row struct {
	key    []byte
	values []byte
	shape  *Shape
	ts     edm.Ticks
	width  uint8
}

// Reset sets r to a row. key must be a well-formed user key, and values must have
// passed CheckValues or come from AppendValues. r keeps key, s and values.
func (r *Row) Reset(key []byte, ts edm.Ticks, s *Shape, wide bool, values []byte) {
	r.key, r.values, r.shape, r.ts, r.width = key, values, s, ts, widthOf(wide)
}

// Shape returns the names and types of the row's properties.
func (r *Row) Shape() *Shape { return r.shape }

// Load returns nil: all values are in memory.
func (r *Row) Load() error { return nil }

// LoadAt returns nil: all values are in memory.
func (r *Row) LoadAt(int) error { return nil }

// Err returns nil: every value can be read.
func (r *Row) Err() error { return nil }

// AppendPartition appends the PartitionKey as UTF-8 to dst.
func (r *Row) AppendPartition(dst []byte) []byte {
	_, partition, _, _ := SplitKey(r.key)
	return AppendUTF8(dst, partition)
}

// AppendRow appends the RowKey as UTF-8 to dst.
func (r *Row) AppendRow(dst []byte) []byte {
	_, _, row, _ := SplitKey(r.key)
	return AppendUTF8(dst, row)
}

// Key returns a copy of the key.
func (r *Row) Key() edm.Key {
	both := r.AppendPartition(make([]byte, 0, len(r.key)))
	n := len(both)
	text := string(r.AppendRow(both))
	return edm.Key{Partition: text[:n], Row: text[n:]}
}

// Timestamp returns the time of the last write.
func (r *Row) Timestamp() edm.Ticks { return r.ts }

// Len returns the number of properties.
func (r *Row) Len() int { return len(r.shape.fields) }

// At returns property i, 0 <= i < Len, in stored order.
func (r *Row) At(i int) (name string, v edm.Value) {
	f := &r.shape.fields[i]
	return f.name, r.value(f)
}

// Lookup returns the property called name.
func (r *Row) Lookup(name string) (edm.Value, bool) {
	i := r.shape.Index(name)
	if i < 0 {
		return edm.Value{}, false
	}
	return r.value(&r.shape.fields[i]), true
}

// Narrow returns the two sections of a narrow row. It is not ok for a wide one.
func (r *Row) Narrow() (fixed, variable []byte, ok bool) {
	n, all := r.shape.fixed[0], len(r.values)
	if r.width != 0 {
		return nil, nil, false
	}
	return r.values[:n:n], r.values[n:all:all], true
}

// AppendColumn appends the words of property i of narrow rows to words: for a String or
// Binary its end in the variable section, for a Guid the first half; the second halves go
// to more. fixed has the fixed sections of the rows, back to back.
func (s *Shape) AppendColumn(words, more []uint64, i int, fixed []byte) (allWords, allMore []uint64) {
	f, step := &s.fields[i], s.fixed[0]
	n, rows := len(words), len(fixed)/step
	words = slices.Grow(words, rows)[:n+rows]
	at, out := int(f.off[0]), words[n:]
	switch f.typ {
	case edm.TypeString, edm.TypeBinary:
		for k := range out {
			out[k] = uint64(binary.LittleEndian.Uint16(fixed[at:]))
			at += step
		}
	case edm.TypeBoolean:
		for k := range out {
			out[k] = uint64(fixed[at])
			at += step
		}
	case edm.TypeInt32:
		for k := range out {
			out[k] = uint64(int64(int32(binary.LittleEndian.Uint32(fixed[at:]))))
			at += step
		}
	case edm.TypeGuid:
		for k := range out {
			out[k] = binary.BigEndian.Uint64(fixed[at:])
			more = append(more, binary.BigEndian.Uint64(fixed[at+8:]))
			at += step
		}
	case edm.TypeInt64, edm.TypeDouble, edm.TypeDateTime:
		for k := range out {
			out[k] = binary.LittleEndian.Uint64(fixed[at:])
			at += step
		}
	}
	return words, more
}

func (r *Row) value(f *field) edm.Value {
	w := r.width & 1
	off := int(f.off[w])
	switch f.typ {
	case edm.TypeString:
		return edm.StringBytes(r.bytes(f, off, w))
	case edm.TypeBinary:
		return edm.Binary(r.bytes(f, off, w))
	case edm.TypeBoolean:
		return edm.Fixed(edm.TypeBoolean, uint64(r.values[off]))
	case edm.TypeInt32:
		return edm.Int32(int32(binary.LittleEndian.Uint32(r.values[off:])))
	case edm.TypeInt64, edm.TypeDouble, edm.TypeDateTime:
		return edm.Fixed(f.typ, binary.LittleEndian.Uint64(r.values[off:]))
	case edm.TypeGuid:
		return edm.GuidBytes(r.values[off:])
	}
	return edm.Value{}
}

// bytes returns the bytes of a String or Binary whose end is at off.
func (r *Row) bytes(f *field, off int, w uint8) []byte {
	start := r.shape.fixed[w]
	end := start + endAt(r.values, off, w)
	if prev := f.prev[w]; prev != none {
		start += endAt(r.values, int(prev), w)
	}
	return r.values[start:end:end]
}
