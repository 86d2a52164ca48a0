package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/vfs"
)

// fixHeaderSum sets the sum of a changed header.
func fixHeaderSum(data []byte) {
	sum := xxhash.Sum64(data[:headerSumOff]) ^ newSumSeed([16]byte(data[16:32]), binary.LittleEndian.Uint64(data[32:])).mask(0)
	binary.LittleEndian.PutUint64(data[headerSumOff:], sum)
}

// TestHeaderFields damages each field of a header, with a wrong and with a correct
// sum.
func TestHeaderFields(t *testing.T) {
	l := makeLog(t, testHeader(), smallSteps)
	blank := makeLog(t, testHeader(), nil)
	for _, c := range []struct {
		name string
		off  int
		with []byte
		want string // the error with a correct sum; empty skips that case
		is   error
	}{
		{"magic", 0, []byte("x"), "magic", nil},
		{"version newer", 8, []byte{2}, "newer format: version 2", ErrNewerFormat},
		{"version 0", 8, []byte{0}, "version is 0", nil},
		{"reserved", 12, []byte{1}, "", nil},
		{"database", 16, []byte{1}, "segment of database 01", nil},
		{"number above", 32, []byte{8}, "header of segment 8, want 7", ErrChanged},
		{"number below", 32, []byte{6}, "header of segment 6, want 7", nil},
		{"number 0", 32, []byte{0}, "segment number is 0", nil},
		{"first sequence", 40, []byte{99}, "chain is", nil},
		{"first sequence 0", 40, make([]byte, 8), "first sequence is 0", nil},
		{"first sequence above", 47, []byte{1}, "first sequence is", nil},
		{"high water", 48, []byte{1}, "chain is", nil},
		{"previous end", 56, []byte{8}, "chain is", nil},
		{"previous end below 0", 63, []byte{0x80}, "end of the previous segment", nil},
		{"zeros", 64, []byte{1}, "chain is", nil},
		{"last zero", headerSumOff - 1, []byte{1}, "chain is", nil},
		{"sum", headerSumOff, []byte{1}, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := bytes.Clone(l.data)
			copy(data[c.off:], c.with)
			var ce *corrupt.Error
			r := replay(data, testOptions())
			if !errors.As(r.err, &ce) || ce.Offset != 0 || errors.Is(r.err, ErrUnfinished) || errors.Is(r.err, ErrNewerFormat) {
				t.Fatalf("wrong sum: got %v, want damage at 0", r.err)
			}
			empty := bytes.Clone(blank.data)
			copy(empty[c.off:], c.with)
			if r := replay(empty, testOptions()); !errors.Is(r.err, ErrUnfinished) || !errors.Is(r.err, corrupt.ErrCorrupt) {
				t.Fatalf("wrong sum and no record: got %v, want ErrUnfinished", r.err)
			}
			if c.want == "" {
				return
			}
			fixHeaderSum(data)
			r = replay(data, testOptions())
			if r.err == nil || !strings.Contains(r.err.Error(), c.want) || !strings.Contains(r.err.Error(), "000007.wal") {
				t.Fatalf("correct sum: got %v, want %q", r.err, c.want)
			}
			if c.is != nil && !errors.Is(r.err, c.is) {
				t.Fatalf("correct sum: got %v, want %v", r.err, c.is)
			}
			if errors.Is(r.err, corrupt.ErrCorrupt) == (c.is == ErrNewerFormat) {
				t.Fatalf("correct sum: %v is corruption: %v", r.err, errors.Is(r.err, corrupt.ErrCorrupt))
			}
		})
	}
}

// fixRecordSums sets the sums of a changed record.
func fixRecordSums(data []byte, off, end int64) {
	mask := newSumSeed(testDB, 7).mask(off)
	binary.LittleEndian.PutUint32(data[off+8:], recordCheck(data[off:end], mask))
	binary.LittleEndian.PutUint64(data[off:], xxhash.Sum64(data[off+8:end])^mask)
}

// TestRecordFields damages each field of a record in the middle of the log, with
// wrong and with correct sums.
func TestRecordFields(t *testing.T) {
	l := makeLog(t, testHeader(), smallSteps)
	off, end := l.records[1].End, l.records[2].End
	for _, c := range []struct {
		name string
		at   int64
		with []byte
		want string // the error with correct sums
	}{
		{"sum", 0, []byte{1}, ""},
		{"check", 8, []byte{1}, ""},
		{"length", 12, []byte{1}, "was synced to"},
		{"length huge", 12, []byte{0xff, 0xff, 0xff, 0xff}, "was synced to"},
		{"number", 16, []byte{9}, "was synced to"},
		{"number stale", 16, []byte{6}, "was synced to"},
		{"kind 0", 20, []byte{0}, "was synced to"},
		{"kind 3", 20, []byte{3}, "was synced to"},
		{"count", 22, []byte{9}, "chain is"},
		{"first sequence", 24, []byte{1}, "begins at sequence 1,"},
		{"synced-to falls", 32, make([]byte, 4), "synced-to is 0,"},
		{"synced-to ahead", 33, []byte{0xff}, "synced-to is"},
		{"chain", 36, []byte{0x55, 0xaa}, "chain is"},
		{"payload", 40, []byte{0}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := bytes.Clone(l.data)
			copy(data[off+c.at:], c.with)
			r := checkDamaged(t, "wrong sums", l, data, testOptions(), l.synced)
			var ce *corrupt.Error
			if !errors.As(r.err, &ce) || ce.Offset != off || len(r.records) != 2 {
				t.Fatalf("wrong sums: got %d records and %v, want 2 and damage at %d", len(r.records), r.err, off)
			}
			if c.want == "" {
				return
			}
			fixRecordSums(data, off, end)
			r = replay(data, testOptions())
			if r.err == nil || !strings.Contains(r.err.Error(), c.want) || !errors.Is(r.err, corrupt.ErrCorrupt) {
				t.Fatalf("correct sums: got %v, want %q", r.err, c.want)
			}
			if ref := refReplay(data, testOptions()); ref.class != "corrupt" {
				t.Fatalf("correct sums: the reference reader says %q", ref.class)
			}
		})
	}
}

// TestMaxSeq ends a log at the greatest sequence number and after it.
func TestMaxSeq(t *testing.T) {
	h := testHeader()
	h.FirstSeq = MaxSeq
	l := makeLog(t, h, []step{{n: 3}})
	if r := replay(l.data, testOptions()); r.err != nil || r.end.LastSeq != MaxSeq {
		t.Fatalf("got %+v, %v", r.end, r.err)
	}
	l.data[HeaderLen+22] = 2
	fixRecordSums(l.data, HeaderLen, int64(len(l.data)))
	if r := replay(l.data, testOptions()); !errors.Is(r.err, corrupt.ErrCorrupt) {
		t.Fatalf("got %+v, %v", r.end, r.err)
	}
	if ref := refReplay(l.data, testOptions()); ref.class != "corrupt" {
		t.Fatalf("the reference reader says %q", ref.class)
	}
}

// TestMisplacedRecord copies records from another database and another offset.
func TestMisplacedRecord(t *testing.T) {
	l := makeLog(t, testHeader(), smallSteps)
	other := testHeader()
	other.DBID[0]++
	foreign := makeLog(t, other, smallSteps)
	for _, c := range []struct {
		name string
		make func(data []byte)
	}{
		{"record of another database", func(data []byte) {
			copy(data[HeaderLen:l.records[0].End], foreign.data[HeaderLen:])
		}},
		{"record from another offset", func(data []byte) {
			copy(data[HeaderLen:], l.data[l.records[0].End:l.records[1].End])
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := bytes.Clone(l.data)
			c.make(data)
			if r := checkDamaged(t, c.name, l, data, testOptions(), l.synced); r.err == nil {
				t.Fatal("got no error")
			}
		})
	}
}

// TestNextSegment replays with facts from the manifest and a later segment.
func TestNextSegment(t *testing.T) {
	l := makeLog(t, testHeader(), smallSteps)
	next := testHeader().FirstSeq
	for _, r := range l.records {
		next += uint64(r.Count)
	}
	torn := bytes.Clone(l.data)
	torn[len(torn)-1] ^= 1
	size := int64(len(l.data))
	for _, c := range []struct {
		name string
		data []byte
		o    ReplayOptions
		want string
	}{
		{"complete", l.data, ReplayOptions{NextSeq: next}, ""},
		{"complete and proven", l.data, ReplayOptions{NextSeq: next, Proven: size}, ""},
		{"stale bytes behind the log", append(bytes.Clone(l.data), testPayload(1, 4096)...), ReplayOptions{NextSeq: next}, ""},
		{"torn", torn, ReplayOptions{NextSeq: next}, "the next segment begins at"},
		{"torn, last", torn, ReplayOptions{}, ""},
		{"torn, proven", torn, ReplayOptions{Proven: size}, "was synced to"},
		{"torn, proven to less", torn, ReplayOptions{Proven: l.synced}, ""},
		{"gap", l.data, ReplayOptions{NextSeq: next + 1}, "the next segment begins at"},
		{"overlap", l.data, ReplayOptions{NextSeq: next - 1}, "the next segment begins at"},
		{"proven beyond the file", l.data, ReplayOptions{Proven: size + 8}, "was synced to"},
		{"sealed", l.data, ReplayOptions{Sealed: size}, ""},
		{"sealed early", l.data, ReplayOptions{Sealed: l.records[2].End}, ""},
		{"sealed within a record", l.data, ReplayOptions{Sealed: l.records[2].End + 8}, "log is sealed at"},
		{"sealed within the header", l.data, ReplayOptions{Sealed: 8}, "log is sealed at"},
		{"sealed before the file", l.data, ReplayOptions{Sealed: -8}, "log is sealed at"},
		{"sealed beyond the file", l.data, ReplayOptions{Sealed: size + 8}, "log is sealed at"},
		{"sealed, torn", torn, ReplayOptions{Sealed: size}, "log is sealed at"},
		{"sealed, gap", l.data, ReplayOptions{Sealed: size, NextSeq: next + 1}, "the next segment begins at"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.DBID, c.o.Number = testDB, 7
			r := replay(c.data, c.o)
			if (c.want == "") != (r.err == nil) || (r.err != nil && !strings.Contains(r.err.Error(), c.want)) {
				t.Fatalf("got %v, want %q", r.err, c.want)
			}
			if (r.err != nil) != errors.Is(r.err, corrupt.ErrCorrupt) {
				t.Fatalf("%v is not corruption", r.err)
			}
			if c.o.Sealed > 0 && r.err == nil && (r.end.Offset != c.o.Sealed || r.end.Proven != c.o.Sealed || !isZero(r.image[c.o.Sealed:])) {
				t.Fatalf("end is %+v, want %d", r.end, c.o.Sealed)
			}
			checkImage(t, r, c.data)
		})
	}
}

func TestReplayCallerErrors(t *testing.T) {
	l := makeLog(t, testHeader(), smallSteps)
	fsys := bytesFS{data: l.data}
	boom := errors.New("boom")
	n := 0
	image := make([]byte, len(l.data))
	o := testOptions()
	o.Image = image
	end, err := Replay(fsys, testName, o, func(RecordView) error {
		if n++; n == 3 {
			return boom
		}
		return nil
	})
	if !errors.Is(err, boom) || n != 3 || end.Records != 3 {
		t.Fatalf("got %v after %d calls, end %+v", err, n, end)
	}
	o.Image = image[1:]
	_, err = Replay(fsys, testName, o, nil)
	if err == nil || errors.Is(err, corrupt.ErrCorrupt) {
		t.Fatalf("with a short image: %v", err)
	}
	o.Image = image
	_, err = Replay(newMem(t), testName, o, nil)
	if err == nil || errors.Is(err, ErrUnfinished) {
		t.Fatalf("without a file: %v", err)
	}
}

// faultyFS is a bytesFS whose reads a function can change or fail.
type faultyFS struct {
	vfs.FS
	data  []byte
	wrong func(read int, p []byte, off int64) (int, error)
}

func (f *faultyFS) Open(string) (vfs.File, error) {
	return &faultyFile{bytesFile: bytesFile{data: f.data}, wrong: f.wrong}, nil
}

type faultyFile struct {
	bytesFile
	reads int
	wrong func(read int, p []byte, off int64) (int, error)
}

func (f *faultyFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.bytesFile.ReadAt(p, off)
	f.reads++
	if wn, werr := f.wrong(f.reads, p, off); werr != nil {
		return wn, werr
	}
	return n, err
}

// TestReadFaults fails each read once and returns wrong bytes once.
func TestReadFaults(t *testing.T) {
	l := makeLog(t, testHeader(), smallSteps)
	for at := 1; ; at++ {
		seen := 0
		fsys := &faultyFS{data: l.data, wrong: func(read int, p []byte, _ int64) (int, error) {
			if seen = read; read == at {
				return len(p) / 2, syscall.EIO
			}
			return 0, nil
		}}
		r := replayFS(fsys, testName, testOptions(), len(l.data))
		if seen < at {
			break
		}
		if !errors.Is(r.err, syscall.EIO) || errors.Is(r.err, corrupt.ErrCorrupt) {
			t.Fatalf("read %d failed: got %v", at, r.err)
		}
	}
	fsys := &faultyFS{data: l.data}
	from := l.records[2].End - HeaderLen
	for name, damage := range map[string]func(p []byte){
		"bit":    func(p []byte) { p[from+50] ^= 4 },
		"zeros":  func(p []byte) { clear(p[from:]) },
		"number": func(p []byte) { p[from+16]++ },
	} {
		fsys.wrong = func(read int, p []byte, off int64) (int, error) {
			if read == 2 {
				damage(p[HeaderLen-off:])
			}
			return 0, nil
		}
		if r := replayFS(fsys, testName, testOptions(), len(l.data)); r.err != nil || len(r.records) != len(l.records) {
			t.Fatalf("%s: one wrong read: got %d records and %v, want %d", name, len(r.records), r.err, len(l.records))
		}
	}
	fsys.wrong = func(_ int, p []byte, _ int64) (int, error) { return len(p) - 1, io.EOF }
	if r := replayFS(fsys, testName, testOptions(), len(l.data)); !errors.Is(r.err, io.ErrUnexpectedEOF) {
		t.Fatalf("a read ended before the file: got %v", r.err)
	}
}

// readBytesFS counts the bytes that are read.
type readBytesFS struct {
	vfs.FS
	n *int64
}

type readBytesFile struct {
	vfs.File
	n *int64
}

func (f readBytesFS) Open(name string) (vfs.File, error) {
	file, err := f.FS.Open(name)
	return readBytesFile{file, f.n}, err
}

func (f readBytesFile) ReadAt(p []byte, off int64) (int, error) {
	*f.n += int64(len(p))
	return f.File.ReadAt(p, off)
}

func (f readBytesFile) NextData(off int64) (from, to int64, err error) {
	return vfs.NextData(f.File, off)
}

// TestReplayReadsWritten replays a short log in a segment that is mostly reserved space, as
// after a crash. It reads little more than what was written.
func TestReplayReadsWritten(t *testing.T) {
	race.SkipOneGoroutine(t)
	name := filepath.ToSlash(filepath.Join(t.TempDir(), "000007.wal"))
	const size = 64 << 20
	s, err := create(vfs.OS(), name, testHeader(), make([]byte, size), CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	appendRecord(s, Record{FirstSeq: testHeader().FirstSeq, Count: 1}, []byte(testPayload(1, 20<<20)))
	appendRecord(s, Record{FirstSeq: testHeader().FirstSeq + 1, Count: 1}, []byte(testPayload(2, 300)))
	if err := errors.Join(s.Sync(s.Tail()), s.Close()); err != nil {
		t.Fatal(err)
	}
	f, err := vfs.OS().Open(name)
	if err != nil {
		t.Fatal(err)
	}
	next, _, err := vfs.NextData(f, size/2)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	if next == size/2 {
		t.Skip("this file system does not know what was written")
	}
	var n int64
	o := testOptions()
	o.Image = make([]byte, size)
	before := int64(0)
	o.BeforeRead = func(end int64) {
		if end <= before || !isZero(o.Image[before:]) {
			t.Errorf("BeforeRead(%d) after %d, or the image was read before", end, before)
		}
		before = end
	}
	end, err := Replay(readBytesFS{vfs.OS(), &n}, name, o, func(v RecordView) error {
		if v.PayloadOff+int64(len(v.Payload)) > before {
			t.Errorf("BeforeRead was called up to %d, and a record ends at %d", before, v.PayloadOff+int64(len(v.Payload)))
		}
		return nil
	})
	if err != nil || end.Offset != s.Tail() {
		t.Fatalf("replay ends at %d, %v, want %d", end.Offset, err, s.Tail())
	}
	if most := s.Tail() + 4<<20; n > most {
		t.Errorf("replay of a log of %d bytes reads %d bytes, want %d at most", s.Tail(), n, most)
	}
}

// TestHugeFile reads a file larger than a segment can be.
func TestHugeFile(t *testing.T) {
	fsys := hugeFS{}
	if r := replayFS(fsys, testName, testOptions(), 8192); !errors.Is(r.err, corrupt.ErrCorrupt) {
		t.Fatalf("got %v", r.err)
	}
	if blank, err := Blank(fsys, testName); blank || err != nil {
		t.Fatalf("Blank: %v, %v", blank, err)
	}
}

type hugeFS struct{ vfs.FS }

func (hugeFS) Open(string) (vfs.File, error) { return hugeFile{}, nil }

type hugeFile struct{ bytesFile }

func (hugeFile) Size() (int64, error) { return MaxSegmentBytes + 1, nil }

// TestOverlappingRecords scans a file crafted to waste time: record headers with
// valid checks whose lengths reach to the end of the file.
func TestOverlappingRecords(t *testing.T) {
	data := make([]byte, 1<<20)
	appendHeader(data[:0:HeaderLen], testHeader())
	for off := int64(HeaderLen + RecordHeaderLen); off+RecordHeaderLen < int64(len(data)); off += RecordHeaderLen {
		encodeRecord(data[off:off+RecordHeaderLen], recordHeader{
			length: uint32(len(data)) - uint32(off) - RecordHeaderLen, number: 7, kind: kindData, syncedTo: HeaderLen,
		}, newSumSeed(testDB, 7).mask(off))
	}
	if r := replay(data, testOptions()); r.err == nil || !strings.Contains(r.err.Error(), "overlap") {
		t.Fatalf("got %v", r.err)
	}
}
