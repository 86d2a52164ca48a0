package sstable

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/sstable/internal/checksum"
	"github.com/tablerock-db/tablerock/sstable/internal/rowgroup"
	"github.com/tablerock-db/tablerock/vfs"
)

// small returns a file with every feature of the format: columns of each encoding,
// rows stored by row, a dictionary, a value block, versions across the end of a group,
// several partitions, tombstones.
func small(t testing.TB) ([]entry, []byte) {
	t.Helper()
	entries, o := smallEntries()
	f, info := write(t, o, entries)
	return entries, bytesOf(t, f, info.Size)
}

func smallEntries() ([]entry, WriterOptions) {
	g := newGenerator(17)
	var list []entry
	for i := range 24 {
		props := edm.Properties{
			{Name: "n", Value: edm.Int32(int32(i - 5))},
			{Name: "l", Value: edm.Int64(int64(i) << 30)},
			{Name: "d", Value: edm.Double(float64(i) / 3)},
			{Name: "t", Value: edm.DateTime(edm.Ticks(1 << 57))},
			{Name: "b", Value: edm.Boolean(i%3 == 0)},
			{Name: "g", Value: edm.GuidWords(7, g.Uint64())},
			{Name: "color", Value: edm.String([]string{"red", "green"}[i%2])},
			{Name: "s", Value: edm.String(g.text(i))},
			{Name: "x", Value: edm.Binary(g.bytes(5))},
		}
		list = append(list, newEntry(fmt.Sprintf("p%d", i/8), fmt.Sprintf("%05d", i), uint64(10+i), i == 9, props))
	}
	list = append(list,
		newEntry("p3", "", 50, false, edm.Properties{{Name: "odd", Value: edm.String("alone")}}),
		newEntry("p3", "none", 51, false, nil),
		newEntry("p4", "big", 52, false, edm.Properties{{Name: "big", Value: edm.String(string(bytes.Repeat([]byte("abcdefg "), 600)))}}),
	)
	for v := range 12 {
		list = append(list, newEntry("p5", "often", uint64(60+v), false, edm.Properties{{Name: "v", Value: edm.Int32(int32(v))}}))
	}
	o := writerOptions()
	o.GroupBytes = 1500
	return sortEntries(list), o
}

// readAll reads the whole file in every way and returns the first error. It fails the
// test if a read returns wrong data and no error.
func readAll(t testing.TB, f vfs.File, entries []entry, what string) error {
	t.Helper()
	r, err := Open(f, readerOptions(nil))
	if err != nil {
		return err
	}
	it := r.NewIterator(IterOptions{AllVersions: true})
	defer it.Close()
	n := 0
	for ok := it.SeekGE(nil); ok; ok = it.Next() {
		if n == len(entries) || !bytes.Equal(it.Key(), entries[n].key) {
			t.Fatalf("%s: entry %d has key %x and no error", what, n, it.Key())
		}
		row := it.Row()
		d := diff(&entries[n], row)
		if it.Err() != nil {
			return it.Err()
		}
		if d != "" {
			t.Fatalf("%s: entry %d differs and no error: %s", what, n, d)
		}
		n++
	}
	if it.Err() != nil {
		return it.Err()
	}
	if n != len(entries) {
		t.Fatalf("%s: %d entries, want %d, and no error", what, n, len(entries))
	}
	var row Row
	defer row.Release()
	for i := range entries {
		e := &entries[i]
		seq, _, ok, err := r.Get(e.user, codec.KeyHash(e.user), e.seq, &row)
		if err != nil {
			return err
		}
		if !ok || seq != e.seq {
			t.Fatalf("%s: get of entry %d: %t, sequence %d, and no error", what, i, ok, seq)
		}
	}
	return r.Verify(context.Background())
}

func wantCorrupt(t testing.TB, err error, what string) {
	t.Helper()
	var c *corrupt.Error
	if !errors.As(err, &c) {
		t.Fatalf("%s: error %v, want a corrupt.Error", what, err)
	}
	if c.File != "000007.sst" || c.Offset < 0 || c.What == "" {
		t.Fatalf("%s: error without file, offset or reason: %#v", what, c)
	}
}

func TestFlippedBits(t *testing.T) {
	race.SkipOneGoroutine(t)
	entries, data := small(t)
	if err := readAll(t, fileOf(t, data), entries, "whole file"); err != nil {
		t.Fatal(err)
	}
	f := fileOf(t, data)
	for bit := 0; bit < len(data)*8; bit += 9 - rounds(8) {
		b := []byte{data[bit/8] ^ 1<<(bit%8)}
		f.WriteAt(b, int64(bit/8))
		what := fmt.Sprintf("bit %d of byte %d", bit%8, bit/8)
		wantCorrupt(t, readAll(t, f, entries, what), what)
		f.WriteAt(data[bit/8:bit/8+1], int64(bit/8))
	}
}

func TestTruncation(t *testing.T) {
	race.SkipOneGoroutine(t)
	entries, data := small(t)
	for n := range data {
		what := fmt.Sprintf("%d of %d bytes", n, len(data))
		wantCorrupt(t, readAll(t, fileOf(t, data[:n]), entries, what), what)
	}
	what := "one byte more"
	wantCorrupt(t, readAll(t, fileOf(t, append(bytes.Clone(data), 0)), entries, what), what)
}

// TestMovedSections opens a file as one of another number, database or size, and
// verifies a section at another offset or in another file: the bytes are intact, their
// position is wrong.
func TestMovedSections(t *testing.T) {
	_, data := small(t)
	for name, change := range map[string]func(*ReaderOptions){
		"other file":     func(o *ReaderOptions) { o.Number++ },
		"other database": func(o *ReaderOptions) { o.DBID[3]++ },
		"other size":     func(o *ReaderOptions) { o.Size = int64(len(data)) + 1 },
	} {
		o := readerOptions(nil)
		change(&o)
		_, err := Open(fileOf(t, data), o)
		wantCorrupt(t, err, name)
	}
	b := checksum.Bind(testDB, testFile)
	section := b.AppendSum([]byte("some section"), 0, 100)
	if !b.Check(section, 100) || b.Check(section, 101) || checksum.Bind(testDB, testFile+1).Check(section, 100) {
		t.Fatal("a sum is right at another offset or in another file, or wrong at its own")
	}
}

// TestDamagedFields changes fields and corrects the sums, so that only the checks of
// the contents can find the damage.
func TestDamagedFields(t *testing.T) {
	_, data := small(t)
	r := open(t, fileOf(t, data), nil)
	foot := int(r.size) - footerBytes
	sections := []struct {
		name   string
		at, n  int
		fields []int
	}{
		{"header", 0, headerBytes, []int{0, 12, 16, 32}},
		{"footer", foot, footerBytes, []int{0, 8, 16, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136, 144, 160, 164, 168}},
		{"shapes", int(r.footer.shapes.off), int(r.footer.shapes.len), []int{0, 4, 5, 7}},
		{"bounds", int(r.footer.bounds.off), int(r.footer.bounds.len), []int{0, 1, 4, 5, 7}},
		{"index", int(r.footer.index.off), int(r.footer.index.len), []int{0, 4, 12, 16, 20, 22, 24, 28}},
	}
	for g, e := range r.index.Groups {
		sections = append(sections, struct {
			name   string
			at, n  int
			fields []int
		}{fmt.Sprintf("head %d", g), int(e.Off), e.Head, []int{0, 2, 4, 6, 8, 10, 11, 12, 14, 16, 20, 24, 32}})
	}
	for _, s := range sections {
		for _, field := range s.fields {
			for _, add := range []byte{1, 2, 0x80, 0xFF} {
				p := bytes.Clone(data)
				p[s.at+field] += add
				binary.LittleEndian.PutUint64(p[s.at+s.n-sumBytes:], r.bind.Sum(p[s.at:s.at+s.n-sumBytes], int64(s.at)))
				what := fmt.Sprintf("%s: byte %d + %d", s.name, field, add)
				if err := verifyOnly(t, p); err == nil {
					t.Errorf("%s: no error", what)
				}
			}
		}
	}
}

// TestBlockOfAnotherLength decodes an s2 block whose length differs from that in the
// head: the rest of the memory must not be taken for the value.
func TestBlockOfAnotherLength(t *testing.T) {
	entries, data := small(t)
	r := open(t, fileOf(t, data), nil)
	for g := range r.index.Groups {
		h, pin, _, err := r.head(g, nil, false, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range h.ValueBlocks {
			p := data[e.Off:][:e.Stored]
			if len(p)-sumBytes == e.Raw {
				t.Fatal("value block is not compressed")
			}
			for _, add := range []byte{1, 0xFE} { // in the low bits of the length
				p[0] += add
				binary.LittleEndian.PutUint64(p[len(p)-sumBytes:], r.bind.Sum(p[:len(p)-sumBytes], e.Off))
				wantCorrupt(t, readAll(t, fileOf(t, data), entries, "other length"), "other length")
			}
			pin.Release()
			return
		}
		pin.Release()
	}
	t.Fatal("no value block")
}

func verifyOnly(t testing.TB, data []byte) error {
	t.Helper()
	r, err := Open(fileOf(t, data), readerOptions(nil))
	if err != nil {
		return err
	}
	return r.Verify(context.Background())
}

func TestNewerVersion(t *testing.T) {
	_, data := small(t)
	binary.LittleEndian.PutUint32(data[8:], version+1)
	binary.LittleEndian.PutUint64(data[headerBytes-sumBytes:], checksum.Bind(testDB, testFile).Sum(data[:headerBytes-sumBytes], 0))
	if _, err := Open(fileOf(t, data), readerOptions(nil)); !errors.Is(err, ErrNewerFormat) || errors.Is(err, corrupt.ErrCorrupt) {
		t.Fatalf("error %v, want ErrNewerFormat", err)
	}
}

// brokenFile fails to read between two offsets.
type brokenFile struct {
	vfs.File
	from, to int64
}

var errBroken = errors.New("broken disk")

func (f *brokenFile) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > f.from && off < f.to {
		return 0, errBroken
	}
	return f.File.ReadAt(p, off)
}

// TestReadErrors checks that the call that meets an error of the disk returns it, that
// it is no corruption, and that an iterator keeps returning it, in both directions.
func TestReadErrors(t *testing.T) {
	entries, data := small(t)
	f := &brokenFile{File: fileOf(t, data)}
	r := open(t, f, cache.New(1<<20))
	f.to = r.index.Groups[0].Off + int64(r.index.Groups[0].Len)
	f.from = r.index.Groups[0].Off + int64(r.index.Groups[0].Head)
	for _, move := range []func(*Iterator) bool{(*Iterator).Next, (*Iterator).Prev} {
		it := r.NewIterator(IterOptions{Snapshot: codec.MaxSeq, Fill: true})
		if !it.SeekGE(entries[1].user) {
			t.Fatal(it.Err())
		}
		row := it.Row()
		if err := row.Load(); !errors.Is(err, errBroken) {
			t.Fatalf("load: %v", err)
		}
		if err := NewWriter(create(t), writerOptions()).Add(it.Key(), row); !errors.Is(err, errBroken) {
			t.Fatalf("a row that cannot be read was written: %v", err)
		}
		if v, ok := row.Lookup("s"); !ok || !v.IsNull() {
			t.Fatalf("a value that cannot be read is %v %t", v, ok)
		}
		if move(it) || it.Valid() || !errors.Is(it.Err(), errBroken) || !errors.Is(it.Close(), errBroken) {
			t.Fatalf("the iterator continues, error %v", it.Err())
		}
	}
	var got Row
	user := entries[0].user
	if _, _, _, err := r.Get(user, codec.KeyHash(user), codec.MaxSeq, &got); !errors.Is(err, errBroken) || errors.Is(err, corrupt.ErrCorrupt) {
		t.Fatalf("get: %v", err)
	}
	f.to = 0
	if _, _, ok, err := r.Get(user, codec.KeyHash(user), codec.MaxSeq, &got); !ok || err != nil {
		t.Fatalf("get after the disk recovered: %t %v", ok, err)
	}
	if d := diff(&entries[0], &got); d != "" {
		t.Fatal(d)
	}
	got.Release()
}

// failingFile fails to read when its reads are used up.
type failingFile struct {
	vfs.File
	reads int
}

func (f *failingFile) ReadAt(p []byte, off int64) (int, error) {
	if f.reads--; f.reads < 0 {
		return 0, errBroken
	}
	return f.File.ReadAt(p, off)
}

// unsizedFile fails to tell its size.
type unsizedFile struct{ vfs.File }

func (unsizedFile) Size() (int64, error) { return 0, errBroken }

// TestOpenFails fails each read of Open: the error is no corruption.
func TestOpenFails(t *testing.T) {
	_, data := small(t)
	f := fileOf(t, data)
	for name, f := range map[string]vfs.File{
		"size": unsizedFile{f}, "header": &failingFile{f, 0}, "footer": &failingFile{f, 1}, "sections": &failingFile{f, 2},
	} {
		if _, err := Open(f, readerOptions(nil)); !errors.Is(err, errBroken) || errors.Is(err, corrupt.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReadsFailInWalks walks in both directions over keys with versions in several groups, while each
// of the reads fails, and all after it: a walk ends with the error, and shows no other entries before.
func TestReadsFailInWalks(t *testing.T) {
	var entries []entry
	for v := range 300 {
		entries = append(entries, newEntry("p", string(rune('a'+v/100)), uint64(v+1), v%3 == 0, edm.Properties{{Name: "n", Value: edm.Int32(int32(v))}}))
	}
	sortEntries(entries)
	o := writerOptions()
	o.GroupBytes = 900
	file, _ := write(t, o, entries)
	f := &failingFile{File: file, reads: 100}
	r := open(t, f, cache.New(0))
	for _, reverse := range []bool{false, true} {
		for _, snapshot := range []uint64{codec.MaxSeq, 250, 150} {
			o := IterOptions{Snapshot: snapshot}
			want := visible(entries, o)
			if reverse {
				slices.Reverse(want)
			}
			failed := 0
			for ; ; failed++ {
				f.reads = failed
				it := r.NewIterator(o)
				n := 0
				for ok := begin(it, reverse); ok; ok = step(it, reverse) {
					if n == len(want) || !bytes.Equal(it.Key(), want[n].key) {
						t.Fatalf("snapshot %d, reverse %v, %d reads: entry %d is %x", snapshot, reverse, failed, n, it.Key())
					}
					n++
				}
				err := it.Close()
				if f.reads >= 0 && err == nil && n == len(want) {
					break
				}
				if !errors.Is(err, errBroken) || f.reads >= 0 {
					t.Fatalf("snapshot %d, reverse %v, %d reads: %d entries, error %v", snapshot, reverse, failed, n, err)
				}
			}
			if failed < 3 {
				t.Errorf("snapshot %d, reverse %v: only %d reads", snapshot, reverse, failed)
			}
		}
	}
}

func TestWriterRefuses(t *testing.T) {
	put := newEntry("a", "b", 5, false, nil)
	del := newEntry("a", "c", 5, true, nil)
	var s shaper
	for _, c := range []struct {
		name string
		key  []byte
		row  codec.ShapedRow
	}{
		{"put without row", put.key, nil},
		{"tombstone with row", del.key, s.row(&put)},
		{"key twice", newEntry("0", "0", 1, false, nil).key, s.row(&put)},
		{"key before", newEntry("", "", 1, false, nil).key, s.row(&put)},
		{"no end of the partition", codec.AppendTrailer([]byte("\x00\x00\x00\x10abcdef"), 1, codec.KindPut), s.row(&put)},
		{"one component", codec.AppendTrailer([]byte("\x00\x00\x00\x10abcdef\x01"), 1, codec.KindPut), s.row(&put)},
		{"zero byte", codec.AppendTrailer([]byte("\x00\x00\x00\x10a\x01b\x00\x01"), 1, codec.KindPut), s.row(&put)},
		{"short", put.key[:9], s.row(&put)},
		{"long", codec.AppendTrailer(make([]byte, codec.MaxKeyLen+1), 1, codec.KindPut), s.row(&put)},
	} {
		w := NewWriter(create(t), writerOptions())
		first := newEntry("0", "0", 1, false, nil)
		if err := w.Add(first.key, s.row(&first)); err != nil {
			t.Fatal(err)
		}
		if err := w.Add(c.key, c.row); err == nil {
			t.Errorf("%s: no error", c.name)
		}
		if _, err := w.Finish(); err == nil {
			t.Errorf("%s: finished after an error", c.name)
		}
	}
	for _, o := range []WriterOptions{{GroupBytes: -1}, {GroupBytes: rowgroup.MaxBytes + 1}, {Compression: 9}} {
		if _, err := NewWriter(create(t), o).Finish(); err == nil {
			t.Errorf("options %+v: no error", o)
		}
	}
	w := NewWriter(create(t), writerOptions())
	w.Abort()
	if _, err := w.Finish(); err == nil {
		t.Error("finished after Abort")
	}
}

// TestDamageWithRightSums changes bytes and corrects all sums. The reader may accept
// the result, but must not panic, nor fail to read a file that Verify accepts.
func TestDamageWithRightSums(t *testing.T) {
	race.SkipOneGoroutine(t)
	const seed = 3
	_, data := small(t)
	g := newGenerator(seed)
	var accepted int
	for round := range rounds(6000) {
		p := bytes.Clone(data)
		for range 1 + g.IntN(3) {
			p[g.IntN(len(p))] = byte(g.Uint32() >> g.IntN(24))
		}
		fixSums(p)
		if err := use(p); err != nil {
			if !errors.Is(err, corrupt.ErrCorrupt) && !errors.Is(err, ErrNewerFormat) {
				t.Fatalf("seed %d round %d: %v", seed, round, err)
			}
			continue
		}
		accepted++
	}
	if accepted == 0 || accepted == rounds(6000) {
		t.Fatalf("%d of %d changed files were accepted, want some", accepted, rounds(6000))
	}
	t.Logf("%d of %d changed files are well formed", accepted, rounds(6000))
}
