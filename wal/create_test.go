package wal

import (
	"bytes"
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/vfs"
)

func TestCreateErrors(t *testing.T) {
	for _, c := range []struct {
		name  string
		h     func(*Header)
		image int64
	}{
		{"short image", func(*Header) {}, SegmentBytes(0) - 1},
		{"number 0", func(h *Header) { h.Number = 0 }, 1 << 16},
		{"sequence 0", func(h *Header) { h.FirstSeq = 0 }, 1 << 16},
		{"sequence above", func(h *Header) { h.FirstSeq = MaxSeq + 1 }, 1 << 16},
		{"previous end", func(h *Header) { h.PrevEnd = -1 }, 1 << 16},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys, h := newMem(t), testHeader()
			c.h(&h)
			if _, err := create(fsys, testName, h, make([]byte, c.image), CreateOptions{}); err == nil {
				t.Fatal("got no error")
			}
			if names, err := fsys.List("db"); err != nil || len(names) != 0 {
				t.Fatalf("files %v are left, %v", names, err)
			}
		})
	}
	fsys := newMem(t)
	writeFile(t, fsys, testName, []byte("mine"))
	if _, err := create(fsys, testName, testHeader(), make([]byte, 1<<16), CreateOptions{}); !errors.Is(err, fs.ErrExist) {
		t.Fatalf("over a file: %v", err)
	}
	if got := readFile(t, fsys, testName); string(got) != "mine" {
		t.Fatalf("the file holds %q", got)
	}
}

// TestReuseFile creates segments from a prepared file and then each from the one
// before, which is shorter or longer.
func TestReuseFile(t *testing.T) {
	mem := newMem(t)
	if err := prepare(mem, "db/spare", 40_000); err != nil {
		t.Fatal(err)
	}
	old := "db/spare"
	preallocated := false
	fsys := failing(mem, func(o vfs.Op) error {
		preallocated = preallocated || o.Kind == "preallocate"
		return nil
	})
	for i, capacity := range []int64{40_000, 20_000, 60_000, 8192, 60_000} {
		h := testHeader()
		h.Number = uint64(7 + i)
		name := "db/" + string(rune('a'+i)) + ".wal"
		preallocated = false
		image := make([]byte, capacity)
		s, err := create(fsys, name, h, image, CreateOptions{Prepared: old})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := mem.Stat(old); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("segment %d: the prepared file still exists: %v", i, err)
		}
		o := ReplayOptions{DBID: testDB, Number: h.Number}
		if r := replayFS(mem, name, o, 1<<16); r.err != nil || len(r.records) != 0 {
			t.Fatalf("segment %d without a record: %+v, %v", i, r.end, r.err)
		}
		if info, err := Inspect(mem, name, testDB, h.Number); err != nil || info.Records || info.Header != h {
			t.Fatalf("segment %d without a record: %+v, %v", i, info, err)
		}
		want := 0
		for ; want < 10*(i+1) && s.maxPayload() >= int64(100*i); want++ {
			appendRecord(s, Record{FirstSeq: h.FirstSeq + uint64(want), Count: 1}, bytes.Repeat([]byte{byte(i + 1)}, 100*i+want))
		}
		if err := errors.Join(s.Seal(), s.Close()); err != nil {
			t.Fatal(err)
		}
		if r := replayFS(mem, name, o, 1<<16); r.err != nil || len(r.records) != want || !r.end.Sealed {
			t.Fatalf("segment %d: %d of %d records, %+v, %v", i, len(r.records), want, r.end, r.err)
		}
		if info, err := Inspect(mem, name, testDB, h.Number); err != nil || !info.Records {
			t.Fatalf("segment %d: %+v, %v", i, info, err)
		}
		if size := int64(len(readFile(t, mem, name))); preallocated && s.Tail() <= size && i < 2 {
			t.Fatalf("segment %d preallocated space that the prepared file has", i)
		}
		old = name
	}
}

// TestReuseFileErrors fails each operation of reusing a file.
func TestReuseFileErrors(t *testing.T) {
	for at := 1; ; at++ {
		n := 0
		mem := newMem(t)
		if err := prepare(mem, "db/spare", 20_000); err != nil {
			t.Fatal(err)
		}
		fsys := failAt(mem, at, &n)
		_, err := create(fsys, testName, testHeader(), make([]byte, 20_000), CreateOptions{Prepared: "db/spare"})
		if n < at {
			if err != nil {
				t.Fatal(err)
			}
			return
		}
		if !errors.Is(err, syscall.EIO) {
			t.Fatalf("operation %d failed: got %v", at, err)
		}
		if _, err := mem.Stat(testName); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("operation %d failed: the segment exists: %v", at, err)
		}
	}
}

func TestBlank(t *testing.T) {
	l := makeLog(t, testHeader(), smallSteps)
	dirty := make([]byte, scanChunk+2*HeaderLen)
	dirty[len(dirty)-1] = 1
	for _, c := range []struct {
		name string
		data []byte
		want bool
	}{
		{"nothing", nil, true},
		{"part of a header", l.data[:100], true},
		{"header", l.data[:HeaderLen], true},
		{"header and zeros", append(bytes.Clone(l.data[:HeaderLen]), make([]byte, 3*scanChunk)...), true},
		{"zeros", make([]byte, 10_000), true},
		{"records", l.data, false},
		{"last byte", dirty, false},
	} {
		if got, err := Blank(bytesFS{data: c.data}, testName); got != c.want || err != nil {
			t.Errorf("%s: got %v, %v, want %v", c.name, got, err, c.want)
		}
	}
}

// prepare creates a file of zeros for a segment to reuse.
func prepare(fsys vfs.FS, name string, size int64) error {
	f, err := fsys.Create(name)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(make([]byte, size), 0)
	return errors.Join(err, f.Sync(), f.Close())
}
