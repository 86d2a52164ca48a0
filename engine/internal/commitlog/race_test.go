package commitlog

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// TestFailureDuringReady calls Failure from Ready, as stalled writers do, which
// hold the mutex that Ready takes.
// +checklocksignore
func TestFailureDuringReady(t *testing.T) {
	w := newWorld(t, Options{})
	bad := errors.New("bad")
	var got error
	w.log.o.Ready = func() {
		if w.log.mu.TryLock() {
			w.log.mu.Unlock()
			t.Error("the log mutex is free, so this test proves nothing")
		}
		got = w.log.Failure()
	}
	w.fs.SetRule(errorfs.FailNth(1, func(op vfs.Op) bool { return op.Kind == "sync" }, errorfs.Fault{Err: bad}, true))
	c := put(0, 1, 10)
	must(t, "Append", w.log.Append(c))
	_ = w.log.Wait(c)
	if !errors.Is(got, bad) {
		t.Errorf("Failure: %v, want %v", got, bad)
	}
}

// TestAppliedAfterOverlay inspects a segment between its last record and the next
// record of the same group. When the segment can be flushed, and its memory freed,
// the overlay must not point into it.
func TestAppliedAfterOverlay(t *testing.T) {
	w := newWorld(t, Options{})
	last, next := put(0, 1, 10), put(1, 1, 10)
	must(t, "Append", w.log.Append(last))
	w.log.mu.Lock()
	must(t, "rotate", w.log.rotateLocked(0))
	w.log.mu.Unlock()
	next.OnApply = func(uint64) {
		if w.pending(0, 0) && w.rotated[0].Applied() {
			t.Error("the segment can be flushed while the overlay points into its memory")
		}
	}
	must(t, "Append", w.log.Append(next))
	must(t, "Wait", w.log.Wait(last))
	must(t, "Wait", w.log.Wait(next))
	if !w.rotated[0].Applied() {
		t.Error("the segment cannot be flushed")
	}
}

// TestDropDuringSeal freezes a segment while its seal is synced. All its records
// are applied, so a flush may drop it. Its memory and file must stay until the seal
// is written.
// +checklocksignore
func TestDropDuringSeal(t *testing.T) {
	w := newWorld(t, Options{})
	seg := w.log.Active()
	c := put(0, 1, 10)
	must(t, "Append", w.log.Append(c))
	must(t, "Wait", w.log.Wait(c))
	held, release := make(chan string, 10), make(chan struct{})
	w.fs.SetRule(hold(held, release))
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := w.log.Seal(); err != nil {
			t.Errorf("Seal: %v", err)
		}
	})
	<-held
	w.fs.SetRule(nil)
	late := put(1, 1, 64<<10)
	must(t, "Append", w.log.Append(late))
	if !seg.frozen.Load() || !seg.Applied() {
		t.Error("the segment cannot be flushed, so this test proves nothing")
	}
	seg.Unref()
	if w.log.spareMemory.kept != nil {
		t.Error("the memory is freed while the seal is written from it")
	}
	if w.log.fileMu.TryLock() {
		w.log.fileMu.Unlock()
		t.Error("Drop would close the file while the seal is written to it")
	}
	close(release)
	must(t, "Drop", w.log.Drop(seg))
	wg.Wait()
	must(t, "Wait", w.log.Wait(late))
	must(t, "Failure", w.log.Failure())
	if w.log.spareMemory.kept != seg.memory {
		t.Error("the memory is not kept for the next segment")
	}
}

// TestWriteBehindDropped drops a segment after WriteBehind has loaded it as the
// active one and before it writes.
func TestWriteBehindDropped(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, SegmentBytes: 4 << 20})
	for i := range 20 {
		must(t, "Append", w.log.Append(put(i, 1, 100<<10)))
	}
	seg := w.log.Active()
	must(t, "Freeze", w.log.Freeze())
	w.log.Flushed([]*Segment{seg})
	must(t, "Drop", w.log.Drop(seg))
	must(t, "writeBehind", w.log.writeBehind(seg))
	must(t, "Failure", w.log.Failure())
}

// TestDurableSeqWaits appends records to the active segment while it is synced, and freezes it.
// The segment is not durable as a whole then.
func TestDurableSeqWaits(t *testing.T) {
	w := newWorld(t, Options{NoSync: true})
	seg := w.log.Active()
	must(t, "Append", w.log.Append(put(0, 1, 100)))
	syncs := 0
	w.fs.SetRule(func(op vfs.Op) *errorfs.Fault {
		if op.Kind != "sync" || !strings.HasSuffix(op.Name, ".wal") {
			return nil
		}
		if syncs++; syncs == 2 { // the first is the header's
			must(t, "Append", w.log.Append(put(1, 1, 40<<10)))
			must(t, "Append", w.log.Append(put(2, 1, 40<<10)))
		}
		return nil
	})
	must(t, "SyncSegments", w.log.SyncSegments([]*Segment{seg}))
	if len(w.rotated) != 2 || w.log.DurableSeq() != 0 || seg.Durable() == seg.Tail() {
		t.Errorf("%d segments, durable up to sequence %d; the first is durable up to %d of %d",
			len(w.rotated), w.log.DurableSeq(), seg.Durable(), seg.Tail())
	}
	must(t, "SyncSegments", w.log.SyncSegments([]*Segment{seg}))
	if got := w.log.DurableSeq(); got != seg.LastSeq() {
		t.Errorf("durable up to sequence %d, want %d", got, seg.LastSeq())
	}
}

// TestFailureWakesBarrier fails the log in NoSync mode, which has no leader, while
// barriers wait.
func TestFailureWakesBarrier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{NoSync: true})
		c, late := NewCommit(), NewCommit()
		w.log.mu.Lock()
		w.log.enqueueLocked(c)
		w.log.enqueueLocked(late)
		w.log.mu.Unlock()
		if err := w.log.fail(errors.New("bad")); err == nil {
			t.Error("fail returned nil")
		}
		_ = w.log.Wait(c)
		_ = w.log.Wait(late)
	})
}
