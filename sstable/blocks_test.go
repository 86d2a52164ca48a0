package sstable

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/sstable/internal/groupindex"
	"github.com/tablerock-db/tablerock/vfs"
)

// countedFile counts the reads and their bytes.
type countedFile struct {
	vfs.File
	reads, bytes int
}

func (f *countedFile) ReadAt(p []byte, off int64) (int, error) {
	f.reads++
	f.bytes += len(p)
	return f.File.ReadAt(p, off)
}

// TestReadsOfOpen counts the reads of Open: the header, the footer, and three sections at once.
func TestReadsOfOpen(t *testing.T) {
	file, _ := write(t, writerOptions(), uniform(2000))
	f := &countedFile{File: file}
	r := open(t, f, nil)
	want := headerBytes + footerBytes + int(r.footer.filter.end()-r.footer.shapes.off)
	if f.reads != 3 || f.bytes != want {
		t.Errorf("%d reads of %d bytes, want 3 of %d", f.reads, f.bytes, want)
	}
}

// TestReadsOfScan counts the reads of a scan with a cache and without one: for the values
// of its first group it reads all of that group after the head at once, and the other
// groups whole.
func TestReadsOfScan(t *testing.T) {
	entries := uniform(2000)
	file, _ := write(t, writerOptions(), entries)
	for _, size := range []int64{0, 4 << 20} {
		for _, fill := range []bool{false, true} {
			f := &countedFile{File: file}
			r := open(t, f, cache.New(size))
			groups := len(r.index.Groups)
			if h, pin, stored, err := r.head(0, nil, false, false); err != nil || len(h.HeapUnits) < 3 || groups < 3 {
				t.Fatalf("the file is too small: %d groups, %v", groups, err)
			} else {
				pin.Release()
				stored.free()
			}
			f.reads = 0
			it := r.NewIterator(IterOptions{Snapshot: codec.MaxSeq, Fill: fill})
			n := 0
			for ok := it.SeekGE(nil); ok; ok = it.Next() {
				if row := it.Row(); row != nil {
					if d := diff(&entries[n], row); d != "" {
						t.Fatalf("row %d: %s", n, d)
					}
				}
				n++
			}
			if err := it.Close(); err != nil || n != len(entries) {
				t.Fatalf("%d rows, %v", n, err)
			}
			if want := 1 + groups; f.reads != want {
				t.Errorf("cache of %d bytes, filled %t: %d reads of %d groups, want %d", size, fill, f.reads, groups, want)
			}
		}
	}
}

// TestGetWithoutFilter gets keys until the row no longer asks the filter, then one that the filter
// excludes, which it must ask for again from the next Get on.
func TestGetWithoutFilter(t *testing.T) {
	entries := uniform(2000)
	file, _ := write(t, writerOptions(), entries)
	f := &countedFile{File: file}
	r := open(t, f, nil)
	missing := bytes.Clone(entries[700].user)
	for missing[len(missing)-2]++; r.MayContain(codec.KeyHash(missing)); missing[len(missing)-2]++ {
	}
	var row Row
	get := func(key []byte) (ok bool, reads int) {
		t.Helper()
		f.reads = 0
		_, _, ok, err := r.Get(key, codec.KeyHash(key), codec.MaxSeq, &row)
		if err != nil {
			t.Fatal(err)
		}
		return ok, f.reads
	}
	for _, finds := range []int{0, 1, findsBeforeSkip - 1, findsBeforeSkip, findsBeforeSkip + 100, 1} {
		for i := range finds {
			if ok, _ := get(entries[i].user); !ok {
				t.Fatalf("key %x was not found", entries[i].user)
			}
		}
		want := 0
		if finds >= findsBeforeSkip {
			want = 1
		}
		for n, want := range []int{want, 0, 0} {
			if ok, reads := get(missing); ok || reads != want {
				t.Errorf("after %d finds, missing get %d: found %t with %d reads, want %d", finds, n, ok, reads, want)
			}
		}
	}
}

// TestSkippedFilterOfDamage gets keys without the filter, from a group that cannot be read: one that
// the file does not have needs no group, and a file without groups has none.
func TestSkippedFilterOfDamage(t *testing.T) {
	entries := uniform(500)
	file, _ := write(t, writerOptions(), entries)
	f := &brokenFile{File: file}
	r := open(t, f, nil)
	present := entries[400].user
	missing := bytes.Clone(present)
	for missing[len(missing)-2]++; r.MayContain(codec.KeyHash(missing)); missing[len(missing)-2]++ {
	}
	if r.index.Seek(missing) != r.index.Seek(present) {
		t.Fatal("the keys have different groups")
	}
	g := &r.index.Groups[r.index.Seek(present)]
	empty, _ := write(t, writerOptions(), nil)
	for _, c := range []struct {
		name string
		r    *Reader
		to   int64 // of the part of the file that cannot be read
		key  []byte
		ok   bool
		want error
	}{
		{"missing, damaged", r, g.Off + int64(g.Len), missing, false, nil},
		{"present, damaged", r, g.Off + int64(g.Len), present, false, errBroken},
		{"present", r, 0, present, true, nil},
		{"missing", r, 0, missing, false, nil},
		{"empty file", open(t, empty, nil), 0, present, false, nil},
	} {
		row := Row{finds: findsBeforeSkip}
		f.from, f.to = g.Off, c.to
		_, _, ok, err := c.r.Get(c.key, codec.KeyHash(c.key), codec.MaxSeq, &row)
		if ok != c.ok || !errors.Is(err, c.want) {
			t.Errorf("%s: found %t, %v, want %t, %v", c.name, ok, err, c.ok, c.want)
		}
		if skips := row.finds >= findsBeforeSkip; skips != c.ok {
			t.Errorf("%s: the next Get skips the filter: %t, want %t", c.name, skips, c.ok)
		}
		row.Release()
	}
}

// TestLoadersSetHints scans a file once. The hint of every head and heap unit must be set then.
func TestLoadersSetHints(t *testing.T) {
	entries := uniform(2000)
	file, _ := write(t, writerOptions(), entries)
	r := open(t, file, cache.New(4<<20))
	it := r.NewIterator(IterOptions{Snapshot: codec.MaxSeq, Fill: true})
	n := 0
	for ok := it.SeekGE(nil); ok; ok = it.Next() {
		if row := it.Row(); row != nil {
			if d := diff(&entries[n], row); d != "" {
				t.Fatalf("row %d: %s", n, d)
			}
		}
		n++
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	units := 0
	for g := range r.heads {
		if reflect.ValueOf(&r.heads[g]).Elem().IsZero() {
			t.Fatalf("the head of group %d has no hint", g)
		}
		h, pin, _, err := r.head(g, nil, false, true)
		if err != nil {
			t.Fatal(err)
		}
		for i := range h.HeapUnits {
			units++
			if reflect.ValueOf(&h.hints[i]).Elem().IsZero() {
				t.Errorf("heap unit %d of group %d has no hint", i, g)
			}
		}
		pin.Release()
	}
	if units < 3 {
		t.Errorf("the file is too small: %d heap units", units)
	}
}

// TestUnreadableRest fails to read a group after its head, and reads it at a second attempt.
func TestUnreadableRest(t *testing.T) {
	entries := uniform(500)
	file, _ := write(t, writerOptions(), entries)
	f := &brokenFile{File: file}
	r := open(t, f, cache.New(0))
	e := &r.index.Groups[0]
	for _, c := range []struct {
		to   int64
		want error
	}{{e.Off + int64(e.Len), errBroken}, {0, nil}} {
		f.from, f.to = e.Off+int64(e.HeadEnd()), c.to
		it := r.NewIterator(IterOptions{Snapshot: codec.MaxSeq})
		if !it.SeekGE(nil) {
			t.Fatal(it.Err())
		}
		d := ""
		if err := it.Row().Load(); err == nil {
			d = diff(&entries[0], it.Row())
		}
		if err := it.Close(); !errors.Is(err, c.want) || d != "" {
			t.Errorf("error %v, want %v; %s", err, c.want, d)
		}
	}
}

// TestDamagedHeads changes bytes of heads and corrects the sums. A get of each row, which
// checks no other row of its heap unit, returns bytes within the unit or an error.
func TestDamagedHeads(t *testing.T) {
	entries, data := small(t)
	r := open(t, fileOf(t, data), nil)
	refused := 0
	for _, e := range r.index.Groups {
		for at := e.HeadOff(); at < e.Off+int64(e.HeadEnd()-sumBytes); at += int64(9 - rounds(8)) {
			p := bytes.Clone(data)
			p[at] ^= 0x41
			fixSums(p)
			damaged, err := Open(fileOf(t, p), readerOptions(cache.New(0)))
			if err != nil {
				t.Fatal(err)
			}
			var row Row
			for i := range entries {
				_, kind, ok, err := damaged.Get(entries[i].user, codec.KeyHash(entries[i].user), entries[i].seq, &row)
				if ok && err == nil && kind == codec.KindPut {
					touch(&row)
					err = row.Err()
				}
				if err != nil && !errors.Is(err, corrupt.ErrCorrupt) {
					t.Fatalf("byte %d, row %d: %v", at, i, err)
				}
				if err != nil {
					refused++
				}
			}
			row.Release()
		}
	}
	if refused == 0 {
		t.Error("no row was refused")
	}
}

// TestReadOfGet counts the reads of gets without a cache and their bytes: a head,
// one heap unit and the units between.
func TestReadOfGet(t *testing.T) {
	entries := uniform(2000)
	o := writerOptions()
	o.Compression = CompressionNone
	file, _ := write(t, o, entries)
	f := &countedFile{File: file}
	r := open(t, f, cache.New(0))
	whole, read := 0, 0
	var row Row
	defer row.Release()
	for i := range entries {
		e := &r.index.Groups[r.index.Seek(entries[i].user)]
		f.reads, f.bytes = 0, 0
		_, _, ok, err := r.Get(entries[i].user, codec.KeyHash(entries[i].user), codec.MaxSeq, &row)
		if err != nil || !ok || f.reads != 1 {
			t.Fatalf("row %d: %d reads, found %t, %v", i, f.reads, ok, err)
		}
		if d := diff(&entries[i], &row); !entries[i].del && d != "" {
			t.Fatalf("row %d: %s", i, d)
		}
		whole, read = whole+e.Len, read+f.bytes
	}
	if read*4 > whole*3 {
		t.Errorf("%d bytes were read of groups of %d", read, whole)
	}
}

// TestUnitsOfIndex reads files whose index names other heap units: a get returns the same,
// with another read, and Open or Verify refuses most of them.
func TestUnitsOfIndex(t *testing.T) {
	race.SkipOneGoroutine(t)
	entries := uniform(900)
	entries = append(entries, newEntry("p9", "often", 1, false, entries[0].props))
	for i := range 800 { // versions of one key in several units
		e := newEntry("p9", "often", uint64(i+2), false, entries[i/50*50].props)
		entries = append(entries, e)
	}
	entries = sortEntries(entries)
	file, info := write(t, writerOptions(), entries)
	data := bytesOf(t, file, info.Size)
	r := open(t, file, nil)
	if err := readAll(t, file, entries, "whole file"); err != nil {
		t.Fatal(err)
	}
	from := int(r.footer.index.off) + bytes.LastIndex(data[r.footer.index.off:r.footer.index.end()], r.index.Largest) + len(r.index.Largest)
	end := int(r.footer.index.end()) - sumBytes
	if end-from < 3*groupindex.UnitBytes {
		t.Fatalf("%d bytes of units", end-from)
	}
	refused, verified := 0, 0 // by Open and by Verify
	for at := from; at < end; at += 9 - rounds(8) {
		for _, bit := range []byte{1, 0x80} {
			p := bytes.Clone(data)
			p[at] ^= bit
			fixSums(p)
			changed, err := Open(fileOf(t, p), readerOptions(cache.New(0)))
			if err != nil {
				wantCorrupt(t, err, "open")
				refused++
				continue
			}
			var row Row
			for i := 0; i < len(entries); i += 7 {
				e := &entries[i]
				seq, _, ok, err := changed.Get(e.user, codec.KeyHash(e.user), e.seq, &row)
				if err != nil || !ok || seq != e.seq {
					t.Fatalf("byte %d, row %d: sequence %d, found %t, %v", at, i, seq, ok, err)
				}
				if d := diff(e, &row); !e.del && d != "" {
					t.Fatalf("byte %d, row %d: %s", at, i, d)
				}
			}
			row.Release()
			if at%5 == 0 {
				if err := changed.Verify(t.Context()); err != nil {
					wantCorrupt(t, err, "verify")
					verified++
				}
			}
		}
	}
	if refused == 0 || verified == 0 {
		t.Errorf("Open refused %d files, Verify %d", refused, verified)
	}
}

// TestOffsetOfHead reads files whose index has the head of the first group elsewhere:
// Open or each reader of the group refuses them.
func TestOffsetOfHead(t *testing.T) {
	entries := uniform(900)
	file, info := write(t, writerOptions(), entries)
	data := bytesOf(t, file, info.Size)
	r := open(t, file, nil)
	e := r.index.Groups[0]
	if e.Before == 0 || len(e.Units) == 0 {
		t.Fatalf("%d bytes before the head, %d of units", e.Before, len(e.Units))
	}
	at := int(r.footer.index.off) + 4 + 22
	for _, before := range []int{0, 1, e.Before - 1, e.Before + 1, e.Before + e.Head, e.Len - e.Head, e.Len - e.Head + 1, e.Len, 1<<16 - 1} {
		p := bytes.Clone(data)
		binary.LittleEndian.PutUint16(p[at:], uint16(before))
		fixSums(p)
		changed, err := Open(fileOf(t, p), readerOptions(cache.New(0)))
		if err != nil {
			wantCorrupt(t, err, "open")
			continue
		}
		if before > e.Len-e.Head {
			t.Errorf("%d bytes before the head in a group of %d: Open accepted", before, e.Len)
		}
		var row Row
		_, _, _, err = changed.Get(entries[0].user, codec.KeyHash(entries[0].user), codec.MaxSeq, &row)
		wantCorrupt(t, err, fmt.Sprintf("get, %d bytes before the head", before))
		row.Release()
		it := changed.NewIterator(IterOptions{Snapshot: codec.MaxSeq})
		if it.SeekGE(nil) {
			t.Errorf("scan, %d bytes before the head: accepted", before)
		}
		wantCorrupt(t, it.Err(), "scan")
		it.Close()
		wantCorrupt(t, changed.Verify(t.Context()), "verify")
	}
}
