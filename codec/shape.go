package codec

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"

	"github.com/tablerock-db/tablerock/edm"
)

// Shape is the ordered list of the names and types of a row's properties, with the
// offsets of their values. It is immutable; all its methods are safe for concurrent
// use and do not allocate.
type Shape struct {
	sorted atomic.Pointer[sortedShape] // nil until ShapeCache.Sorted is called
	fields []field
	fixed  [2]int // length of the fixed section in a narrow and in a wide row
	names  int    // bytes of all names
	// texts are the indexes of the Strings and Binaries, ranged those of the types that
	// not every word is a value of, and of the Guids.
	texts, ranged []uint16
	index         []uint8 // index in fields + 1 by hash of the name, 0 if the slot is free; nil if a linear search is faster
}

// field is one property of a shape. In arrays of two, the first element is for narrow
// rows, the second for wide ones.
type field struct {
	name string
	off  [2]uint16 // offset in the fixed section
	prev [2]uint16 // offset of the end of the String or Binary before this one, or none
	typ  edm.Type
}

const (
	none         = 1<<16 - 1 // not an offset: a fixed section has at most 252 * 16 bytes
	maxScanNames = 16        // longest list in which Index compares name by name
)

// fixedLen holds the length of a value in the fixed section by type and width.
var fixedLen = [...][2]uint16{
	edm.TypeString:   {2, 4},
	edm.TypeBinary:   {2, 4},
	edm.TypeBoolean:  {1, 1},
	edm.TypeInt32:    {4, 4},
	edm.TypeInt64:    {8, 8},
	edm.TypeDouble:   {8, 8},
	edm.TypeDateTime: {8, 8},
	edm.TypeGuid:     {16, 16},
}

// NewShape returns the shape of props without null values. It copies the names,
// because a name may be a substring of a large request.
func NewShape(props edm.Properties) *Shape {
	size := 0
	for i := range props {
		size += len(props[i].Name)
	}
	var text strings.Builder
	text.Grow(size)
	fields := make([]field, 0, len(props))
	for i := range props {
		p := &props[i]
		if p.Value.IsNull() {
			continue
		}
		at := text.Len()
		text.WriteString(p.Name)
		fields = append(fields, field{name: text.String()[at:], typ: p.Value.Type()})
	}
	return newShape(fields, text.Len())
}

// newShape returns the shape of fields, whose names and types are set; it sets their
// offsets.
func newShape(fields []field, names int) *Shape {
	s := &Shape{fields: fields, names: names}
	s.setChecked()
	off, prev := [2]uint16{}, [2]uint16{none, none}
	for i := range fields {
		f := &fields[i]
		f.off, f.prev = off, prev
		if f.typ == edm.TypeString || f.typ == edm.TypeBinary {
			prev = off
		}
		off[0] += fixedLen[f.typ][0]
		off[1] += fixedLen[f.typ][1]
	}
	s.fixed = [2]int{int(off[0]), int(off[1])}
	if len(fields) > maxScanNames {
		s.index = make([]uint8, 2<<bits.Len(uint(len(fields))))
		for i := range fields {
			if at := s.slot(fields[i].name); s.index[at] == 0 {
				s.index[at] = uint8(i + 1)
			}
		}
	}
	return s
}

// setChecked sets texts and ranged.
func (s *Shape) setChecked() {
	list := make([]uint16, 0, len(s.fields))
	for i := range s.fields {
		if t := s.fields[i].typ; t == edm.TypeString || t == edm.TypeBinary {
			list = append(list, uint16(i))
		}
	}
	n := len(list)
	for i := range s.fields {
		switch s.fields[i].typ {
		case edm.TypeBoolean, edm.TypeInt32, edm.TypeDateTime, edm.TypeGuid:
			list = append(list, uint16(i))
		}
	}
	s.texts, s.ranged = list[:n:n], list[n:]
}

// Len returns the number of properties.
func (s *Shape) Len() int { return len(s.fields) }

// Name returns the name of property i.
func (s *Shape) Name(i int) string { return s.fields[i].name }

// Type returns the type of property i.
func (s *Shape) Type(i int) edm.Type { return s.fields[i].typ }

// Index returns the index of the property called name, -1 if there is none.
func (s *Shape) Index(name string) int {
	if s.index != nil {
		return int(s.index[s.slot(name)]) - 1
	}
	for i := range s.fields {
		if s.fields[i].name == name {
			return i
		}
	}
	return -1
}

// slot returns the slot of name in the index, or the free one where it would be. At
// most half of the slots are used.
func (s *Shape) slot(name string) int {
	mask := len(s.index) - 1
	at := int(xxhash.Sum64String(name)) & mask
	for i := s.index[at]; i != 0 && s.fields[i-1].name != name; i = s.index[at] {
		at = (at + 1) & mask
	}
	return at
}

// Matches reports whether props without nulls have the names and types of s in the
// same order. Names that share memory with those of s, as in a row that was read and
// is written again, are compared by address.
func (s *Shape) Matches(props edm.Properties) bool {
	fields := s.fields
	for i := range props {
		p := &props[i]
		if p.Value.IsNull() {
			continue
		}
		if len(fields) == 0 || fields[0].typ != p.Value.Type() || fields[0].name != p.Name {
			return false
		}
		fields = fields[1:]
	}
	return len(fields) == 0
}

// CheckValues reports whether the values of props, which must match s and have no nulls,
// are known to pass edm.CheckValues. bytes is then the length of all names, Strings and
// Binaries. With a walk over all values that looks at the type of each, after another one
// that compares their names, a random load needs 6 % more CPU (bench, load/order=random).
func (s *Shape) CheckValues(props edm.Properties) (bytes int, ok bool) {
	bytes = s.names
	for _, i := range s.texts {
		b := props[i].Value.Bytes()
		bytes += len(b)
		if s.fields[i].typ == edm.TypeBinary {
			ok = len(b) <= edm.MaxBinaryBytes
		} else {
			ok = len(b) <= edm.MaxStringUnits && (ascii(b) || utf8.Valid(b))
		}
		if !ok {
			return 0, false
		}
	}
	for _, i := range s.ranged {
		w := props[i].Value.Word()
		switch s.fields[i].typ {
		case edm.TypeGuid:
			ok = len(props[i].Value.Bytes()) == len(edm.GUID{})
		case edm.TypeBoolean:
			ok = w <= 1
		case edm.TypeInt32:
			ok = uint64(int64(int32(w))) == w
		default:
			ok = edm.Ticks(w).Valid()
		}
		if !ok {
			return 0, false
		}
	}
	return bytes, true
}

// ascii reports whether b is ASCII. It does not branch on the bytes.
func ascii(b []byte) bool {
	var bits uint64
	if len(b) < 8 {
		for _, c := range b {
			bits |= uint64(c)
		}
		return bits < utf8.RuneSelf
	}
	for rest := b; len(rest) >= 8; rest = rest[8:] {
		bits |= binary.LittleEndian.Uint64(rest)
	}
	bits |= binary.LittleEndian.Uint64(b[len(b)-8:])
	return bits&0x8080808080808080 == 0
}

// Sizes in memory.
const (
	shapeBytes = 128
	fieldBytes = 32
	indexBytes = 2 // of a field in texts or ranged
)

// MemBytes returns about how much memory s takes.
func (s *Shape) MemBytes() int {
	return shapeBytes + (fieldBytes+indexBytes)*len(s.fields) + s.names + len(s.index)
}

// AppendShape appends the encoding of s.
func AppendShape(dst []byte, s *Shape) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(s.fields)))
	for i := range s.fields {
		f := &s.fields[i]
		dst = append(dst, byte(f.typ))
		dst = binary.LittleEndian.AppendUint16(dst, uint16(len(f.name)))
		dst = append(dst, f.name...)
	}
	return dst
}

// DecodeShape decodes the shape at the start of src and returns the bytes after it.
// The shape does not share memory with src.
func DecodeShape(src []byte) (s *Shape, rest []byte, err error) {
	if _, rest, err = CheckShape(src); err != nil {
		return nil, nil, err
	}
	return decodeChecked(src), rest, nil
}

// CheckShape checks the shape at the start of src. It returns the number of its properties and the bytes after it. The error
// is that of DecodeShape, whose shape takes ten times the bytes of its encoding.
func CheckShape(src []byte) (n int, rest []byte, err error) {
	if len(src) < shapeHeaderLen {
		return 0, nil, damaged(len(src), "shape ends within its header")
	}
	n = int(binary.LittleEndian.Uint16(src))
	if n > MaxProperties {
		return 0, nil, damaged(0, "shape of %d properties, limit %d", n, MaxProperties)
	}
	end, err := checkShape(src, n)
	if err != nil {
		return 0, nil, err
	}
	if name := duplicate(src, n); name != nil {
		return 0, nil, damaged(0, "shape names %q twice", name)
	}
	return n, src[end:], nil
}

// decodeChecked decodes the shape at the start of src, which CheckShape has accepted.
func decodeChecked(src []byte) *Shape {
	fields := make([]field, binary.LittleEndian.Uint16(src))
	off, names := shapeHeaderLen, 0
	for range fields {
		size := len(nameAt(src, off))
		off += propertyHeaderLen + size
		names += size
	}
	var text strings.Builder
	text.Grow(names)
	off = shapeHeaderLen
	for i := range fields {
		name, at := nameAt(src, off), text.Len()
		text.Write(name)
		fields[i] = field{name: text.String()[at:], typ: edm.Type(src[off])}
		off += propertyHeaderLen + len(name)
	}
	return newShape(fields, names)
}

// checkShape checks the n properties of an encoded shape, but not that their names differ. It
// returns their end.
func checkShape(src []byte, n int) (end int, err error) {
	off := shapeHeaderLen
	for range n {
		if len(src)-off < propertyHeaderLen {
			return 0, damaged(off, "shape ends within a property")
		}
		if t := edm.Type(src[off]); !t.Valid() {
			return 0, damaged(off, "type %d in a shape", t)
		}
		size := int(binary.LittleEndian.Uint16(src[off+1:]))
		if size == 0 || size > MaxNameLen || size > len(src)-off-propertyHeaderLen {
			return 0, damaged(off+1, "property name of %d bytes, limit %d, left %d", size, MaxNameLen, len(src)-off-propertyHeaderLen)
		}
		if !utf8.Valid(nameAt(src, off)) {
			return 0, damaged(off+propertyHeaderLen, "property name is not UTF-8")
		}
		off += propertyHeaderLen + size
	}
	return off, nil
}

// nameAt returns the name of the property encoded at off.
func nameAt(src []byte, off int) []byte {
	size := int(binary.LittleEndian.Uint16(src[off+1:]))
	return src[off+propertyHeaderLen:][:size]
}

// duplicate returns a name that occurs twice among the n properties of an encoded shape, which are
// checked, nil if there is none.
func duplicate(src []byte, n int) []byte {
	names, off := make([][]byte, 0, maxScanNames), shapeHeaderLen
	for range n {
		name := nameAt(src, off)
		names = append(names, name)
		off += propertyHeaderLen + len(name)
	}
	slices.SortFunc(names, bytes.Compare)
	for i := 1; i < n; i++ {
		if bytes.Equal(names[i-1], names[i]) {
			return names[i]
		}
	}
	return nil
}
