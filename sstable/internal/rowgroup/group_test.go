package rowgroup

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/sstable/internal/checksum"
	"github.com/tablerock-db/tablerock/sstable/internal/compression"
	"github.com/tablerock-db/tablerock/sstable/internal/fields"
)

var bound = checksum.Bind([16]byte{1, 2, 3}, 4)

// build encodes a group of rows with the given user keys. props returns the properties
// of a row, nil for a tombstone. build returns the decoded head and the bytes of the
// group.
func build(t testing.TB, users [][]byte, props func(i int) edm.Properties) (*Head, []byte) {
	t.Helper()
	var g Builder
	shapes := NewShapes()
	var last []byte
	var known []*codec.Shape
	for i, user := range users {
		partition := codec.PartitionLen(user)
		if i > 0 && codec.PartitionLen(last) == partition && bytes.Equal(user[:partition], last[:partition]) {
			partition = 0
		}
		var row codec.ShapedRow
		if p := props(i); p != nil {
			n := slices.IndexFunc(known, func(s *codec.Shape) bool { return s.Matches(p) })
			if n < 0 {
				n, known = len(known), append(known, codec.NewShape(p))
			}
			r := new(codec.Row)
			values, wide := codec.AppendValues(nil, known[n], p)
			r.Reset(user, edm.Ticks(1000+i), known[n], wide, values)
			row = r
		}
		if err := g.Add(user, partition, bytes.Equal(user, last), uint64(1000-i), row, shapes); err != nil {
			t.Fatal(err)
		}
		last = user
	}
	const off = 4096
	data, before, head := g.AppendTo(nil, off, bound, compression.Fast)
	section := data[before : before+head : before+head]
	if !bound.Check(section, off+int64(before)) {
		t.Fatal("head has a wrong sum")
	}
	h := new(Head)
	if err := h.Decode(section, off, before, len(data), list(known...)); err != nil {
		t.Fatal(err)
	}
	return h, data
}

// list returns a list of shapes that keeps only one or two of them decoded.
func list(shapes ...*codec.Shape) *codec.ShapeList {
	var src []byte
	var offs []int
	for _, s := range shapes {
		offs = append(offs, len(src))
		src = codec.AppendShape(src, s)
	}
	l := codec.NewShapeList(src, 400)
	for i, s := range shapes {
		l.Add(offs[i], s)
	}
	return l
}

func userKeys(partitions []string, rows []string) (users [][]byte) {
	for _, p := range partitions {
		for _, r := range rows {
			users = append(users, codec.AppendKey(nil, 16, p, r))
		}
	}
	slices.SortFunc(users, bytes.Compare)
	return users
}

// TestSeek compares Seek with a search through all keys, for keys and for bounds of
// every kind.
func TestSeek(t *testing.T) {
	long := string(bytes.Repeat([]byte("long"), 12))
	for name, users := range map[string][][]byte{
		"one":             userKeys([]string{"a"}, []string{"b"}),
		"one partition":   userKeys([]string{"dev"}, []string{"1700000000100", "1700000000200", "1700000000201", "1700000001200"}),
		"empty keys":      userKeys([]string{"", "a", "ab"}, []string{"", "a", "ab", "b"}),
		"rests":           userKeys([]string{"p", "q"}, []string{"", "12345678", "123456789", "12345678a", long, long + "x", "z"}),
		"beyond ASCII":    userKeys([]string{"é", "\U0001F600", "\uE000"}, []string{"\uFFFF", "\U0001F600", "x"}),
		"one row each":    userKeys([]string{"a", "aa", "ab", "b", long}, []string{"r"}),
		"other rows each": append(userKeys([]string{"a"}, []string{"a", "b", "c"}), userKeys([]string{"b"}, []string{"d", "e", "f"})...),
		"same row length": userKeys([]string{"a"}, []string{"0123456789abcdef", "0123456789abcdeg", "1123456789abcdef"}),
	} {
		h, _ := build(t, users, func(int) edm.Properties { return nil })
		var probes [][]byte
		for _, u := range users {
			for cut := range len(u) + 1 {
				probes = append(probes, u[:cut])
				for _, b := range []byte{1, 2, 'a', 0xFF} {
					probes = append(probes, append(bytes.Clone(u[:cut]), b))
				}
			}
			for _, other := range users {
				probes = append(probes, slices.Concat(u[:codec.PartitionLen(u)], other[codec.PartitionLen(other):]))
			}
		}
		for _, p := range probes {
			if len(p) > 4 && bytes.IndexByte(p[4:], 0) >= 0 {
				continue
			}
			want := sort.Search(len(users), func(i int) bool { return bytes.Compare(users[i], p) >= 0 })
			row, equal := h.Seek(p)
			if wantEqual := want < len(users) && bytes.Equal(users[want], p); row != want || equal != wantEqual {
				t.Errorf("%s: seek %x: %d %t, want %d %t", name, p, row, equal, want, wantEqual)
			}
		}
		for i, u := range users {
			if got := h.AppendKey(nil, i); !bytes.Equal(got, u) {
				t.Errorf("%s: key %d is %x, want %x", name, i, got, u)
			}
		}
	}
}

func TestVectors(t *testing.T) {
	for width := range 9 {
		limit := uint64(math.MaxUint64)
		if width < 8 {
			limit = 1<<(8*width) - 1
		}
		for _, base := range []uint64{0, 5, 1 << 63, math.MaxUint64 - limit} {
			words := []uint64{base, base + limit, base + limit/2, base + limit/3}
			lo, hi := int64(math.MaxInt64), int64(math.MinInt64)
			for _, w := range words {
				lo, hi = min(lo, int64(w)), max(hi, int64(w))
			}
			for name, p := range map[string][]byte{"unsigned": appendUnsigned(nil, words), "signed": appendSigned(nil, words)} {
				size := len(p)
				p = append(p, 1, 2, 3, 4, 5, 6, 7, 8) // the sum
				c := &fields.Cursor{P: p[:size]}
				v := readVector(c, len(words))
				if c.Bad || c.Off != size {
					t.Fatalf("%s width %d base %d: %d of %d bytes read", name, width, base, c.Off, size)
				}
				if name == "signed" || base <= base+limit {
					if want := vectorHeaderBytes + len(words)*int(v.step); size != want || name == "signed" && v.base != uint64(lo) {
						t.Errorf("%s width %d base %d: %d bytes, want %d", name, width, base, size, want)
					}
				}
				for i, w := range words {
					if v.at(p, i) != w {
						t.Errorf("%s width %d base %d: word %d is %d, want %d", name, width, base, i, v.at(p, i), w)
					}
				}
			}
		}
	}
	c := &fields.Cursor{P: append([]byte{9}, make([]byte, 8+4*9)...)}
	if readVector(c, 4); !c.Bad {
		t.Error("a width of 9 bytes is accepted")
	}
}

// TestEncodings checks that each kind of values gets the encoding intended for it.
func TestEncodings(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var users [][]byte
	for i := range 100 {
		users = append(users, codec.AppendKey(nil, 16, "p", fmt.Sprintf("%03d", i)))
	}
	h, _ := build(t, users, func(i int) edm.Properties {
		return edm.Properties{
			{Name: "constant", Value: edm.Int64(1 << 60)},
			{Name: "byte", Value: edm.Int32(int32(-i))},
			{Name: "three", Value: edm.DateTime(edm.Ticks(1<<50 + int64(i)*1000))},
			{Name: "double", Value: edm.Double(r.NormFloat64())},
			{Name: "bits", Value: edm.Boolean(i%2 == 0)},
			{Name: "guid", Value: edm.GuidWords(r.Uint64(), 9)},
			{Name: "color", Value: edm.String([]string{"red", "green", "blue"}[i%3])},
			{Name: "same", Value: edm.Binary([]byte("the same in all of them"))},
			{Name: "text", Value: edm.String(fmt.Sprint("text ", r.Uint64()))},
			{Name: "blob", Value: edm.Binary([]byte(fmt.Sprint("blob ", r.Uint64())))},
		}
	})
	for i, want := range []struct {
		encoding uint8
		width    int
	}{
		{encodingWord, 0},
		{encodingWord, 1},
		{encodingWord, 3},
		{encodingWord, 8},
		{encodingBits, 0},
		{encodingGuid, 16},
		{encodingDict, 1},
		{encodingDict, 0},
		{encodingHeap, 1},
		{encodingHeapLast, 0},
	} {
		c := &h.columns[i]
		if c.encoding != want.encoding || int(c.a.step) != want.width {
			t.Errorf("%s: encoding %d of width %d, want %d of %d", c.name, c.encoding, int(c.a.step), want.encoding, want.width)
		}
	}
	if h.times.step != 1 {
		t.Errorf("timestamps take %d bytes", h.times.step)
	}
}

// TestTombstoneTimestamps checks that the timestamps of tombstones do not widen the
// vector.
func TestTombstoneTimestamps(t *testing.T) {
	users := userKeys([]string{"p"}, []string{"a", "b", "c", "d", "e"})
	h, _ := build(t, users, func(i int) edm.Properties {
		if i%2 == 0 {
			return nil
		}
		return edm.Properties{{Name: "n", Value: edm.Int32(1)}}
	})
	if h.times.step > 1 {
		t.Errorf("timestamps take %d bytes", h.times.step)
	}
	for i := range users {
		if h.Tombstone(i) != (i%2 == 0) || h.Sequence(i) != uint64(1000-i) {
			t.Errorf("row %d: tombstone %t, sequence %d", i, h.Tombstone(i), h.Sequence(i))
		}
	}
}

// TestCraftedHeads decodes heads with a right sum and invalid offsets or lengths.
func TestCraftedHeads(t *testing.T) {
	users := userKeys([]string{"p"}, []string{"a", "b", "c"})
	texts := func(s string) func(int) edm.Properties {
		return func(int) edm.Properties {
			return edm.Properties{{Name: "a", Value: edm.Binary([]byte(s))}, {Name: "b", Value: edm.Binary([]byte(s))}}
		}
	}
	shapes := list(codec.NewShape(texts("")(0)))
	refuse := func(name string, h *Head, data []byte, pattern []byte, change func(at []byte)) {
		t.Helper()
		at := bytes.Index(data, pattern)
		if at < 0 {
			t.Fatalf("%s: %x is not in the head", name, pattern)
		}
		change(data[at:])
		if err := new(Head).Decode(data, h.off, 0, len(data)+1<<20, shapes); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	le := binary.LittleEndian
	// A section of few rows is stored by row, unless it has a value block.
	h, data := build(t, users, func(i int) edm.Properties {
		p := texts("")(0)
		if i == 0 {
			p[0].Value = edm.Binary(make([]byte, bigValueBytes+1))
		}
		return p
	})
	head := data[:h.ValueBlocks[0].Off-h.off]
	pattern := append([]byte{encodingHeap, 0}, make([]byte, 8)...)
	refuse("end of a value, no heap", h, bytes.Clone(head), pattern, func(at []byte) { at[2] = 5 })

	h, data = build(t, users, func(i int) edm.Properties {
		p := texts("")(0)
		switch i {
		case 0:
			p[0].Value = edm.Binary(make([]byte, bigValueBytes+1))
		case 2:
			return nil
		}
		return p
	})
	v := h.ValueBlocks[0]
	head = data[:v.Off-h.off]
	pattern = le.AppendUint32(le.AppendUint32(make([]byte, 4), uint32(v.Off-h.off)), uint32(v.Stored))
	refuse("value block of a tombstone", h, bytes.Clone(head), pattern, func(at []byte) { at[0] = 2 })
	refuse("value block of an unknown row", h, bytes.Clone(head), pattern, func(at []byte) { at[0] = 3 })
	refuse("value block of an unknown property", h, bytes.Clone(head), pattern, func(at []byte) { at[2] = 2 })
	refuse("small value block", h, bytes.Clone(head), pattern, func(at []byte) { le.PutUint32(at[12:], bigValueBytes) })
	refuse("empty value block", h, bytes.Clone(head), pattern, func(at []byte) { le.PutUint32(at[8:], SumBytes) })

	h, data = build(t, users, texts("some text that is not so long"))
	u := h.HeapUnits[0]
	head = data[:u.Off-h.off]
	pattern = le.AppendUint32(le.AppendUint32(nil, uint32(u.Off-h.off)), uint32(u.Stored))
	refuse("heap unit longer than its rows", h, bytes.Clone(head), pattern, func(at []byte) { le.PutUint32(at[4:], uint32(u.Raw+SumBytes+1)) })
	refuse("heap unit at another offset", h, bytes.Clone(head), pattern, func(at []byte) { at[0]++ })
	refuse("empty heap unit", h, bytes.Clone(head), pattern, func(at []byte) { le.PutUint32(at[4:], SumBytes) })
	starts := append([]byte{1}, make([]byte, 8)...)
	starts = append(starts, 0, byte(u.Raw/3), byte(u.Raw/3*2), byte(u.Raw))
	refuse("heap unit larger than the limit", h, bytes.Clone(head), starts, func(at []byte) { at[0], at[1], at[9] = 1, 0, 1 })
}

// TestCraftedColumns decodes heads whose columns are of an unknown encoding or of one for another type,
// are followed by other bytes, or divide the heap in another order.
func TestCraftedColumns(t *testing.T) {
	var users [][]byte
	for i := range minColumnRows + 1 {
		users = append(users, codec.AppendKey(nil, 16, "p", fmt.Sprint(i)))
	}
	number := func(int) edm.Properties { return edm.Properties{{Name: "n", Value: edm.Int32(77)}} }
	boolean := func(i int) edm.Properties { return edm.Properties{{Name: "b", Value: edm.Boolean(i%2 == 0)}} }
	guid := func(i int) edm.Properties { return edm.Properties{{Name: "g", Value: edm.GuidWords(7, 9)}} }
	both := func(i int) edm.Properties {
		return append(number(i), edm.Property{Name: "s", Value: edm.String(fmt.Sprintf("%064d", i))})
	}
	texts := func(i int) edm.Properties {
		a, b := fmt.Sprintf("%064d", i), fmt.Sprintf("%064d", i*i)
		return edm.Properties{{Name: "a", Value: edm.String(a)}, {Name: "b", Value: edm.String(b)}}
	}
	bits := []byte{encodingBits, 0x55, 1}
	guids := append([]byte{encodingGuid}, bytes.Repeat([]byte{0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 9}, len(users))...)
	word := []byte{encodingWord, 0, 77, 0, 0, 0, 0, 0, 0, 0}
	ends := []byte{encodingHeap, 0, 64, 0, 0, 0, 0, 0, 0, 0}
	color := func(i int) edm.Properties {
		return edm.Properties{{Name: "c", Value: edm.String(strings.Repeat("rgb"[i%3:i%3+1], 64))}}
	}
	dict := []byte{encodingDict, 2, 192, 0, 64, 0, 128, 0, 192, 0}
	codes := append([]byte{1}, make([]byte, 8)...)
	codes = append(codes, 0, 1, 2, 0, 1, 2, 0, 1, 2)
	more := func(i int) edm.Properties { return append(texts(i), number(i)...) }
	// As long as the columns that it replaces, so that all offsets are right.
	wider := append([]byte{encodingHeapLast, encodingHeapLast, encodingWord, 1}, make([]byte, 8+len(users))...)
	for _, c := range []struct {
		name     string
		props    func(i int) edm.Properties
		from, to []byte
	}{
		{"encoding 0", number, word, []byte{0}},
		{"encoding 7", number, word, []byte{encodingDict + 1}},
		{"bits of an Int32", number, word, []byte{encodingBits, 0, 0}},
		{"Guids of an Int32", number, word, guids},
		{"ends of an Int32", both, word, append([]byte{encodingHeap}, make([]byte, vectorHeaderBytes)...)},
		{"texts of an Int32", number, word, []byte{encodingHeapLast}},
		{"dictionary of an Int32", number, word, append([]byte{encodingDict}, make([]byte, 5+vectorHeaderBytes)...)},
		{"words of a Boolean", boolean, bits, append([]byte{encodingWord}, make([]byte, vectorHeaderBytes)...)},
		{"words of a Guid", guid, guids, append([]byte{encodingWord}, make([]byte, vectorHeaderBytes)...)},
		{"words of a String", texts, ends, append([]byte{encodingWord}, ends[1:]...)},
		{"a bit after the rows", boolean, bits, []byte{encodingBits, 0x55, 3}},
		{"a byte after the columns", number, word, append(slices.Clip(word), 0)},
		{"dictionary with an end before another", color, dict, []byte{encodingDict, 2, 192, 0, 128, 0, 64, 0, 192, 0}},
		{"dictionary with bytes after the last end", color, dict, []byte{encodingDict, 2, 192, 0, 64, 0, 128, 0, 191, 0}},
		{"code of no entry", color, codes, append(slices.Clip(codes[:len(codes)-1]), 3)},
		{"two last of the heap", more, slices.Concat(ends, []byte{encodingHeapLast}, word), wider},
		{"the last of the heap first", texts, append(slices.Clip(ends), encodingHeapLast), append([]byte{encodingHeapLast}, ends...)},
	} {
		h, data := build(t, users, c.props)
		head := data[:len(h.data):len(h.data)]
		at := bytes.Index(head, c.from)
		if at < 0 {
			t.Fatalf("%s: no such column", c.name)
		}
		crafted := slices.Concat(head[:at], c.to, head[at+len(c.from):])
		group := len(data) - len(head) + len(crafted)
		if new(Head).Decode(crafted, h.off, 0, group, list(codec.NewShape(c.props(0)))) == nil {
			t.Errorf("%s: accepted", c.name)
		}
	}
}

// TestArrangeUnusedSection arranges a head of tombstones whose only section has fewer
// rows than the head.
func TestArrangeUnusedSection(t *testing.T) {
	const rows = 200
	var users [][]byte
	for i := range rows {
		users = append(users, codec.AppendKey(nil, 16, "p", fmt.Sprintf("%03d", i)))
	}
	props := func(i int) edm.Properties { return edm.Properties{{Name: "n", Value: edm.Int32(int32(i))}} }
	_, data := build(t, users, props)
	sectionOf := []byte{0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0} // and the header of the heap offsets: an empty heap
	at := bytes.Index(data, sectionOf)
	if at < 0 {
		t.Fatal("no vector of sections")
	}
	data[at+1] = 0
	section := []byte{rows, 0, modeColumns, encodingWord, 1}
	if at = bytes.Index(data, section); at < 0 {
		t.Fatal("no section")
	}
	data[at] = 1
	data = slices.Delete(data, len(data)-SumBytes-rows+1, len(data)-SumBytes)
	h := new(Head)
	if err := h.Decode(data, 0, 0, len(data), list(codec.NewShape(props(0)))); err != nil {
		t.Fatal(err)
	}
	checkArrange(t, h, blocks{data})
}

// FuzzDecode decodes arbitrary bytes as a head. Every use of an accepted head must not
// panic.
func FuzzDecode(f *testing.F) {
	users := userKeys([]string{"p", "q"}, []string{"a", "b", "ccccccccccccccccccc", "d", "e"})
	shape := edm.Properties{
		{Name: "s", Value: edm.String("some text")},
		{Name: "n", Value: edm.Int32(7)},
		{Name: "b", Value: edm.Boolean(true)},
		{Name: "g", Value: edm.GuidWords(1, 2)},
	}
	_, data := build(f, users, func(i int) edm.Properties { return shape })
	f.Add(data, 9)
	f.Add(data[:100], 0)
	shapes := list(codec.NewShape(shape), codec.NewShape(nil))
	f.Fuzz(func(t *testing.T, data []byte, raw int) {
		if len(data) < SumBytes {
			return
		}
		var h Head
		if h.Decode(bytes.Clone(data), 0, 0, len(data)+1<<20, shapes) != nil {
			return
		}
		for row := range h.Rows() {
			h.Seek(h.AppendKey(nil, row))
			h.Same(max(row, 1))
		}
		checkArrange(t, &h, blocks{data})
	})
}

// checkArrange arranges h and compares its rows before and after.
func checkArrange(t *testing.T, h *Head, b Blocks) []string {
	t.Helper()
	before := show(h, b)
	h.Arrange(nil)
	after := show(h, b)
	if !slices.Equal(after, before) {
		t.Fatalf("arranged:\n%q\nbefore:\n%q", after, before)
	}
	return after
}

// stored is the bytes of a group whose offset in the file is off.
type stored struct {
	off  int64
	data []byte
}

func (s stored) HeapUnit(h *Head, u *HeapUnit) ([]byte, error) {
	raw, err := s.decode(u.Off, u.Stored, u.Raw)
	if err := h.CheckHeapUnit(u, raw, u.First, u.End); err != nil {
		return nil, err
	}
	return raw, err
}

func (s stored) ValueBlock(e *ValueBlock) ([]byte, error) { return s.decode(e.Off, e.Stored, e.Raw) }

func (s stored) ReleaseValueBlocks() {}

func (s stored) decode(off int64, stored, raw int) ([]byte, error) {
	p := s.data[off-s.off:][:stored-SumBytes]
	if len(p) == raw {
		return p, nil
	}
	return s2.Decode(nil, p)
}

// show returns each row of h as text, with its values in both directions.
func show(h *Head, b Blocks) (out []string) {
	var r Row
	r.Attach(h, b)
	for row := range h.Rows() {
		seq, kind := h.Version(row)
		text := fmt.Sprintf("%x %d %d", h.AppendKey(nil, row), seq, kind)
		if !h.Tombstone(row) {
			r.Set(row)
			text += fmt.Sprintf(" %v %d", r.Key(), r.Timestamp())
			for i := range 2 * r.Len() {
				if i >= r.Len() {
					i = 2*r.Len() - 1 - i
				}
				name, v := r.At(i)
				text += fmt.Sprintf(" %s=%#v", name, v)
			}
			text += fmt.Sprint(r.Load())
		}
		out = append(out, text)
	}
	return out
}

// TestArrange arranges heads of one shape and of several.
func TestArrange(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	var users [][]byte
	for i := range 300 {
		users = append(users, codec.AppendKey(nil, 16, "p", fmt.Sprintf("%04d", i)))
	}
	all := func(i int) edm.Properties {
		return edm.Properties{
			{Name: "text", Value: edm.String(fmt.Sprint("text ", r.Uint64()))},
			{Name: "constant", Value: edm.Int64(1 << 60)},
			{Name: "byte", Value: edm.Int32(int32(-i))},
			{Name: "color", Value: edm.String([]string{"red", "green", "blue"}[i%3])},
			{Name: "two", Value: edm.Int64(r.Int64N(1 << 16))},
			{Name: "three", Value: edm.DateTime(edm.Ticks(1<<50 + r.Int64N(1<<24)))},
			{Name: "bits", Value: edm.Boolean(i%2 == 0)},
			{Name: "four", Value: edm.Int64(r.Int64N(1 << 32))},
			{Name: "guid", Value: edm.GuidWords(r.Uint64(), 9)},
			{Name: "seven", Value: edm.Int64(r.Int64N(1 << 56))},
			{Name: "double", Value: edm.Double(r.NormFloat64())},
			{Name: "same", Value: edm.Binary([]byte("the same in all of them"))},
			{Name: "blob", Value: edm.Binary([]byte(fmt.Sprint("blob ", r.Uint64())))},
		}
	}
	for name, props := range map[string]func(i int) edm.Properties{
		"one shape": all,
		"nothing":   func(int) edm.Properties { return edm.Properties{} },
		"two shapes, tombstones, few of a third": func(i int) edm.Properties {
			switch p := all(i); {
			case i%7 == 3:
				return nil
			case i%100 == 5:
				return p[:2]
			case i%3 == 1:
				return p[3:]
			default:
				return p
			}
		},
		"a big value": func(i int) edm.Properties {
			p := all(i)
			if i == 17 {
				p[0].Value = edm.String(strings.Repeat("x", bigValueBytes+1))
			}
			return p
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, data := build(t, users, props)
			for _, text := range checkArrange(t, h, stored{h.off, data}) {
				if strings.Contains(text, "null") {
					t.Fatalf("unreadable: %s", text)
				}
			}
		})
	}
}

// blocks uses arbitrary bytes as heap units, if CheckHeapUnit accepts them.
type blocks struct{ data []byte }

func (b blocks) HeapUnit(h *Head, u *HeapUnit) ([]byte, error) {
	raw := make([]byte, u.Raw)
	copy(raw, b.data)
	if h.CheckHeapUnit(u, raw, u.First, u.End) != nil {
		return nil, errNoValues
	}
	return raw, nil
}

func (b blocks) ValueBlock(e *ValueBlock) ([]byte, error) { return make([]byte, e.Raw), nil }

func (b blocks) ReleaseValueBlocks() {}

// TestCheckHeap checks the ends of values in a row's bytes of the heap.
func TestCheckHeap(t *testing.T) {
	for _, c := range []struct {
		ends []uint64 // of all values but the last one
		size int
		want bool
	}{
		{nil, 0, true},
		{nil, 4, true},
		{[]uint64{0}, 0, true},
		{[]uint64{4}, 4, true},
		{[]uint64{5}, 4, false},
		{[]uint64{1 << 63}, 4, false},
		{[]uint64{1, 1, 3}, 4, true},
		{[]uint64{2, 1, 3}, 4, false},
		{[]uint64{1, 4, 3}, 4, false},
		{[]uint64{5, 5, 5}, 4, false},
	} {
		// A column that is not in the heap precedes each value.
		var cols []column
		for _, end := range append(c.ends, 0) {
			cols = append(cols, column{encoding: encodingWord}, column{encoding: encodingHeap, a: vector{base: end}})
		}
		cols[len(cols)-1].encoding = encodingHeapLast
		last, ok := linkHeap(cols)
		if !ok || last != len(cols)-1 {
			t.Fatalf("linkHeap of %v: %d, %t", c.ends, last, ok)
		}
		if got := checkHeap(make([]byte, 8), cols, last, 0, c.size); got != c.want {
			t.Errorf("ends %v within %d bytes: got %t, want %t", c.ends, c.size, got, c.want)
		}
	}
}
