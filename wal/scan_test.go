package wal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

// partsFile reports written parts whose limits are multiples of a number of bytes.
type partsFile struct {
	bytesFile
	unit int64
}

func (f partsFile) NextData(off int64) (from, to int64, err error) {
	from, to, err = f.bytesFile.NextData(off)
	n := int64(len(f.data))
	return max(off, from/f.unit*f.unit), min(n, (to+f.unit-1)/f.unit*f.unit), err
}

// TestScanParts compares scans of the written parts of files with scans of the whole files.
func TestScanParts(t *testing.T) {
	const seeds = 3000
	for seed := range uint64(seeds) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		size := HeaderLen + 100 + rnd.IntN(6000)
		sums := newSumSeed(testDB, 7)
		data := make([]byte, size)
		for range rnd.IntN(80) {
			n := rnd.IntN(40)
			length := int(recordBytes(int64(n)))
			off := HeaderLen + rnd.IntN(size-HeaderLen-length+1)/align*align
			rec := make([]byte, length)
			for i := RecordHeaderLen; i < length && rnd.IntN(20) > 0; i++ {
				rec[i] = byte(rnd.Uint32())
			}
			h := recordHeader{length: uint32(n), number: 7, kind: kindData, count: 1, syncedTo: uint32(HeaderLen + rnd.IntN(off-HeaderLen+1))}
			encodeRecord(rec, h, sums.mask(int64(off)))
			copy(data[off:], rec)
		}
		unit := []int64{1, 3, 8, 24, 40, 512, 4096}[rnd.IntN(7)]
		r := &reader{file: partsFile{bytesFile{data: data}, unit}, size: int64(size), dbid: testDB, number: 7, seed: sums}
		whole := *r
		whole.parts = []part{{HeaderLen, whole.size}}
		if err := r.findParts(0); err != nil {
			t.Fatal(err)
		}
		off, stop := HeaderLen+int64(rnd.IntN(size-HeaderLen)/align*align), rnd.IntN(3)
		if rnd.IntN(2) == 0 {
			off = HeaderLen
		}
		got, err := r.scan(off, stop)
		want, wantErr := whole.scan(off, stop)
		if got != want || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("seed %d: parts %v have %+v, %v; the file has %+v, %v", seed, r.parts, got, err, want, wantErr)
		}
	}
}

// TestImageShorterThanRecord replays beside a writer into images that the file outgrew.
func TestImageShorterThanRecord(t *testing.T) {
	l := makeLog(t, testHeader(), smallSteps)
	for _, n := range []int{0, HeaderLen - 1, HeaderLen, HeaderLen + 8, HeaderLen + RecordHeaderLen - 1} {
		o := testOptions()
		o.Image = make([]byte, n)
		end, err := ReplayDurable(bytesFS{data: l.data}, testName, o, func(RecordView) error { return nil })
		if n < HeaderLen && !errors.Is(err, ErrChanged) || n >= HeaderLen && (err != nil && !errors.Is(err, ErrChanged) || end.Offset > int64(n)) {
			t.Errorf("image of %d bytes: %+v, %v", n, end, err)
		}
	}
}
