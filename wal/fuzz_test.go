package wal

import (
	"bytes"
	"errors"
	"testing"

	"github.com/tablerock-db/tablerock/internal/corrupt"
)

// FuzzReplay replays arbitrary files and compares the result with that of the slow
// reference reader. With sums, it first corrects the sums of header and records, so
// that the checks behind them run.
func FuzzReplay(f *testing.F) {
	l := makeLog(f, testHeader(), smallSteps)
	sealed := makeLog(f, testHeader(), goldenSteps)
	f.Add(l.data, int64(0), int64(0), uint64(0), false)
	f.Add(sealed.data, int64(0), l.synced, uint64(0), true)
	f.Add(l.data, int64(len(l.data)), int64(0), uint64(0), false)
	f.Add(l.data[:HeaderLen], int64(0), int64(8192), uint64(100), true)
	f.Add(append(bytes.Clone(l.data[:l.records[2].End]), sealed.data[l.records[2].End:]...), int64(0), int64(0), uint64(0), false)
	f.Add(l.data[:l.records[1].End], int64(0), int64(1), uint64(103), false)
	renumbered := bytes.Clone(l.data)
	renumbered[39] = 0x20 // above MaxNumber
	f.Add(renumbered, int64(0), int64(0), uint64(0), true)
	f.Add([]byte{}, int64(-8), int64(-8), uint64(1), false)
	f.Fuzz(func(t *testing.T, data []byte, sealed, proven int64, nextSeq uint64, sums bool) {
		if sums {
			data = fixSums(data)
		}
		o := ReplayOptions{DBID: testDB, Number: 7, Sealed: sealed, Proven: proven, NextSeq: nextSeq}
		r, ref := replay(data, o), refReplay(data, o)
		if got := class(r.err); got != ref.class {
			t.Fatalf("got %q (%v), the reference reader %q", got, r.err, ref.class)
		}
		if r.err != nil {
			return
		}
		if r.end.Offset != ref.offset || r.end.Proven != ref.proven || r.end.LastSeq != ref.lastSeq ||
			!isPrefix(r.records, ref.records) || len(r.records) != len(ref.records) {
			t.Fatalf("got %+v with %d records, the reference reader %+v", r.end, len(r.records), ref)
		}
		checkImage(t, r, data)
		// ReplayDurable returns this log up to the proven offset.
		want := o
		if o.Sealed == 0 && o.NextSeq == 0 {
			want.Sealed = max(r.end.Proven, HeaderLen)
		}
		d, w := replayDurable(bytesFS{data: data}, o, len(data)), replay(data, want)
		if class(d.err) != class(w.err) || d.end != w.end || !isPrefix(d.records, r.records) {
			t.Fatalf("beside a writer: got %+v and %v, want %+v and %v", d.end, d.err, w.end, w.err)
		}
		// Replaying with the end in Sealed gives the same log.
		o = ReplayOptions{DBID: testDB, Number: 7, Sealed: r.end.Offset}
		if again := replay(data, o); again.err != nil || len(again.records) != len(r.records) {
			t.Fatalf("sealed at %d: got %d records and %v, want %d", r.end.Offset, len(again.records), again.err, len(r.records))
		}
	})
}

func class(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, ErrNewerFormat):
		return "newer"
	case errors.Is(err, ErrUnfinished):
		return "unfinished"
	case errors.Is(err, ErrChanged):
		return "changed"
	case errors.Is(err, corrupt.ErrCorrupt):
		return "corrupt"
	}
	return "other: " + err.Error()
}

// fixSums returns data with the sums of the header and of each record corrected.
// The lengths of the records lead from one to the next.
func fixSums(data []byte) []byte {
	data = bytes.Clone(data)
	if len(data) < HeaderLen {
		return data
	}
	fixHeaderSum(data)
	for off := int64(HeaderLen); off+RecordHeaderLen <= int64(len(data)); {
		end := off + recordBytes(int64(decodeRecordHeader(data[off:]).length))
		if end > int64(len(data)) {
			break
		}
		fixRecordSums(data, off, end)
		off = end
	}
	return data
}
