package codec

import (
	"encoding/binary"

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

// Variable returns the variable section: the bytes of all Strings and Binaries, in
// stored order.
func (r *Row) Variable() []byte {
	n := len(r.values)
	return r.values[r.shape.fixed[r.width&1]:n:n]
}

// AppendWords appends the words of all values in stored order: for a String or Binary
// its end in Variable, for a Guid both halves.
func (r *Row) AppendWords(dst []uint64) []uint64 {
	w, fields := r.width&1, r.shape.fields
	for i := range fields {
		f := &fields[i]
		at := r.values[f.off[w]:]
		switch f.typ {
		case edm.TypeString, edm.TypeBinary:
			dst = append(dst, uint64(endAt(at, 0, w)))
		case edm.TypeBoolean:
			dst = append(dst, uint64(at[0]))
		case edm.TypeInt32:
			dst = append(dst, uint64(int64(int32(binary.LittleEndian.Uint32(at)))))
		case edm.TypeGuid:
			dst = append(dst, binary.BigEndian.Uint64(at), binary.BigEndian.Uint64(at[8:]))
		case edm.TypeInt64, edm.TypeDouble, edm.TypeDateTime:
			dst = append(dst, binary.LittleEndian.Uint64(at))
		}
	}
	return dst
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
