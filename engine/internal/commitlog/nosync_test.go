package commitlog

import (
	"bytes"
	"errors"
	"testing"

	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
	"github.com/tablerock-db/tablerock/wal"
)

// prevEnd returns the end of the segment before seg according to the header of seg.
func prevEnd(t *testing.T, w *world, seg *Segment) int64 {
	t.Helper()
	info, err := wal.Inspect(w.disk, filename.Make(filename.WAL, seg.Number), [16]byte{}, seg.Number)
	must(t, "Inspect", err)
	return info.Header.PrevEnd
}

// TestHeaderStatesWhatIsSynced freezes a segment in NoSync mode before and after its sync. The
// next header must state its end only if it is durable, and that behind an empty segment only if
// everything before that is.
func TestHeaderStatesWhatIsSynced(t *testing.T) {
	for _, synced := range []bool{false, true} {
		w := newWorld(t, Options{NoSync: true})
		seg := w.log.Active()
		must(t, "Append", w.log.Append(put(0, 1, 100)))
		if synced {
			must(t, "SyncSegments", w.log.SyncSegments([]*Segment{seg}))
		}
		must(t, "Freeze", w.log.Freeze())
		if synced {
			must(t, "SyncSegments", w.log.SyncSegments([]*Segment{seg}))
		}
		must(t, "Append", w.log.Append(put(1, 1, 200<<10))) // does not fit the next segment, which stays empty
		must(t, "Freeze", w.log.Freeze())
		must(t, "SyncSegments", w.log.SyncSegments(w.rotated))
		want := []int64{wal.PrevUnknown, wal.PrevUnknown, wal.PrevUnknown}
		if synced {
			want = []int64{seg.Tail(), wal.HeaderLen, wal.PrevUnknown}
		}
		for i, want := range want {
			if got := prevEnd(t, w, w.rotated[i+1]); got != want {
				t.Errorf("synced %t: header %d states the end %d, want %d", synced, i+1, got, want)
			}
		}
	}
}

// TestWriteBehindInOrder fills several segments in NoSync mode without a flush. The files must
// have all records but the last ones, less than behindBytes, and a file of the log must not be
// kept for reuse while the system has not written it.
func TestWriteBehindInOrder(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, SegmentBytes: 2 << 20})
	for i := range 100 {
		must(t, "Append", w.log.Append(put(i, 1, 100<<10)))
		must(t, "WriteBehind", w.log.WriteBehind())
	}
	if len(w.rotated) < 4 {
		t.Fatalf("%d segments", len(w.rotated))
	}
	unwritten := int64(0)
	for _, seg := range w.rotated {
		unwritten += seg.Tail() - max(seg.written.Load(), wal.HeaderLen)
		got := make([]byte, seg.written.Load())
		if len(got) == 0 {
			continue
		}
		f, err := w.disk.Open(filename.Make(filename.WAL, seg.Number))
		must(t, "Open", err)
		_, err = f.ReadAt(got, 0)
		must(t, "ReadAt", err)
		if !bytes.Equal(got, seg.Image()[:len(got)]) {
			t.Errorf("the file of segment %d differs from its image", seg.Number)
		}
	}
	if unwritten >= 2*behindBytes {
		t.Errorf("%d bytes of records are not written", unwritten)
	}
	first, second := w.rotated[0], w.rotated[1]
	w.log.o.NoPreallocate = false
	w.log.Flushed(w.rotated[:1])
	if w.log.DurableSeq() != first.LastSeq() || w.log.reusable(first) {
		t.Errorf("durable up to sequence %d, want %d; reusable %t", w.log.DurableSeq(), first.LastSeq(), w.log.reusable(first))
	}
	must(t, "SyncSegments", w.log.SyncSegments(w.rotated[1:2]))
	if !w.log.reusable(second) {
		t.Error("the file of a synced segment is not reusable")
	}
}

// TestNoSealBehindUnsynced seals the log in NoSync mode when the active segment is empty and has a
// file. A seal there would prove that the segment before it is durable.
func TestNoSealBehindUnsynced(t *testing.T) {
	w := newWorld(t, Options{NoSync: true})
	seg := w.log.Active()
	must(t, "Append", w.log.Append(put(0, 1, 20<<10)))
	must(t, "Freeze", w.log.Freeze())
	must(t, "writeBehind", w.log.writeBehind(seg))
	active := w.log.Active()
	if !active.opened {
		t.Fatal("the active segment has no file")
	}
	must(t, "Seal", w.log.Seal())
	if !active.Empty() {
		t.Errorf("the active segment ends at %d, want no seal", active.Tail())
	}
}

// TestPanicOfNoSyncWrite panics in the file system while NoSync mode writes or syncs a segment. A program that recovers must not
// write any more: nobody knows what is in the file.
func TestPanicOfNoSyncWrite(t *testing.T) {
	for name, write := range map[string]func(*Log, *Segment) error{
		"WriteBehind":  func(l *Log, _ *Segment) error { return l.WriteBehind() },
		"SyncSegments": func(l *Log, seg *Segment) error { return l.SyncSegments([]*Segment{seg}) },
	} {
		w := newWorld(t, Options{NoSync: true})
		must(t, "Append", w.log.Append(put(0, 1, 20<<10)))
		w.fs.SetRule(func(vfs.Op) *errorfs.Fault { panic("injected") })
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s did not panic", name)
				}
			}()
			_ = write(w.log, w.log.Active())
		}()
		w.fs.SetRule(nil)
		if err := w.log.Append(put(1, 1, 10)); !errors.Is(err, store.ErrReadOnly) || w.log.Failure() == nil {
			t.Errorf("Append after a panic of %s: %v, want %v; failure %v", name, err, store.ErrReadOnly, w.log.Failure())
		}
	}
}
