package archive

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
	"github.com/tablerock-db/tablerock/wal"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files")

var testSource = Source{Dir: "db", DBID: [16]byte{0xdb, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, Epoch: 3}

func check(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// newSource returns a database directory with a segment of two deletes, of the sequence
// numbers 5 and 6, and a load of one row with the sequence number 7.
func newSource(t *testing.T) Source {
	t.Helper()
	s := testSource
	s.FS = vfs.NewMem()
	check(t, "MkdirAll", s.FS.MkdirAll("db/000007.load"))
	seg, err := wal.New(wal.Header{DBID: s.DBID, Number: 9, FirstSeq: 5, HighWater: 1}, make([]byte, 64<<10))
	check(t, "New", err)
	check(t, "Open", seg.Open(s.FS, "db/000009.wal", wal.CreateOptions{NoPreallocate: true}))
	for i := range uint64(2) {
		entry := codec.AppendEntry(nil, codec.Entry{
			Kind: codec.KindDelete, Key: codec.AppendKey(nil, 16, "p", "r"), Timestamp: edm.Ticks(639_000_000_000_000_000 + i*100),
		})
		payload, _, _ := seg.Begin(len(entry))
		copy(payload, entry)
		seg.Commit(wal.Record{FirstSeq: 5 + i, Count: 1})
	}
	check(t, "Sync", seg.Sync(seg.Tail()))
	check(t, "Close", seg.Close())

	file := []byte("an sstable, which this format does not look into")
	f, err := s.FS.Create("db/000007.load/000012.sst")
	check(t, "Create", err)
	_, err = f.WriteAt(file, 0)
	check(t, "WriteAt", err)
	check(t, "Close", f.Close())
	bound := codec.AppendTrailer(codec.AppendKey(nil, 16, "p", "r"), 7, codec.KindPut)
	check(t, "Write", manifest.Write(s.FS, "db/000007.load", &manifest.Manifest{
		DBID: s.DBID, NextFile: 13, HighWater: 639_000_000_000_000_200, LastSeq: 7, Files: []manifest.File{{
			Number: 12, Size: int64(len(file)), Run: 10, Smallest: bound, Largest: bound, MinSeq: 7, MaxSeq: 7, Entries: 1, Hash: xxhash.Sum64(file),
			Stamp: 639_000_000_000_000_200, Origin: s.DBID,
		}},
	}))
	return s
}

// TestFormat compares chunks with the golden files, and reads them.
func TestFormat(t *testing.T) {
	s := newSource(t)
	for _, c := range []struct {
		golden, name string
		open         func() (*Chunk, error)
		files        []int64 // sizes
	}{
		{"testdata/log-v1", "00000003/db0102030405060708090a0b0c0d0e0f/00000000000000005-00000000000000006.log", func() (*Chunk, error) {
			return OpenLog(s, 9, 0)
		}, nil},
		{"testdata/load-v1", "00000003/db0102030405060708090a0b0c0d0e0f/00000000000000007-00000000000000007.load", func() (*Chunk, error) {
			return OpenLoad(t.Context(), s, "db/000007.load")
		}, []int64{48}},
	} {
		opened, err := c.open()
		check(t, "open", err)
		header := opened.Header
		b, err := io.ReadAll(opened)
		check(t, "read", err)
		check(t, "Close", opened.Close())
		if name := header.Name(); name != c.name {
			t.Errorf("name is %s, want %s", name, c.name)
		}
		if *rewrite {
			check(t, "WriteFile", os.WriteFile(c.golden, b, 0o600))
		}
		want, err := os.ReadFile(c.golden)
		check(t, "ReadFile", err)
		if !bytes.Equal(b, want) {
			t.Errorf("%s differs from\n%x", c.golden, b)
		}
		if err := readWhole(b); err != nil {
			t.Error(err)
		}
		h, err := decodeHeader(c.golden, b[:HeaderLen])
		check(t, "decodeHeader", err)
		if *h != header || !bytes.Equal(appendHeader(nil, h), b[:HeaderLen]) {
			t.Errorf("header is %+v, want %+v", *h, header)
		}
	}
}

// readWhole reads a chunk and verifies it.
func readWhole(b []byte) error {
	fs := vfs.NewMem()
	r, err := NewReader("chunk", bytes.NewReader(b))
	if err != nil {
		return err
	}
	if err := r.CopyTo(fs, "payload", r.Bytes); err != nil {
		return err
	}
	return r.Finish()
}

// TestDamage damages each byte of a chunk, and cuts it at each length.
func TestDamage(t *testing.T) {
	b, err := os.ReadFile("testdata/load-v1")
	check(t, "ReadFile", err)
	for i := range b {
		damaged := bytes.Clone(b)
		damaged[i] ^= 0x40
		if err := readWhole(damaged); !errors.Is(err, corrupt.ErrCorrupt) {
			t.Errorf("byte %d damaged: %v", i, err)
		}
		if err := readWhole(b[:i]); !errors.Is(err, corrupt.ErrCorrupt) {
			t.Errorf("%d bytes: %v", i, err)
		}
	}
	if err := readWhole(append(bytes.Clone(b), 0)); !errors.Is(err, corrupt.ErrCorrupt) {
		t.Errorf("a byte more: %v", err)
	}
}

// TestHeaderChecks encodes headers with fields that are not possible, and a later version.
func TestHeaderChecks(t *testing.T) {
	good, err := os.ReadFile("testdata/load-v1")
	check(t, "ReadFile", err)
	for what, change := range map[string]func(*Header){
		"kind":     func(h *Header) { h.Kind = 3 },
		"number":   func(h *Header) { h.Number = 0 },
		"range":    func(h *Header) { h.Last++ },
		"sequence": func(h *Header) { h.First, h.Last = 1<<56, 1<<56 },
		"order":    func(h *Header) { h.From = h.To + 1 },
		"payload":  func(h *Header) { h.Bytes = 1 << 50 },
		"manifest": func(h *Header) { h.Manifest = h.Bytes + 1 },
		"segment":  func(h *Header) { h.Kind = Log },
	} {
		h, err := decodeHeader("chunk", good[:HeaderLen])
		check(t, "decodeHeader", err)
		change(h)
		if _, err := decodeHeader("chunk", appendHeader(nil, h)); !errors.Is(err, corrupt.ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
	newer := bytes.Clone(good[:HeaderLen])
	newer[8]++
	binary.LittleEndian.PutUint64(newer[headSumOff:], xxhash.Sum64(newer[:headSumOff]))
	if _, err := decodeHeader("chunk", newer); !errors.Is(err, ErrNewerFormat) {
		t.Errorf("newer version: %v", err)
	}
}

// TestNames parses names of chunks and others.
func TestNames(t *testing.T) {
	const a, b = "00000000000000007", "00000000000000009"
	for name, want := range map[string]Range{
		a + "-" + b + ".log": {7, 9}, b + "-" + b + ".load": {9, 9}, a + "-" + b + ".load": {}, b + "-" + a + ".log": {},
		a + b + ".log": {}, "7-9.log": {}, a + "-" + b: {}, a + "-" + strings.Repeat("9", 17) + ".log": {}, "0" + a + "-" + b[1:] + ".log": {},
	} {
		_, got, ok := ParseName(name)
		if ok != (want != Range{}) || ok && got != want {
			t.Errorf("%s: %v, %v", name, got, ok)
		}
	}
}

// TestSourceDamage opens a load whose file is damaged, and a segment without records.
func TestSourceDamage(t *testing.T) {
	s := newSource(t)
	f, err := s.FS.OpenReadWrite("db/000007.load/000012.sst")
	check(t, "OpenReadWrite", err)
	_, err = f.WriteAt([]byte("!"), 5)
	check(t, "WriteAt", err)
	check(t, "Close", f.Close())
	c, err := OpenLoad(t.Context(), s, "db/000007.load")
	check(t, "OpenLoad", err)
	defer c.Close()
	if _, err := io.ReadAll(c); !errors.Is(err, corrupt.ErrCorrupt) {
		t.Errorf("read of a damaged file: %v", err)
	}
	seg, err := wal.New(wal.Header{DBID: s.DBID, Number: 10, FirstSeq: 7}, make([]byte, 64<<10))
	check(t, "New", err)
	check(t, "Open", seg.Open(s.FS, "db/000010.wal", wal.CreateOptions{NoPreallocate: true}))
	check(t, "Seal", seg.Seal())
	check(t, "Close", seg.Close())
	if _, err := OpenLog(s, 10, 0); !errors.Is(err, ErrEmpty) {
		t.Errorf("a segment with a seal only: %v", err)
	}
}

// FuzzRead reads any bytes as a chunk.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"testdata/log-v1", "testdata/load-v1"} {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := readWhole(b); err != nil && !errors.Is(err, corrupt.ErrCorrupt) && !errors.Is(err, ErrNewerFormat) {
			t.Error(err)
		}
	})
}

// TestMark compares a mark with its golden file and damages it.
func TestMark(t *testing.T) {
	m := &Mark{DBID: testSource.DBID, Epoch: 3, Last: 7, At: 639_000_000_000_000_500}
	b := AppendMark(nil, m)
	if *rewrite {
		check(t, "WriteFile", os.WriteFile("testdata/mark-v1", b, 0o600))
	}
	want, err := os.ReadFile("testdata/mark-v1")
	check(t, "ReadFile", err)
	name := MarkName(3, testSource.DBID)
	if got, err := DecodeMark(name, want); !bytes.Equal(b, want) || err != nil || *got != *m {
		t.Errorf("encoded %x, decoded %+v, %v", b, got, err)
	}
	for i := range b {
		damaged := bytes.Clone(b)
		damaged[i] ^= 0x40
		if _, err := DecodeMark(name, damaged); !errors.Is(err, corrupt.ErrCorrupt) {
			t.Errorf("byte %d damaged: %v", i, err)
		}
	}
	if _, err := DecodeMark(name, b[:MarkLen-1]); !errors.Is(err, corrupt.ErrCorrupt) {
		t.Errorf("truncated: %v", err)
	}
	if _, err := DecodeMark(MarkName(4, testSource.DBID), b); !errors.Is(err, corrupt.ErrCorrupt) {
		t.Errorf("mark of another epoch: %v", err)
	}
}

// TestSpan adds records of one and of several entries, one that is damaged, and one that is too late.
func TestSpan(t *testing.T) {
	row := "r"
	record := func(seq uint64, off int64, stamps ...edm.Ticks) wal.RecordView {
		var payload []byte
		for _, stamp := range stamps {
			payload = codec.AppendEntry(payload, codec.Entry{Kind: codec.KindDelete, Key: codec.AppendKey(nil, 16, "p", row), Timestamp: stamp})
		}
		return wal.RecordView{FirstSeq: seq, Count: uint16(len(stamps)), Payload: payload, PayloadOff: off}
	}
	s := Span{Name: "000009.wal", Until: 40}
	check(t, "Add", s.Add(record(5, 104, 10, 11, 12)))
	if want := (Range{5, 7}); s.Range != want || s.From != 10 || s.To != 12 {
		t.Errorf("span of %v from %d to %d, want %v from 10 to 12", s.Range, s.From, s.To, want)
	}
	var end int64
	for range 8 { // one of each length modulo 8
		row += "r"
		last := record(8, 200, 40)
		check(t, "Add", s.Add(last))
		if end = 200 + (int64(len(last.Payload))+7)/8*8; s.End != end {
			t.Errorf("%d bytes end at %d, want %d", len(last.Payload), s.End, end)
		}
	}
	later, damaged := record(10, 400, 41), record(10, 400, 40)
	damaged.Payload = damaged.Payload[:len(damaged.Payload)-1]
	var damage *corrupt.Error
	if err := s.Add(damaged); !errors.As(err, &damage) || damage.File != s.Name || damage.Offset != 400 {
		t.Errorf("a damaged record: %v, want damage of %s at 400", err, s.Name)
	}
	if err := s.Add(later); !errors.Is(err, ErrUntil) {
		t.Errorf("a later record: %v, want %v", err, ErrUntil)
	}
	if want := (Range{5, 8}); s.Range != want || s.From != 10 || s.To != 40 || s.End != end {
		t.Errorf("span of %v from %d to %d, end %d, want %v from 10 to 40, end %d", s.Range, s.From, s.To, s.End, want, end)
	}
}

// TestChunkReleases closes the chunks of a segment, which has memory outside the Go heap, and of a load, which has open files. Close
// returns the error of a file.
func TestChunkReleases(t *testing.T) {
	s := newSource(t)
	p, err := OpenLog(s, 9, 0)
	check(t, "OpenLog", err)
	memory := p.memory
	check(t, "Close", p.Close())
	if memory.Bytes() != nil {
		t.Error("the memory of a closed chunk is not freed")
	}

	opened, closed, injected := 0, 0, errors.New("injected")
	s.FS = errorfs.Wrap(s.FS, func(op vfs.Op) *errorfs.Fault {
		switch op.Kind {
		case "open":
			opened++
		case "close":
			if closed++; closed == 2 { // 1 is of the read of the manifest
				return &errorfs.Fault{Err: injected, Applied: true}
			}
		}
		return nil
	})
	p, err = OpenLoad(t.Context(), s, "db/000007.load")
	check(t, "OpenLoad", err)
	if err := p.Close(); !errors.Is(err, injected) || opened != closed || opened < 3 {
		t.Errorf("Close: %v, want %v; %d files were opened and %d closed", err, injected, opened, closed)
	}
}
