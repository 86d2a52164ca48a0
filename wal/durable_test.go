package wal

import (
	"bytes"
	"errors"
	"testing"

	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/vfs"
)

func replayDurable(fsys vfs.FS, o ReplayOptions, n int) replayed {
	r := replayed{image: make([]byte, n)}
	o.Image = r.image
	r.end, r.err = ReplayDurable(fsys, testName, o, r.add)
	return r
}

// TestReplayDurable reads beside a writer after each of its steps and gets only
// records that are known to be durable.
func TestReplayDurable(t *testing.T) {
	mem := newMem(t)
	s, err := create(mem, testName, testHeader(), make([]byte, 1<<16), CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	seq := testHeader().FirstSeq
	want := 0 // records below the greatest synced-to in the file
	check := func(step string) {
		t.Helper()
		r := replayDurable(mem, testOptions(), 1<<16)
		if r.err != nil || len(r.records) != want || r.end.Proven != r.end.Offset {
			t.Fatalf("%s: got %d records, %+v, %v, want %d", step, len(r.records), r.end, r.err, want)
		}
		if !isZero(r.image[r.end.Offset:]) || !bytes.Equal(r.image[:r.end.Offset], s.image[:r.end.Offset]) {
			t.Fatalf("%s: image differs from the log", step)
		}
	}
	check("created")
	synced := 0
	for i := range 20 {
		appendRecord(s, Record{FirstSeq: seq, Count: 1}, []byte(testPayload(i, 50*i)))
		seq++
		check("appended")
		proof := synced
		if err := s.Write(s.Tail()); err != nil {
			t.Fatal(err)
		}
		want = proof
		check("written")
		if i%3 != 0 {
			continue
		}
		if err := s.Sync(s.Tail()); err != nil {
			t.Fatal(err)
		}
		synced = i + 1
		check("synced")
		o := testOptions()
		o.Proven = s.Synced()
		if r := replayDurable(mem, o, 1<<16); r.err != nil || len(r.records) != synced {
			t.Fatalf("with Proven: got %d records, %v, want %d", len(r.records), r.err, synced)
		}
		if i%2 == 0 {
			if err := s.Seal(); err != nil {
				t.Fatal(err)
			}
			want = synced
			check("sealed")
		}
	}
	o := testOptions()
	o.Proven = s.Synced() + 8
	if r := replayDurable(mem, o, 1<<16); r.err == nil || r.end.Offset > s.Tail() {
		t.Fatalf("with Proven beyond the log: %+v, %v", r.end, r.err)
	}
}

// TestReplayDurableStalePages reads a file whose first pages are from before the
// writer's last group and whose last pages are from after it.
func TestReplayDurableStalePages(t *testing.T) {
	l := makeLog(t, testHeader(), smallSteps)
	fsys := &faultyFS{data: l.data, wrong: func(read int, p []byte, off int64) (int, error) {
		// Read 1 is the header, read 2 searches for proofs.
		if read == 2 {
			clear(p[:l.records[2].End-off])
		}
		return 0, nil
	}}
	r := replayDurable(fsys, testOptions(), len(l.data))
	if r.err != nil || r.end.Offset != l.synced || len(r.records) != 4 {
		t.Fatalf("got %d records, %+v, %v, want 4 up to %d", len(r.records), r.end, r.err, l.synced)
	}
}

// TestReplayDurableReusedFile replaces the segment with another one at each read.
func TestReplayDurableReusedFile(t *testing.T) {
	l := makeLog(t, testHeader(), smallSteps)
	next := testHeader()
	next.Number = 9
	other := makeLog(t, next, []step{{n: 20}, {n: 10}, {sync: true}, {n: 30}}).data
	other = append(other, l.data[len(other):]...)
	changed := 0
	for at := 1; ; at++ {
		seen := 0
		fsys := &faultyFS{data: l.data, wrong: func(read int, p []byte, off int64) (int, error) {
			if seen = read; read >= at {
				copy(p, other[off:])
			}
			return 0, nil
		}}
		r := replayDurable(fsys, testOptions(), len(l.data))
		switch {
		case errors.Is(r.err, ErrChanged):
			changed++
		case r.err != nil:
			t.Fatalf("replaced at read %d: got %v", at, r.err)
		case !isPrefix(r.records, l.records):
			t.Fatalf("replaced at read %d: got %+v", at, r.records)
		}
		if seen < at {
			break
		}
	}
	if changed < 2 {
		t.Fatalf("ErrChanged for %d reads, want 2 at least", changed)
	}
}

// TestReplayDurableDamage flips bits of durable and of unproven bytes.
func TestReplayDurableDamage(t *testing.T) {
	l := makeLog(t, testHeader(), smallSteps)
	for pos := HeaderLen; pos < len(l.data); pos++ {
		data := bytes.Clone(l.data)
		data[pos] ^= 0x10
		r := replayDurable(bytesFS{data: data}, testOptions(), len(data))
		if int64(pos) < l.synced {
			if !errors.Is(r.err, corrupt.ErrCorrupt) || errors.Is(r.err, ErrChanged) {
				t.Fatalf("byte %d: got %v", pos, r.err)
			}
			continue
		}
		if r.err != nil || !isPrefix(r.records, l.records) || r.end.Offset > l.synced {
			t.Fatalf("byte %d: got %+v, %v", pos, r.end, r.err)
		}
	}
	o := testOptions()
	o.Proven = l.synced
	r := replayDurable(bytesFS{data: l.data}, o, int(l.synced)-8)
	if !errors.Is(r.err, ErrChanged) || errors.Is(r.err, corrupt.ErrCorrupt) {
		t.Fatalf("with an image shorter than Proven: %v", r.err)
	}
}

// TestReplayDurableBeforeNext reads a segment that is not the last: a record of the
// next segment proves all of it.
func TestReplayDurableBeforeNext(t *testing.T) {
	l := makeLog(t, testHeader(), smallSteps)
	o := testOptions()
	o.NextSeq = testHeader().FirstSeq
	for _, r := range l.records {
		o.NextSeq += uint64(r.Count)
	}
	fsys := bytesFS{data: append(bytes.Clone(l.data), make([]byte, 5000)...)}
	r := replayDurable(fsys, o, len(fsys.data))
	if r.err != nil || len(r.records) != len(l.records) {
		t.Fatalf("got %d records, %v, want %d", len(r.records), r.err, len(l.records))
	}
	if r = replayDurable(fsys, o, len(fsys.data)-1); !errors.Is(r.err, ErrChanged) {
		t.Fatalf("with an image that the file outgrew: %v", r.err)
	}
	fsys.data[l.records[5].End-1] ^= 1
	if r = replayDurable(fsys, o, len(fsys.data)); !errors.Is(r.err, corrupt.ErrCorrupt) {
		t.Fatalf("with damage: %v", r.err)
	}
}
