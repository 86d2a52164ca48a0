package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"testing"

	"github.com/tablerock-db/tablerock/vfs"
)

const testName = "db/000007.wal"

var testDB = [16]byte{0xdb, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

func testHeader() Header {
	return Header{DBID: testDB, Number: 7, FirstSeq: 100, HighWater: 638_000_000_000_000_000, PrevEnd: 8192}
}

func testOptions() ReplayOptions { return ReplayOptions{DBID: testDB, Number: 7} }

// bytesFS is a file system with one read-only file.
type bytesFS struct {
	vfs.FS
	data []byte
}

func (b bytesFS) Open(string) (vfs.File, error) { return bytesFile{data: b.data}, nil }

type bytesFile struct {
	vfs.File
	data []byte
}

func (b bytesFile) Size() (int64, error) { return int64(len(b.data)), nil }
func (b bytesFile) Close() error         { return nil }
func (b bytesFile) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(b.data)) {
		return 0, io.EOF
	}
	n := copy(p, b.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// NextData says of each byte whether it is zero, more exactly than any disk.
func (b bytesFile) NextData(off int64) (from, to int64, err error) {
	n := int64(len(b.data))
	for from = off; from < n && b.data[from] == 0; from++ {
	}
	for to = from; to < n && b.data[to] != 0; to++ {
	}
	return from, to, nil
}

// logRecord is a record that a test appended or replayed.
type logRecord struct {
	FirstSeq uint64
	Count    uint16
	Flags    uint8
	Payload  string
	End      int64
}

// testLog is the file of a log and its records.
type testLog struct {
	data    []byte // the file
	records []logRecord
	synced  int64
}

// step is one step of a log: a record of n bytes, a sync or a seal.
type step struct {
	n    int
	sync bool
	seal bool
}

// makeLog writes a log and returns it. The image is not zeroed, like reused memory
// of an older segment.
func makeLog(tb testing.TB, h Header, steps []step) testLog {
	tb.Helper()
	fsys := newMem(tb)
	s, err := create(fsys, testName, h, bytes.Repeat([]byte{0xA5}, 1<<16), CreateOptions{NoPreallocate: true})
	if err != nil {
		tb.Fatalf("Create: %v", err)
	}
	var l testLog
	seq := h.FirstSeq
	for i, st := range steps {
		switch {
		case st.sync:
			err = s.Sync(s.Tail())
		case st.seal:
			err = s.Seal()
		default:
			r := logRecord{FirstSeq: seq, Count: uint16(1 + i%3), Flags: uint8(i), Payload: testPayload(i, st.n)}
			if _, ok := appendRecord(s, Record{FirstSeq: r.FirstSeq, Count: r.Count, Flags: r.Flags}, []byte(r.Payload)); !ok {
				tb.Fatalf("step %d: record of %d bytes does not fit", i, st.n)
			}
			r.End = s.Tail()
			l.records = append(l.records, r)
			seq += uint64(r.Count)
		}
		if err != nil {
			tb.Fatalf("step %d: %v", i, err)
		}
	}
	if err := s.Write(s.Tail()); err != nil {
		tb.Fatalf("Write: %v", err)
	}
	l.synced = s.Synced()
	l.data = readFile(tb, fsys, testName)
	if !bytes.Equal(l.data, s.image[:s.Tail()]) {
		tb.Fatalf("the file differs from the image")
	}
	if err := s.Close(); err != nil {
		tb.Fatalf("Close: %v", err)
	}
	return l
}

// testPayload returns n bytes that differ from record to record.
func testPayload(i, n int) string {
	b := make([]byte, n)
	for j := range b {
		b[j] = byte(1 + (i*31+j*7)%255)
	}
	return string(b)
}

func newMem(tb testing.TB) vfs.FS {
	tb.Helper()
	m := vfs.NewMem()
	if err := m.MkdirAll("db"); err != nil {
		tb.Fatalf("MkdirAll: %v", err)
	}
	return m
}

func readFile(tb testing.TB, fsys vfs.FS, name string) []byte {
	tb.Helper()
	f, err := fsys.Open(name)
	if err != nil {
		tb.Fatalf("Open: %v", err)
	}
	size, err := f.Size()
	if err != nil {
		tb.Fatalf("Size: %v", err)
	}
	b := make([]byte, size)
	if n, err := f.ReadAt(b, 0); n != len(b) {
		tb.Fatalf("ReadAt: %d of %d bytes, %v", n, len(b), err)
	}
	if err := f.Close(); err != nil {
		tb.Fatalf("Close: %v", err)
	}
	return b
}

func writeFile(tb testing.TB, fsys vfs.FS, name string, b []byte) {
	tb.Helper()
	if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		tb.Fatalf("Remove: %v", err)
	}
	f, err := fsys.Create(name)
	if err != nil {
		tb.Fatalf("Create: %v", err)
	}
	if _, err := f.WriteAt(b, 0); err != nil {
		tb.Fatalf("WriteAt: %v", err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		tb.Fatalf("close: %v", err)
	}
}

// replayed is the result of Replay.
type replayed struct {
	end     End
	records []logRecord
	image   []byte
	err     error
}

func replay(data []byte, o ReplayOptions) replayed {
	return replayFS(bytesFS{data: data}, testName, o, len(data))
}

func replayFS(fsys vfs.FS, name string, o ReplayOptions, n int) replayed {
	r := replayed{image: make([]byte, n)}
	o.Image = r.image
	r.end, r.err = Replay(fsys, name, o, r.add)
	return r
}

func (r *replayed) add(v RecordView) error {
	if !bytes.Equal(v.Payload, r.image[v.PayloadOff:v.PayloadOff+int64(len(v.Payload))]) {
		return fmt.Errorf("payload at %d differs from the image", v.PayloadOff)
	}
	r.records = append(r.records, logRecord{
		FirstSeq: v.FirstSeq, Count: v.Count, Flags: v.Flags, Payload: string(v.Payload),
		End: v.PayloadOff - RecordHeaderLen + recordBytes(int64(len(v.Payload))),
	})
	return nil
}

// isPrefix reports whether got is a prefix of want.
func isPrefix(got, want []logRecord) bool {
	if len(got) > len(want) {
		return false
	}
	for i := range got {
		if got[i] != want[i] {
			return false
		}
	}
	return true
}

// checkImage verifies that the image holds the log and then zeros.
func checkImage(tb testing.TB, r replayed, data []byte) {
	tb.Helper()
	end := int(r.end.Offset)
	if r.err != nil {
		return
	}
	if !bytes.Equal(r.image[:end], data[:end]) {
		tb.Fatalf("image differs from the file below the end, %d", end)
	}
	if !isZero(r.image[end:]) {
		tb.Fatalf("image is not zero behind the end, %d", end)
	}
}

// create returns a new segment with its file.
func create(fsys vfs.FS, path string, h Header, image []byte, o CreateOptions) (*Segment, error) {
	s, err := New(h, image)
	if err != nil {
		return nil, err
	}
	if err := s.Open(fsys, path, o); err != nil {
		return nil, err
	}
	return s, nil
}

// appendRecord appends a record whose payload is the concatenation of chunks, and
// returns the offset of the payload.
func appendRecord(s *Segment, r Record, chunks ...[]byte) (off int64, ok bool) {
	payload := bytes.Join(chunks, nil)
	dst, off, ok := s.Begin(len(payload))
	if !ok {
		return 0, false
	}
	copy(dst, payload)
	s.Commit(r)
	return off, true
}
