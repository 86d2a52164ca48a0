package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

func TestRoundTrip(t *testing.T) {
	const seed = 1
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for round := range 200 {
		var steps []step
		for range 1 + rnd.IntN(30) {
			steps = append(steps, step{n: rnd.IntN(1 + rnd.IntN(2000)), sync: rnd.IntN(4) == 0, seal: rnd.IntN(10) == 0})
		}
		l := makeLog(t, testHeader(), steps)
		r := replay(l.data, testOptions())
		if r.err != nil {
			t.Fatalf("round %d: %v", round, r.err)
		}
		if diff := cmp.Diff(l.records, r.records); diff != "" {
			t.Fatalf("round %d: records (-want +got):\n%s", round, diff)
		}
		if info, err := Inspect(bytesFS{data: l.data}, testName, testDB, 7); err != nil || info.Header != testHeader() {
			t.Fatalf("round %d: header is %+v, %v, want %+v", round, info.Header, err, testHeader())
		}
		last := testHeader().FirstSeq - 1
		for _, rec := range l.records {
			last += uint64(rec.Count)
		}
		if r.end.Offset != int64(len(l.data)) || r.end.LastSeq != last || r.end.Records != len(l.records) || r.end.Torn || r.end.Proven > l.synced {
			t.Fatalf("round %d: end is %+v, want offset %d, sequence %d", round, r.end, len(l.data), last)
		}
		if s := steps[len(steps)-1]; s.seal && !s.sync && !r.end.Sealed {
			t.Fatalf("round %d: %+v does not end sealed", round, r.end)
		}
		checkImage(t, r, l.data)
	}
}

func TestBeginCommit(t *testing.T) {
	fsys := newMem(t)
	image := make([]byte, SegmentBytes(100))
	s, err := create(fsys, testName, testHeader(), image, CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.maxPayload(); got != 104 {
		t.Fatalf("the maximum payload is %d, want 104", got)
	}
	if _, _, ok := s.Begin(105); ok {
		t.Fatal("Begin accepted 105 bytes, the maximum payload is 104")
	}
	p, _, ok := s.Begin(90)
	if !ok || len(p) != 90 || cap(p) != 90 {
		t.Fatalf("Begin returned %d bytes of capacity %d, %v", len(p), cap(p), ok)
	}
	for i := range p {
		p[i] = 0xee
	}
	// The first Begin has no Commit; no byte of it may be in the second record.
	p, off, ok := s.Begin(3)
	if !ok || off != HeaderLen+RecordHeaderLen {
		t.Fatalf("Begin returned offset %d, %v", off, ok)
	}
	copy(p, "abc")
	s.Commit(Record{FirstSeq: 100, Count: 1})
	if s.Tail() != HeaderLen+RecordHeaderLen+8 || !isZero(image[off+3:s.Tail()]) {
		t.Fatalf("tail is %d, padding % x", s.Tail(), image[off+3:s.Tail()])
	}
	if _, ok := appendRecord(s, Record{FirstSeq: 101, Count: 1}, make([]byte, 100)); ok {
		t.Fatal("Append accepted a record that does not fit")
	}
	mustPanic(t, "Commit without Begin", func() { s.Commit(Record{FirstSeq: 101}) })
	mustPanic(t, "want 101", func() { appendRecord(s, Record{FirstSeq: 102}, nil) })
	mustPanic(t, "last record ends", func() { _ = s.Write(s.Tail() + 8) })
	if err := s.Seal(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(s.Tail()); err == nil {
		t.Fatal("Sync of a closed segment returned nil")
	}
	r := replayFS(fsys, testName, testOptions(), len(readFile(t, fsys, testName)))
	if r.err != nil || len(r.records) != 1 || r.records[0].Payload != "abc" {
		t.Fatalf("got %+v, %v", r.records, r.err)
	}
}

// TestSyncDuringAppend appends during writes and syncs: a sync covers only the
// records that were written before it.
func TestSyncDuringAppend(t *testing.T) {
	var s *Segment
	seq := uint64(100)
	appendOne := func() {
		appendRecord(s, Record{FirstSeq: seq, Count: 1}, []byte("record"))
		seq++
	}
	fsys := failing(newMem(t), func(o vfs.Op) error {
		if s != nil && (o.Kind == "write" || o.Kind == "sync") {
			appendOne()
		}
		return nil
	})
	created, err := create(fsys, testName, testHeader(), make([]byte, 1<<16), CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s = created
	for range 5 {
		appendOne()
		upto := s.Tail()
		if err := s.Sync(upto); err != nil {
			t.Fatal(err)
		}
		if s.Synced() != upto || s.Tail() == upto {
			t.Fatalf("synced %d of %d, want %d", s.Synced(), s.Tail(), upto)
		}
	}
	// A sync covers everything that was written before it.
	first := s.Tail()
	appendOne()
	written := s.Tail()
	if err := s.Write(written); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(first); err != nil || s.Synced() != written {
		t.Fatalf("synced %d, %v, want %d", s.Synced(), err, written)
	}
}

func TestCloseFails(t *testing.T) {
	fsys := failing(newMem(t), func(o vfs.Op) error {
		if o.Kind == "close" {
			return syscall.EIO
		}
		return nil
	})
	s, err := create(fsys, testName, testHeader(), make([]byte, 1<<16), CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("Close returned %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatalf("the second Close returned %v", err)
	}
}

// TestAppendBeforeOpen appends to a segment without a file.
func TestAppendBeforeOpen(t *testing.T) {
	fsys := newMem(t)
	s, err := New(testHeader(), make([]byte, 1<<16))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, ok := appendRecord(s, Record{FirstSeq: 100 + uint64(i), Count: 1}, []byte(testPayload(i, 50))); !ok {
			t.Fatal("segment is full")
		}
	}
	if s.AppendSeal() || s.Synced() != HeaderLen {
		t.Fatalf("records without a file count as synced up to %d", s.Synced())
	}
	mustPanic(t, "before Open", func() { _ = s.Write(s.Tail()) })
	if err := s.Open(fsys, testName, CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if r := replayFS(fsys, testName, testOptions(), 1<<16); r.err != nil || len(r.records) != 0 {
		t.Fatalf("before the first Write: %d records, %v", len(r.records), r.err)
	}
	if err := errors.Join(s.Seal(), s.Close()); err != nil {
		t.Fatal(err)
	}
	if r := replayFS(fsys, testName, testOptions(), 1<<16); r.err != nil || len(r.records) != 3 || !r.end.Sealed {
		t.Fatalf("got %d records, %+v, %v", len(r.records), r.end, r.err)
	}
	again, err := New(testHeader(), make([]byte, 1<<16))
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Open(fsys, testName, CreateOptions{}); !errors.Is(err, fs.ErrExist) {
		t.Fatalf("Open over a file: %v", err)
	}
	appendRecord(again, Record{FirstSeq: 100, Count: 1})
	if err := again.Sync(again.Tail()); !errors.Is(err, fs.ErrExist) || again.Close() != nil {
		t.Fatalf("after a failed Open: %v", err)
	}
}

func mustPanic(t *testing.T, want string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
			t.Fatalf("panic is %q, want %q", got, want)
		}
	}()
	f()
}

// TestFullSegment fills segments of many capacities to the last byte; a seal always
// fits behind the records.
func TestFullSegment(t *testing.T) {
	for capacity := SegmentBytes(0); capacity < SegmentBytes(0)+1200; capacity++ {
		fsys := newMem(t)
		s, err := create(fsys, testName, testHeader(), make([]byte, capacity), CreateOptions{NoPreallocate: true})
		if err != nil {
			t.Fatal(err)
		}
		seq := uint64(100)
		for n := int64(56); s.maxPayload() >= 0; n += 16 {
			if _, ok := appendRecord(s, Record{FirstSeq: seq, Count: 1}, make([]byte, min(n, s.maxPayload()))); !ok {
				t.Fatalf("capacity %d: record of %d bytes does not fit, the maximum payload is %d", capacity, min(n, s.maxPayload()), s.maxPayload())
			}
			seq++
			if seq%3 == 0 {
				if err := s.Seal(); err != nil {
					t.Fatalf("capacity %d: %v", capacity, err)
				}
			}
		}
		if err := s.Seal(); err != nil {
			t.Fatalf("capacity %d: %v", capacity, err)
		}
		data := readFile(t, fsys, testName)
		r := replay(data, testOptions())
		if r.err != nil || !r.end.Sealed || r.end.LastSeq != seq-1 || int64(len(data)) > capacity {
			t.Fatalf("capacity %d: got %+v, %v, want sequence %d", capacity, r.end, r.err, seq-1)
		}
	}
}

func TestSeal(t *testing.T) {
	fsys := newMem(t)
	s, err := create(fsys, testName, testHeader(), make([]byte, 1<<16), CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	appendRecord(s, Record{FirstSeq: 100, Count: 1}, []byte("x"))
	if s.AppendSeal() {
		t.Fatal("a seal was appended behind a record that is not synced")
	}
	if err := s.Sync(s.Tail()); err != nil {
		t.Fatal(err)
	}
	before := s.Tail()
	if !s.AppendSeal() || s.Tail() == before {
		t.Fatal("no seal was appended behind a synced record")
	}
	sealed := s.Tail()
	if !s.AppendSeal() || s.Tail() != sealed {
		t.Fatal("a second seal was appended behind a seal")
	}
	if err := s.Seal(); err != nil || s.Tail() != sealed || s.Synced() != sealed {
		t.Fatalf("Seal behind a seal: %v, tail %d, synced %d, want %d", err, s.Tail(), s.Synced(), sealed)
	}
	if (sealed-RecordHeaderLen)%sealSector != 0 {
		t.Fatalf("the second record of the seal is at %d", sealed-RecordHeaderLen)
	}
	appendRecord(s, Record{FirstSeq: 101, Count: 1}, []byte("y"))
	if err := s.Sync(s.Tail()); err != nil {
		t.Fatal(err)
	}
	r := replayFS(fsys, testName, testOptions(), 1<<18)
	if r.err != nil || r.end.Sealed || r.end.Records != 2 || r.end.Proven != sealed {
		t.Fatalf("got %+v, %v", r.end, r.err)
	}
}

// TestGrowth checks the preallocations of a segment with a new file.
func TestGrowth(t *testing.T) {
	type preallocation struct{ off, n int64 }
	for _, c := range []struct {
		name     string
		capacity int64
		full     int64 // fail preallocations of more bytes, 0 for none
		space    int64 // of the disk, 0 for no limit
		want     []preallocation
	}{
		{"small", 64 << 10, 0, 0, []preallocation{{0, 64 << 10}}},
		{"large", 5 << 20, 0, 0, []preallocation{{0, 256 << 10}, {256 << 10, 768 << 10}, {1 << 20, 3 << 20}, {4 << 20, 1 << 20}}},
		{"little space", 5 << 20, 1 << 20, 0, []preallocation{{0, 256 << 10}, {256 << 10, 768 << 10}, {1 << 20, 3 << 20}, {1 << 20, 12 << 10}}},
		{"nearly full disk", 5 << 20, 0, 300 << 10, []preallocation{{0, 4 << 10}, {4 << 10, 12 << 10}, {16 << 10, 8 << 10}}},
		{"full disk", 5 << 20, 1, 0, []preallocation{{0, 256 << 10}, {0, 4 << 10}, {0, 256 << 10}, {0, 16 << 10}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []preallocation
			mem := newMem(t).(*vfs.Mem)
			mem.SetCapacity(c.space)
			fsys := failing(mem, func(o vfs.Op) error {
				if o.Kind != "preallocate" {
					return nil
				}
				got = append(got, preallocation{o.Off, o.Len})
				if c.full > 0 && o.Len > c.full {
					return syscall.ENOSPC
				}
				return nil
			})
			s, err := create(fsys, testName, testHeader(), make([]byte, c.capacity), CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			payload := make([]byte, 10_000)
			for seq := uint64(100); ; seq++ {
				if _, ok := appendRecord(s, Record{FirstSeq: seq, Count: 1}, payload); !ok || len(got) >= len(c.want) {
					break
				}
				if err := s.Write(s.Tail()); err != nil {
					t.Fatal(err)
				}
			}
			if len(got) < len(c.want) || !slices.Equal(got[:len(c.want)], c.want) {
				t.Fatalf("preallocated %v, want %v", got, c.want)
			}
		})
	}
}

// TestFailureIsFinal fails each operation of a segment's file once: all later calls
// return the failure, and synced records are not lost.
func TestFailureIsFinal(t *testing.T) {
	boom := fmt.Errorf("disk: %w", syscall.EIO)
	for at := 1; ; at++ {
		n := 0
		var failed string
		mem := newMem(t)
		fsys := failing(mem, func(o vfs.Op) error {
			if o.Kind == "space" {
				return nil // the segment does without it
			}
			if n++; n == at {
				failed = o.Kind
				return boom
			}
			return nil
		})
		s, err := create(fsys, testName, testHeader(), make([]byte, 1<<20), CreateOptions{})
		if failed != "" {
			if !errors.Is(err, syscall.EIO) {
				t.Fatalf("operation %d, %v: Create returned %v", at, failed, err)
			}
			if names, err := mem.List("db"); err != nil || len(names) != 0 {
				t.Fatalf("operation %d, %v: Create left %v, %v", at, failed, names, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var first error
		acked := 0
		for seq := uint64(100); seq < 110; seq++ {
			appendRecord(s, Record{FirstSeq: seq, Count: 1}, make([]byte, 60_000))
			was := s.Synced()
			err := s.Sync(s.Tail())
			switch {
			case first == nil && err == nil:
				acked++
			case first == nil:
				first = err
				if !errors.Is(err, syscall.EIO) || s.Synced() != was {
					t.Fatalf("operation %d, %v: Sync returned %v, synced %d, want %d", at, failed, err, s.Synced(), was)
				}
			case err != first || s.Write(s.Tail()) != first || s.Seal() != first || s.Sync(0) != first:
				t.Fatalf("operation %d, %v: got %v first, then %v", at, failed, first, err)
			}
		}
		if first == nil {
			if failed != "" {
				t.Fatalf("operation %d, %v: no call returned its failure", at, failed)
			}
			return
		}
		r := replayFS(mem, testName, testOptions(), 1<<20)
		if r.err != nil || len(r.records) < acked {
			t.Fatalf("operation %d, %v: %d of %d records, %v", at, failed, len(r.records), acked, r.err)
		}
	}
}

// TestConcurrentAppend appends from many goroutines while one leader at a time
// writes and syncs, like the engine.
func TestConcurrentAppend(t *testing.T) {
	fsys := newMem(t)
	s, err := create(fsys, testName, testHeader(), make([]byte, 1<<20), CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var log, leader sync.Mutex
	seq := uint64(100)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 200 {
				log.Lock()
				off, ok := appendRecord(s, Record{FirstSeq: seq, Count: 1}, []byte{byte(w)}, bytes.Repeat([]byte{byte(i)}, i))
				seq++
				tail := s.Tail()
				log.Unlock()
				if !ok {
					t.Error("segment is full")
					return
				}
				leader.Lock()
				err := s.Sync(tail)
				leader.Unlock()
				if err != nil || s.Synced() < tail {
					t.Errorf("Sync: %v, synced %d, want %d", err, s.Synced(), tail)
				}
				if s.image[off] != byte(w) {
					t.Errorf("image at %d is %d, want %d", off, s.image[off], w)
				}
			}
		})
	}
	wg.Wait()
	r := replayFS(fsys, testName, testOptions(), 1<<20)
	if r.err != nil || len(r.records) != 800 {
		t.Fatalf("%d records, %v, want 800", len(r.records), r.err)
	}
}

// TestZerosFail fails the writes of zeros behind the records. On a full disk the records are durable all the same, as where the file
// system writes preallocated space anew. Any other error is one of the sync.
func TestZerosFail(t *testing.T) {
	for _, c := range []struct{ cause, want error }{
		{syscall.ENOSPC, nil},
		{syscall.EDQUOT, nil},
		{syscall.EIO, syscall.EIO},
	} {
		mem := newMem(t)
		fsys := errorfs.Wrap(mem, nil)
		s, err := create(fsys, testName, testHeader(), make([]byte, 1<<20), CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, ok := appendRecord(s, Record{FirstSeq: 100, Count: 1}, bytes.Repeat([]byte("r"), 5000))
		if !ok {
			t.Fatal("the record does not fit")
		}
		failed := 0
		fsys.SetRule(func(op vfs.Op) *errorfs.Fault {
			if op.Kind != "write" || op.Off < s.Tail() {
				return nil
			}
			failed++
			return &errorfs.Fault{Err: c.cause}
		})
		if err := s.Sync(s.Tail()); !errors.Is(err, c.want) || failed != 1 {
			t.Errorf("%v: Sync: %v after %d writes of zeros, want %v after one", c.cause, err, failed, c.want)
		}
		if synced := s.Synced() == s.Tail(); synced != (c.want == nil) {
			t.Errorf("%v: synced %t", c.cause, synced)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
