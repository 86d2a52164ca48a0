package sstable

import (
	"bytes"
	"context"
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/sstable/internal/bloom"
	"github.com/tablerock-db/tablerock/sstable/internal/checksum"
	"github.com/tablerock-db/tablerock/sstable/internal/groupindex"
)

// sparse is a file with a beginning and an end, and zeros between them that take no
// memory.
type sparse struct {
	discard
	head, tail []byte
	size       int64
}

func (s *sparse) Size() (int64, error) { return s.size, nil }

func (s *sparse) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	if off < int64(len(s.head)) {
		copy(p, s.head[off:])
	}
	if from := s.size - int64(len(s.tail)); off+int64(len(p)) > from {
		copy(p[max(0, from-off):], s.tail[max(0, off-from):])
	}
	return len(p), nil
}

// TestSectionLimits opens files whose footers, with right sums, claim sections as
// large as the file. A sparse file of that size costs nothing.
func TestSectionLimits(t *testing.T) {
	const huge = 400 << 20
	b := checksum.Bind(testDB, testFile)
	for i, name := range []string{"shapes", "index", "filter", "bounds"} {
		t.Run(name, func(t *testing.T) {
			var body []byte
			var f footer
			off := uint64(headerBytes)
			for j, s := range []*span{&f.shapes, &f.index, &f.filter, &f.bounds} {
				*s = span{off, 4 + sumBytes}
				if j == 1 {
					s.len = 8 + sumBytes // a count and two empty keys
				}
				if j == 2 {
					s.len = sumBytes // an empty file has no filter
				}
				if j == i {
					s.len = huge
				} else if j < i {
					from := len(body)
					body = b.AppendSum(append(body, make([]byte, s.len-sumBytes)...), from, int64(off))
				}
				off = s.end()
			}
			file := &sparse{size: int64(off) + footerBytes}
			f.extensions.off = off
			file.head = append(appendHeader(nil, b, testDB, testFile), body...)
			file.tail = appendFooter(nil, b, testDB, testFile, f, int64(off))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r, err := Open(file, readerOptions(nil))
			if err == nil {
				_, _, err = r.loadBounds(false)
			}
			runtime.ReadMemStats(&after)
			wantCorrupt(t, err, name)
			if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
				t.Errorf("%d bytes allocated", n)
			}
		})
	}
}

// TestIndexCounts decodes indexes with counts that are too large, some of them negative
// as a 32-bit int.
func TestIndexCounts(t *testing.T) {
	for _, n := range []uint32{1, 2, 1 << 27, 1<<31 - 1, 1 << 31, 1<<32 - 1} {
		p := binary.LittleEndian.AppendUint32(nil, n)
		if _, err := groupindex.Decode(append(p, make([]byte, 40)...), headerBytes, headerBytes); err == nil {
			t.Errorf("index of %d groups in 40 bytes was accepted", n)
		}
	}
}

// TestWrongTail writes the sections from the filter on again, with right sums, and with lengths and
// counts that Open compares.
func TestWrongTail(t *testing.T) {
	_, data := small(t)
	good := open(t, fileOf(t, data), nil)
	b, noSum := checksum.Bind(testDB, testFile), data[good.footer.bounds.off:][:sumBytes-1]
	for _, c := range []struct {
		name           string
		filter, bounds []byte // nil: as they are, without their sums
		more           uint64 // entries
		bare           string // what has no sum
		ok             bool
	}{
		{"as it is", nil, nil, 0, "", true},
		{"another number of entries", nil, nil, 1, "", false},
		{"no filter", []byte{}, nil, 0, "", false},
		{"half a block of a filter", good.filter[:len(good.filter)-bloom.BlockBytes/2], nil, 0, "", false},
		{"filter without a sum", noSum, nil, 0, "filter", false},
		{"bounds without a sum", nil, noSum, 0, "bounds", false},
	} {
		f := good.footer
		f.entries += c.more
		p := bytes.Clone(data[:f.filter.off])
		section := func(s *span, content []byte, bare bool) {
			if content == nil {
				content = data[s.off : s.end()-sumBytes]
			}
			from := len(p)
			if p = append(p, content...); !bare {
				p = b.AppendSum(p, from, int64(from))
			}
			*s = span{uint64(from), uint64(len(p) - from)}
		}
		section(&f.filter, c.filter, c.bare == "filter")
		section(&f.bounds, c.bounds, c.bare == "bounds")
		f.extensions.off = uint64(len(p))
		p = appendFooter(p, b, testDB, testFile, f, int64(len(p)))
		if _, err := Open(fileOf(t, p), readerOptions(nil)); !c.ok {
			wantCorrupt(t, err, c.name)
		} else if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestOneEmptyShape checks that a file has at most one shape without properties: such
// a shape takes two bytes encoded, and fifty times as much in memory.
func TestOneEmptyShape(t *testing.T) {
	r := &Reader{o: readerOptions(nil)}
	p := append(binary.LittleEndian.AppendUint32(nil, 1000), make([]byte, 2000)...)
	wantCorrupt(t, r.decodeShapes(p), "a thousand empty shapes")
	r.shapes = nil
	if err := r.decodeShapes(append([]byte{1, 0, 0, 0}, 0, 0)); err != nil {
		t.Errorf("one empty shape: %v", err)
	}
}

// TestUnsortedKeys moves bytes among suffixes of rows and separators of groups, and
// corrects the sums. Every walk must end, and Verify must not panic.
func TestUnsortedKeys(t *testing.T) {
	entries, data := small(t)
	r := open(t, fileOf(t, data), nil)
	for g, e := range r.index.Groups {
		for at := int(e.Off) + 32; at < int(e.Off)+e.Head-sumBytes; at += 3 {
			p := append([]byte(nil), data...)
			p[at], p[at+1], p[at+2] = p[at+2], p[at]^0x40, p[at+1]
			fixSums(p)
			crafted, err := Open(fileOf(t, p), readerOptions(nil))
			if err != nil {
				continue
			}
			for i := range entries {
				lower, upper := entries[i].user, entries[min(i+5, len(entries)-1)].user
				walkBounded(t, crafted, IterOptions{Snapshot: entries[i].seq, Lower: lower, Upper: upper}, lower)
				walkBounded(t, crafted, IterOptions{Snapshot: codec.MaxSeq, Lower: upper, Upper: lower}, lower)
			}
			_ = crafted.Verify(context.Background())
			if testing.Short() || race.Enabled {
				at += 30
			}
		}
		_ = g
	}
}

// walkBounded walks through a file in both directions and fails the test if a walk has
// more steps than the file has entries.
func walkBounded(t *testing.T, r *Reader, o IterOptions, from []byte) {
	t.Helper()
	it := r.NewIterator(o)
	most := int(r.footer.entries) + 1
	n := 0
	step := func() {
		if n++; n > most {
			t.Fatal("a walk of more steps than entries")
		}
		it.Key()
		if row := it.Row(); row != nil {
			row.Key()
			for i := range row.Len() {
				row.At(i)
			}
		}
	}
	for ok := it.SeekGE(from); ok; ok = it.Next() {
		step()
	}
	n = 0
	for ok := it.SeekLT(nil); ok; ok = it.Prev() {
		step()
	}
	n = 0
	for ok := it.SeekLT(from); ok; ok = it.Next() {
		step()
	}
	_ = it.Close()
}
