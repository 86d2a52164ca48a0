package sstable

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/internal/feature"
	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/sstable/internal/checksum"
	"github.com/tablerock-db/tablerock/sstable/internal/groupindex"
	"github.com/tablerock-db/tablerock/sstable/internal/rowgroup"
)

// fixSums corrects the sums of all sections that can be found, so that mutations get
// past them.
func fixSums(data []byte) {
	b := checksum.Bind(testDB, testFile)
	sum := func(off, n uint64) {
		if size := uint64(len(data)); n >= sumBytes && off <= size && n <= size-off {
			p := data[off : off+n]
			binary.LittleEndian.PutUint64(p[n-sumBytes:], b.Sum(p[:n-sumBytes], int64(off)))
		}
	}
	if len(data) < headerBytes+footerBytes1 {
		return
	}
	sum(0, headerBytes)
	size := footerLen(binary.LittleEndian.Uint32(data[8:]))
	if len(data) < headerBytes+int(size) {
		return
	}
	foot, fields := len(data)-int(size), len(data)-footerBytes1
	u := func(i int) uint64 { return binary.LittleEndian.Uint64(data[fields+i:]) }
	if foot < fields {
		sum(binary.LittleEndian.Uint64(data[foot:]), binary.LittleEndian.Uint64(data[foot+8:]))
	}
	index := span{u(16), u(24)}
	for i := 0; i < 64; i += 16 {
		sum(u(i), u(i+8))
	}
	sum(uint64(foot), uint64(size))
	if index.off > uint64(foot) || index.len > uint64(foot)-index.off || index.len < 4 {
		return
	}
	p := data[index.off:index.end()]
	n := binary.LittleEndian.Uint32(p)
	for p = p[4:]; n > 0 && len(p) >= groupindex.GroupBytes; n-- {
		off, head := binary.LittleEndian.Uint64(p), uint64(binary.LittleEndian.Uint32(p[8:]))
		before := uint64(binary.LittleEndian.Uint16(p[22:]))
		sum(off+before, head)
		fixHeapUnitSums(data, off, before, head, sum)
		p = p[groupindex.GroupBytes:]
	}
}

// fixHeapUnitSums corrects the sums of heap units. It finds their directory by
// decoding the head as far as possible.
func fixHeapUnitSums(data []byte, off, before, head uint64, sum func(off, n uint64)) {
	at := off + before
	if head < 40 || off > uint64(len(data)) || at > uint64(len(data)) || head > uint64(len(data))-at {
		return
	}
	h := new(rowgroup.Head)
	section := data[at : at+head : at+head]
	h.Decode(section, int64(off), int(before), len(data)-int(off), codec.NewShapeList(nil, 0))
	for _, u := range h.HeapUnits {
		sum(uint64(u.Off), uint64(u.Stored))
	}
}

// use reads the whole file in every way; nothing may panic.
func use(data []byte) error {
	o := readerOptions(cache.New(0))
	r, err := Open(&memory{data: data}, o)
	if err != nil {
		return err
	}
	it := r.NewIterator(IterOptions{Snapshot: codec.MaxSeq})
	for ok := it.SeekGE(nil); ok; ok = it.Next() {
		if row := it.Row(); row != nil {
			row.Key()
			for i := range row.Len() {
				row.At(i)
			}
			row.Timestamp()
		}
		it.Key()
	}
	for ok := it.SeekLT(nil); ok; ok = it.Prev() {
		it.Key()
	}
	walkErr := it.Close()
	for _, g := range r.index.Groups {
		var row Row
		r.Get(g.Separator, codec.KeyHash(g.Separator), codec.MaxSeq, &row)
		row.Release()
	}
	selectErr := useColumns(data)
	err = r.Verify(context.Background())
	if readErr := errors.Join(walkErr, selectErr); err == nil && readErr != nil {
		panic("a file that Verify accepts cannot be read: " + readErr.Error())
	}
	return err
}

// damagedFilters select by numbers, texts of a dictionary, other texts and the key, from columns of smallEntries.
var damagedFilters = []*predicate.Program{
	predicate.Compile(predicate.NewCompare("n", predicate.Ge, edm.Int32(-9))),
	predicate.Compile(predicate.NewCompare("color", predicate.Eq, edm.String("red"))),
	predicate.Compile(predicate.NewCompare("s", predicate.Gt, edm.String("a"))),
}

// useColumns reads a file that Open accepts by filters and columns, from a cache: each filter a second time from the
// chunks of the first. It returns the first error.
func useColumns(data []byte) (first error) {
	r, err := Open(&memory{data: data}, readerOptions(cache.New(1<<20)))
	if err != nil {
		panic("a file that was opened cannot be opened again: " + err.Error())
	}
	var c Columns
	var words []uint64
	var texts [][]byte
	for i := range 2 * len(damagedFilters) {
		it, sel := r.NewIterator(IterOptions{Snapshot: codec.MaxSeq, Fill: true}), NewSelector(damagedFilters[i/2])
		reverse := i%2 == 1
		for s, ok := it.SpanGE(nil); ok; s, ok = it.SpanAfter(&s) {
			if !s.Selectable() {
				continue
			}
			if _, _, err := it.Select(&s, &Window{Lower: s.Lower, Upper: s.Upper}, sel); err != nil {
				first = cmp.Or(first, err)
				continue
			}
			for left := true; left; {
				var n int
				if n, left = it.NextSelectedColumns(&c, reverse, 3); n == 0 && left {
					it.NextSelectedRow(reverse) // of a shape with few rows
				}
				for p := 0; n > 0 && p < c.Properties(); p++ {
					var err error
					if _, t := c.Property(p); t == edm.TypeString || t == edm.TypeBinary || t == edm.TypeGuid {
						texts, err = c.AppendBytes(texts[:0], p)
					} else {
						words = c.AppendWords(words[:0], p)
					}
					first = cmp.Or(first, err)
				}
				c.Release()
			}
		}
		first = cmp.Or(first, it.Close())
	}
	return first
}

// memory is a file in memory.
type memory struct {
	discard
	data []byte
}

func (m *memory) Size() (int64, error) { return int64(len(m.data)), nil }

func (m *memory) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(m.data).ReadAt(p, off)
}

// FuzzOpen opens arbitrary bytes, once as they are and once with corrected sums. A
// file that Verify accepts must be readable without an error.
func FuzzOpen(f *testing.F) {
	race.SkipOneGoroutine(f)
	_, data := small(f)
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Add([]byte(magic))
	f.Add(withFeatures(f, data, 0, 3, feature.AppendRecord(nil, feature.Record{Type: 9, Data: []byte("data")}), nil))
	f.Add(withFeatures(f, data, 4, 0, feature.AppendName(nil, 2, "columns"), nil))
	old, err := os.ReadFile("testdata/v1-none.sst")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(old)
	for _, s := range samples()[:4] {
		file, info := write(f, s.options, s.entries[:min(len(s.entries), 30)])
		f.Add(bytesOf(f, file, info.Size))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		use(data)
		data = bytes.Clone(data)
		fixSums(data)
		use(data)
	})
}

// FuzzRoundTrip makes entries of the bytes, writes them and reads them back.
func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte("abc\x00def\x01ghi"), uint16(700), uint64(1))
	f.Add(bytes.Repeat([]byte("k\x00v\x07wwww"), 100), uint16(0), uint64(9))
	f.Fuzz(func(t *testing.T, data []byte, size uint16, seed uint64) {
		g := newGenerator(seed)
		var entries []entry
		for i, raw := range bytes.Split(data, []byte{0}) {
			text := string(bytes.ToValidUTF8(bytes.Map(func(r rune) rune { return max(r, ' ') }, raw), []byte("?")))
			n := min(len(text), 2)
			for n < len(text) && text[n]&0xC0 == 0x80 {
				n++
			}
			pk, rk := text[:n], text[n:]
			var props edm.Properties
			if i%8 == 0 {
				props = g.props(3)
			}
			props = append(props, edm.Property{Name: "text", Value: edm.String(text)}, edm.Property{Name: "raw", Value: edm.Binary(raw)})
			entries = append(entries, newEntry(pk, rk, uint64(i), i%7 == 3, props))
			if i == 40 {
				break
			}
		}
		for i := range entries {
			if codec.CheckKey(entries[i].user) != nil {
				return
			}
		}
		entries = sortEntries(entries)
		o := writerOptions()
		o.GroupBytes = int(size) % rowgroup.MaxBytes
		o.Compression = Compression(seed % 3)
		file, _ := write(t, o, entries)
		if err := readAll(t, file, entries, "round trip"); err != nil {
			t.Fatal(err)
		}
	})
}
