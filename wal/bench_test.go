package wal

import (
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/vfs"
)

// BenchmarkAppend appends records to memory, as under the log mutex.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{100, 300, 4000} {
		b.Run(fmt.Sprintf("payload=%d", n), func(b *testing.B) {
			image := make([]byte, 64<<20)
			h := testHeader()
			payload := []byte(testPayload(1, n))
			s, err := New(h, image)
			if err != nil {
				b.Fatal(err)
			}
			seq := h.FirstSeq
			b.SetBytes(recordBytes(int64(n)))
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := appendRecord(s, Record{FirstSeq: seq, Count: 1}, payload); !ok {
					s = newSegment(h, image)
					seq = h.FirstSeq
					continue
				}
				seq++
			}
		})
	}
}

// BenchmarkSync syncs each record to a new file on the disk.
func BenchmarkSync(b *testing.B) {
	for _, n := range []int{300, 21_000} {
		b.Run(fmt.Sprintf("payload=%d", n), func(b *testing.B) {
			image := make([]byte, 64<<20)
			payload := []byte(testPayload(1, n))
			files := 0
			var s *Segment
			next := func() {
				if s != nil {
					s.Close()
				}
				files++
				var err error
				if s, err = create(vfs.OS(), fmt.Sprintf("%s/%d", b.TempDir(), files), testHeader(), image, CreateOptions{}); err != nil {
					b.Fatal(err)
				}
			}
			next()
			seq := testHeader().FirstSeq
			b.SetBytes(recordBytes(int64(n)))
			for b.Loop() {
				if s.maxPayload() < int64(n) {
					b.StopTimer()
					next()
					seq = testHeader().FirstSeq
					b.StartTimer()
				}
				appendRecord(s, Record{FirstSeq: seq, Count: 1}, payload)
				seq++
				if err := s.Sync(s.Tail()); err != nil {
					b.Fatal(err)
				}
			}
			s.Close()
		})
	}
}

// BenchmarkReplay reads a segment that holds records of 300 bytes.
func BenchmarkReplay(b *testing.B) {
	mem := vfs.NewMem()
	image := make([]byte, 16<<20)
	s, err := create(mem, "segment", testHeader(), image, CreateOptions{NoPreallocate: true})
	if err != nil {
		b.Fatal(err)
	}
	payload := []byte(testPayload(1, 300))
	seq := testHeader().FirstSeq
	for ; s.maxPayload() >= 300; seq++ {
		appendRecord(s, Record{FirstSeq: seq, Count: 1}, payload)
	}
	if err := s.Seal(); err != nil {
		b.Fatal(err)
	}
	data := bytesFS{data: image[:s.Tail()]}
	b.SetBytes(s.Tail())
	o := testOptions()
	o.Image = make([]byte, s.Tail())
	for b.Loop() {
		end, err := Replay(data, "segment", o, func(RecordView) error { return nil })
		if err != nil || end.LastSeq != seq-1 {
			b.Fatalf("%+v, %v", end, err)
		}
	}
}

// allDataFS does not know which parts of its file were written.
type allDataFS struct{ bytesFS }

func (a allDataFS) Open(name string) (vfs.File, error) {
	f, err := a.bytesFS.Open(name)
	return struct{ vfs.File }{f}, err
}

// BenchmarkScan searches for records behind a short log in a large segment: the cost
// of opening after a crash beyond the log itself, where all of the segment was written.
func BenchmarkScan(b *testing.B) {
	for _, name := range []string{"zeros", "stale"} {
		b.Run("rest="+name, func(b *testing.B) {
			data := make([]byte, 16<<20)
			if name == "stale" {
				for i := range data {
					data[i] = byte(i * 7)
				}
			}
			appendHeader(data[:0:HeaderLen], testHeader())
			b.SetBytes(int64(len(data)))
			o := testOptions()
			o.Image = make([]byte, len(data))
			for b.Loop() {
				if _, err := Replay(allDataFS{bytesFS{data: data}}, "segment", o, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
