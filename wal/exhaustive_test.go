package wal

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/race"
)

// smallSteps makes six records. Four are synced, and later records prove that.
var smallSteps = []step{{n: 17}, {n: 0}, {sync: true}, {n: 60}, {n: 8}, {sync: true}, {n: 33}, {n: 25}}

// checkDamaged replays a damaged file. The result must be a prefix of the log, with
// an error if it does not reach must, the end of the durable records.
func checkDamaged(t *testing.T, what string, l testLog, data []byte, o ReplayOptions, must int64) replayed {
	t.Helper()
	r := replay(data, o)
	if !isPrefix(r.records, l.records) {
		t.Fatalf("%s: got %+v, want a prefix of %+v", what, r.records, l.records)
	}
	if r.err != nil {
		if !errors.Is(r.err, corrupt.ErrCorrupt) {
			t.Fatalf("%s: error is %v, want a corrupt.Error", what, r.err)
		}
		return r
	}
	if r.end.Offset < must {
		t.Fatalf("%s: log ends at %d without an error, want at least %d", what, r.end.Offset, must)
	}
	checkImage(t, r, data)
	ref := refReplay(data, o)
	if ref.class != "" || ref.offset != r.end.Offset || ref.proven != r.end.Proven {
		t.Fatalf("%s: got %+v, the reference reader %+v", what, r.end, ref)
	}
	return r
}

func TestTruncatedAtEveryByte(t *testing.T) {
	l := makeLog(t, testHeader(), smallSteps)
	for n := 0; n <= len(l.data); n++ {
		cut := l.data[:n]
		// Without options, the whole records decide.
		whole := 0
		for whole < len(l.records) && l.records[whole].End <= int64(n) {
			whole++
		}
		r := checkDamaged(t, fmt.Sprintf("cut at %d", n), l, cut, testOptions(), 0)
		if n < HeaderLen {
			if !errors.Is(r.err, ErrUnfinished) {
				t.Fatalf("cut at %d: got %v, want ErrUnfinished", n, r.err)
			}
			continue
		}
		if r.err != nil || len(r.records) != whole {
			t.Fatalf("cut at %d: got %d records and %v, want %d", n, len(r.records), r.err, whole)
		}
		// Proven bytes must be in the file.
		o := testOptions()
		o.Proven = l.synced
		r = checkDamaged(t, fmt.Sprintf("cut at %d, proven", n), l, cut, o, l.synced)
		if (r.err != nil) != (int64(n) < l.synced) {
			t.Fatalf("cut at %d with %d proven: got %v", n, l.synced, r.err)
		}
		o = testOptions()
		o.Sealed = int64(len(l.data))
		if r = checkDamaged(t, fmt.Sprintf("cut at %d, sealed", n), l, cut, o, o.Sealed); (r.err != nil) != (n < len(l.data)) {
			t.Fatalf("cut at %d, sealed: got %v", n, r.err)
		}
	}
}

func TestFlipEveryBit(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"live", smallSteps},
		{"sealed", append(smallSteps[:len(smallSteps):len(smallSteps)], step{seal: true})},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := makeLog(t, testHeader(), c.steps)
			last := l.records[len(l.records)-1].End
			data := bytes.Clone(l.data)
			stride := 1
			if testing.Short() {
				stride = 9
			}
			for bit := 0; bit < len(data)*8; bit += stride {
				pos := int64(bit / 8)
				data[pos] ^= 1 << (bit % 8)
				r := checkDamaged(t, fmt.Sprintf("bit %d of byte %d", bit%8, pos), l, data, testOptions(), l.provenTo(c.name))
				data[pos] ^= 1 << (bit % 8)
				// Damage below the proven end must be an error with its offset.
				if pos < l.provenTo(c.name) {
					var ce *corrupt.Error
					if !errors.As(r.err, &ce) || ce.File != "000007.wal" || ce.Offset > pos {
						t.Fatalf("byte %d: got %v, want damage at or before it", pos, r.err)
					}
					continue
				}
				if r.err != nil {
					t.Fatalf("byte %d: got %v, want a torn tail", pos, r.err)
				}
				if pos >= last && len(r.records) != len(l.records) {
					t.Fatalf("byte %d of the seal: got %d records, want all", pos, len(r.records))
				}
			}
		})
	}
}

// provenTo returns the end of the records that stay proven after any single fault.
func (l testLog) provenTo(name string) int64 {
	if name == "sealed" {
		return l.records[len(l.records)-1].End
	}
	return l.records[3].End
}

// TestReplaceEverySector damages a sealed log sector by sector: no sector holds both
// the end of the data and all that proves it.
func TestReplaceEverySector(t *testing.T) {
	for extra := range 80 {
		steps := append(smallSteps[:len(smallSteps):len(smallSteps)], step{n: 300 + 8*extra}, step{seal: true})
		l := makeLog(t, testHeader(), steps)
		last := l.records[len(l.records)-1].End
		for at := 0; at < len(l.data); at += sealSector {
			for name, with := range replacements(l.data, at) {
				data := bytes.Clone(l.data)
				if copy(data[at:min(at+sealSector, len(data))], with); bytes.Equal(data, l.data) {
					continue
				}
				what := fmt.Sprintf("payload %d, sector at %d: %s", 300+8*extra, at, name)
				r := checkDamaged(t, what, l, data, testOptions(), last)
				if r.err == nil && int64(at) < last && !bytes.Equal(data[:last], l.data[:last]) {
					t.Fatalf("%s: got no error", what)
				}
			}
		}
	}
}

func replacements(data []byte, at int) map[string][]byte {
	other := (at + 5*sealSector) % (len(data) - sealSector)
	return map[string][]byte{
		"zeros":  make([]byte, sealSector),
		"ones":   bytes.Repeat([]byte{0xff}, sealSector),
		"noise":  []byte(testPayload(at, sealSector)),
		"sector": data[other/sealSector*sealSector:][:sealSector],
	}
}

// TestEverySectorSubset loses every subset of the sectors of the last group, which
// no sync has covered. The lost sectors hold zeros, garbage or an older segment.
func TestEverySectorSubset(t *testing.T) {
	steps := []step{{n: 100}, {n: 300}, {sync: true}, {n: 20}, {sync: true}, {n: 700}, {n: 40}, {n: 1900}, {n: 1200}}
	l := makeLog(t, testHeader(), steps)
	old := testHeader()
	old.Number = 3
	stale := makeLog(t, old, []step{{n: 100}, {n: 300}, {sync: true}, {n: 20}, {n: 700}, {n: 999}, {sync: true}, {n: 3000}})
	fills := map[string][]byte{
		"nothing": nil,
		"zeros":   make([]byte, len(l.data)),
		"garbage": []byte(testPayload(5, len(l.data))),
		"stale":   stale.data,
	}
	first := int(l.synced) / sealSector
	n := (len(l.data)+sealSector-1)/sealSector - first
	if n > 10 || n < 7 {
		t.Fatalf("%d sectors in the last group, want 7 to 10", n)
	}
	complete := 0
	for name, under := range fills {
		for subset := range 1 << n {
			data := bytes.Clone(under)
			if len(data) < int(l.synced) {
				data = make([]byte, l.synced)
			}
			copy(data, l.data[:l.synced])
			for i := range n {
				if subset>>i&1 == 0 {
					continue
				}
				from := max((first+i)*sealSector, int(l.synced))
				to := min((first+i+1)*sealSector, len(l.data))
				if len(data) < to {
					data = append(data, make([]byte, to-len(data))...)
				}
				copy(data[from:to], l.data[from:to])
			}
			r := checkDamaged(t, fmt.Sprintf("%s, sectors %b", name, subset), l, data, testOptions(), l.synced)
			if r.err != nil {
				t.Fatalf("%s, sectors %b: got %v, want a torn tail", name, subset, r.err)
			}
			if len(r.records) == len(l.records) {
				complete++
			}
		}
	}
	if complete == 0 {
		t.Fatal("no state was complete")
	}
}

// TestProofAtEveryOffset damages a record that only the next record proves. The next
// record is at every offset, also across the windows of a scan.
func TestProofAtEveryOffset(t *testing.T) {
	race.SkipOneGoroutine(t)
	var sizes []int
	for n := 0; n <= 128; n += align {
		sizes = append(sizes, n)
	}
	for n := scanChunk - 300; n < scanChunk+64; n += align {
		sizes = append(sizes, n)
	}
	for _, n := range sizes {
		for _, m := range []int{0, 100, 2 * scanChunk} {
			if n > 128 && m > 100 {
				continue
			}
			data := make([]byte, SegmentBytes(n)+SegmentBytes(m))
			s, err := New(testHeader(), data)
			if err != nil {
				t.Fatal(err)
			}
			appendRecord(s, Record{FirstSeq: 100, Count: 1}, make([]byte, n))
			s.synced.Store(s.Tail())
			if _, ok := appendRecord(s, Record{FirstSeq: 101, Count: 1}, []byte(testPayload(1, m))); !ok {
				t.Fatalf("payloads of %d and %d bytes do not fit", n, m)
			}
			data = data[:s.Tail()]
			data[HeaderLen] ^= 1
			r := replay(data, testOptions())
			if !errors.Is(r.err, corrupt.ErrCorrupt) || len(r.records) != 0 {
				t.Fatalf("payloads of %d and %d bytes: got %+v, %v", n, m, r.end, r.err)
			}
		}
	}
}

// TestReusedFileAtEveryOffset writes logs of every length over an older, longer one
// whose records have the same offsets.
func TestReusedFileAtEveryOffset(t *testing.T) {
	old := testHeader()
	old.Number = 6
	steps := []step{{n: 17}, {n: 40}, {n: 0}, {sync: true}, {n: 60}, {n: 8}, {sync: true}, {n: 33}, {n: 25}, {n: 90}}
	stale := makeLog(t, old, steps)
	l := makeLog(t, testHeader(), steps)
	for i, keep := 0, int64(HeaderLen); ; i++ {
		data := append(bytes.Clone(l.data[:keep]), stale.data[keep:]...)
		r := checkDamaged(t, fmt.Sprintf("%d records", i), l, data, testOptions(), keep)
		if r.err != nil || r.end.Offset != keep || len(r.records) != i || r.end.Torn {
			t.Fatalf("%d records over an older log: got %+v and %v", i, r.end, r.err)
		}
		if i == len(l.records) {
			break
		}
		keep = l.records[i].End
	}
	// Replay recognizes an older record only by an undamaged header.
	data := append(bytes.Clone(l.data[:HeaderLen]), stale.data[HeaderLen:]...)
	for i := 8; i < RecordHeaderLen; i++ {
		data[HeaderLen+i] ^= 0x20
		r := checkDamaged(t, "damaged older record", l, data, testOptions(), 0)
		if r.err != nil || !r.end.Torn {
			t.Fatalf("byte %d of an older record damaged: got %+v and %v", i, r.end, r.err)
		}
		data[HeaderLen+i] ^= 0x20
	}
	// The rest of a partly overwritten older record is not a record.
	for keep := int64(HeaderLen); keep < int64(len(l.data)); keep += align {
		data := append(bytes.Clone(l.data[:keep]), stale.data[keep:]...)
		checkDamaged(t, fmt.Sprintf("cut at %d over an older log", keep), l, data, testOptions(), 0)
	}
}
