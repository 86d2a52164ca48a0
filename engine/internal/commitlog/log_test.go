package commitlog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine/internal/space"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
	"github.com/tablerock-db/tablerock/wal"
)

// hold announces each sync of a segment on held and blocks it until release is
// closed.
func hold(held chan<- string, release <-chan struct{}) errorfs.Rule {
	return func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "sync" && strings.HasSuffix(op.Name, ".wal") {
			held <- op.Name
			<-release
		}
		return nil
	}
}

// TestGroupCommit blocks the sync of the first writer. The writers that append
// meanwhile become one group with one more sync, and no write is visible before
// its own sync.
func TestGroupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		first := put(0, 1, 10)
		must(t, "Append", w.log.Append(first))
		must(t, "Wait", w.log.Wait(first)) // creates the file
		held, release := make(chan string, 100), make(chan struct{})
		w.fs.SetRule(hold(held, release))
		const writers = 20
		var wg sync.WaitGroup
		order := make([]uint64, writers)
		for i := range writers {
			c := put(i+1, 2, 10)
			must(t, "Append", w.log.Append(c))
			order[i] = c.firstSeq
			wg.Go(func() {
				if err := w.log.Wait(c); err != nil {
					t.Errorf("Wait: %v", err)
				}
				if seq, ok := w.read(i+1, 1); !ok || seq != order[i]+1 {
					t.Errorf("after Wait, writer %d reads %d, %v, want %d", i, seq, ok, order[i]+1)
				}
			})
			synctest.Wait()
			if _, ok := w.read(i+1, 0); ok {
				t.Errorf("the write of %d is visible before its sync", i)
			}
			if !w.pending(i+1, 0) {
				t.Errorf("the write of %d is not pending", i)
			}
		}
		close(release)
		wg.Wait()
		if n := len(held); n != 2 {
			t.Errorf("%d writers took %d syncs, want 2", writers, n)
		}
		if !slices.IsSorted(order) || w.log.Published() != order[writers-1]+1 {
			t.Errorf("sequences %v, published %d", order, w.log.Published())
		}
		for i := range writers {
			if w.pending(i+1, 0) {
				t.Errorf("the write of %d is pending after its sync", i)
			}
		}
	})
}

// TestDeferred appends deferred commits, for which nobody syncs until their goroutine waits, or
// another commit or a barrier comes. That one syncs them too, and they are not woken to lead.
func TestDeferred(t *testing.T) {
	for _, other := range []string{"none", "commit", "barrier", "held", "failed"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, Options{})
			first := put(0, 1, 10)
			must(t, "Append", w.log.Append(first))
			must(t, "Wait", w.log.Wait(first)) // creates the file
			held, release := make(chan string, 100), make(chan struct{})
			w.fs.SetRule(hold(held, release))
			var wg sync.WaitGroup
			beside := func(want error, call func() error) {
				wg.Go(func() {
					if err := call(); !errors.Is(err, want) {
						t.Errorf("%s: the other goroutine: %v, want %v", other, err, want)
					}
				})
				synctest.Wait()
			}
			commit := func(id int) func() error {
				c := put(id, 1, 10)
				must(t, "Append", w.log.Append(c))
				return func() error { return w.log.Wait(c) }
			}
			syncs, want := 0, error(nil)
			if other == "held" { // a leader syncs while they are appended
				beside(nil, commit(8))
				syncs = 1
			}
			var list []*Commit
			for i := range 3 {
				c := put(1+i, 2, 10)
				c.Deferred = true
				must(t, "Append", w.log.Append(c))
				list = append(list, c)
			}
			synctest.Wait()
			if n := len(held); n != syncs {
				t.Errorf("%s: %d syncs before anyone waits, want %d", other, n, syncs)
			}
			close(release)
			switch other {
			case "commit":
				beside(nil, commit(9))
			case "barrier", "held":
				beside(nil, w.log.Barrier)
			case "failed":
				want = store.ErrOutcomeUnknown
				w.fs.SetRule(errorfs.FailNth(1, func(op vfs.Op) bool { return op.Kind == "sync" }, errorfs.Fault{Err: syscall.EIO}, true))
				beside(want, w.log.Barrier)
			}
			synctest.Wait()
			shared := other == "commit" || other == "barrier" || other == "held"
			for i := range list {
				if _, ok := w.read(1+i, 0); ok != shared || w.pending(1+i, 0) == shared && other != "failed" {
					t.Errorf("%s: commit %d is visible: %v, want %v", other, i, ok, shared)
				}
			}
			for i, c := range list {
				if err := w.log.Wait(c); !errors.Is(err, want) {
					t.Errorf("%s: Wait: %v, want %v", other, err, want)
				}
				if _, ok := w.read(1+i, 1); ok != (want == nil) {
					t.Errorf("%s: commit %d is visible after Wait: %v", other, i, ok)
				}
			}
			wg.Wait()
			if n := len(held); n != syncs+1 && want == nil {
				t.Errorf("%s: %d syncs, want %d", other, n, syncs+1)
			}
		})
	}
}

// TestFailedSync fails the sync of a group. The writers of the group and of the
// queue get an unknown outcome, later writers a refusal.
func TestFailedSync(t *testing.T) {
	for _, fail := range []error{syscall.EIO, syscall.ENOSPC} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, Options{})
			acked := put(0, 1, 10)
			must(t, "Append", w.log.Append(acked))
			must(t, "Wait", w.log.Wait(acked))
			held, release := make(chan string, 100), make(chan struct{})
			after := errorfs.FailNth(2, nil, errorfs.Fault{Err: fail}, true) // the write succeeds
			before := hold(held, release)
			w.fs.SetRule(func(op vfs.Op) *errorfs.Fault { return cmp.Or(before(op), after(op)) })
			var wg sync.WaitGroup
			for i := range 5 {
				c := put(1+i, 1, 10)
				must(t, "Append", w.log.Append(c))
				wg.Go(func() {
					if err := w.log.Wait(c); !errors.Is(err, store.ErrOutcomeUnknown) || !errors.Is(err, fail) {
						t.Errorf("Wait: %v, want %v because of %v", err, store.ErrOutcomeUnknown, fail)
					}
				})
				synctest.Wait()
			}
			wg.Go(func() {
				if err := w.log.WaitDurable(3); !errors.Is(err, store.ErrOutcomeUnknown) {
					t.Errorf("WaitDurable: %v, want %v", err, store.ErrOutcomeUnknown)
				}
			})
			synctest.Wait()
			close(release)
			wg.Wait()
			if err := w.log.Append(put(9, 1, 10)); !errors.Is(err, store.ErrReadOnly) || !errors.Is(err, fail) {
				t.Errorf("Append: %v, want %v because of %v", err, store.ErrReadOnly, fail)
			}
			if err := w.log.Barrier(); !errors.Is(err, store.ErrOutcomeUnknown) {
				t.Errorf("Barrier: %v, want %v", err, store.ErrOutcomeUnknown)
			}
			if err := w.log.WaitDurable(0); err != nil {
				t.Errorf("WaitDurable of nothing: %v", err)
			}
			if w.log.Published() != 1 || !errors.Is(w.log.Failure(), fail) || w.ready.Load() == 0 {
				t.Errorf("published %d, failure %v, Ready was called %d times", w.log.Published(), w.log.Failure(), w.ready.Load())
			}
			if _, ok := w.read(1, 0); ok {
				t.Error("a write of unknown outcome is visible")
			}
		})
	}
}

// TestBarrierWaitsForApply syncs a barrier before the group before it is applied.
// The barrier must wait for that group, or a caller would get a refusal without
// being able to read its cause.
func TestBarrierWaitsForApply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		c := put(0, 3, 10)
		must(t, "Append", w.log.Append(c))
		w.log.mu.Lock()
		group := w.log.queue
		w.log.queue = nil
		w.log.mu.Unlock()
		must(t, "sync", w.log.syncGroup(group)) // its leader has passed the leadership on and not applied
		<-c.wake
		w.log.mu.Lock()
		w.log.leading = false
		w.log.mu.Unlock()

		done := false
		go func() {
			must(t, "Barrier", w.log.Barrier())
			done = true
		}()
		synctest.Wait()
		if done {
			t.Error("the barrier returned before the write was applied")
		}
		w.log.applyGroup(group)
		synctest.Wait()
		if !done {
			t.Error("the barrier did not return after the write was applied")
		}
	})
}

// TestAppendAfterRefusal appends a commit again that had no space. Its record defines its shape.
func TestAppendAfterRefusal(t *testing.T) {
	refused := errors.New("no space")
	calls := 0
	w := newWorld(t, Options{Admit: func(_ space.Use, from, _, most int64) (int64, error) {
		if calls++; calls == 1 {
			return from, refused
		}
		return most, nil
	}})
	c := put(0, 2, 10)
	if err := w.log.Append(c); !errors.Is(err, refused) {
		t.Fatalf("Append: %v, want %v", err, refused)
	}
	must(t, "Append", w.log.Append(c))
	must(t, "Wait", w.log.Wait(c))
	seg := w.log.Active()
	entry, _, err := codec.DecodeEntry(seg.Image()[wal.HeaderLen+wal.RecordHeaderLen:])
	if err != nil || entry.Kind != codec.KindShape {
		t.Errorf("the record begins with an entry of kind %v, want a shape (%v)", entry.Kind, err)
	}
	if n := seg.Table.Shapes(); n != 1 {
		t.Errorf("the memtable has %d shapes, want 1", n)
	}
}

// TestRotateOnce fills segments with records whose shapes the full segment has and
// the next one does not. Each record starts at most one segment, and no segment
// stays empty.
func TestRotateOnce(t *testing.T) {
	w := newWorld(t, Options{})
	wide := func(n int) edm.Properties {
		var p edm.Properties
		for i := range 40 {
			p = append(p, edm.Property{Name: fmt.Sprintf("%s%d_%d", strings.Repeat("n", 200), n, i), Value: edm.Int32(1)})
		}
		return p
	}
	var shapes []*codec.Shape
	for n := range 30 {
		shapes = append(shapes, codec.NewShape(wide(n)))
	}
	for round := range 3 {
		for n, s := range shapes {
			c := putShape(round*1000+n, 1, wide(n), s)
			must(t, "Append", w.log.Append(c))
			must(t, "Wait", w.log.Wait(c))
		}
		all := NewCommit()
		for n, s := range shapes {
			one := putShape(5000+100*round+n, 1, wide(n), s)
			e := one.entries[0]
			e.start, e.end = e.start+len(all.buf), e.end+len(all.buf)
			all.buf, all.entries = append(all.buf, one.buf...), append(all.entries, e)
		}
		before := len(w.rotated)
		must(t, "Append", w.log.Append(all))
		must(t, "Wait", w.log.Wait(all))
		if n := len(w.rotated) - before; n > 1 {
			t.Errorf("round %d: one record started %d segments", round, n)
		}
	}
	for i, s := range w.rotated {
		if s.Empty() && i < len(w.rotated)-1 {
			t.Errorf("segment %d of %d was frozen without a record", i, len(w.rotated))
		}
	}
}

// handler is a slog.Handler that calls a function for each record.
type handler struct {
	slog.Handler
	f func()
}

func (handler) Enabled(context.Context, slog.Level) bool { return true }

func (h handler) Handle(context.Context, slog.Record) error {
	h.f()
	return nil
}

// TestLoggerUsesLog fails a log whose Logger uses it, as the calls of a database do.
func TestLoggerUsesLog(t *testing.T) {
	for _, noSync := range []bool{false, true} {
		var w *world
		logged := make(chan struct{}, 10)
		w = newWorld(t, Options{NoSync: noSync, Logger: slog.New(handler{slog.DiscardHandler, func() {
			w.log.HighWater()
			logged <- struct{}{}
		}})})
		w.fs.SetRule(func(op vfs.Op) *errorfs.Fault {
			if op.Kind == "sync" {
				return &errorfs.Fault{Err: syscall.EIO}
			}
			return nil
		})
		failed := make(chan error, 1)
		go func() {
			c := put(0, 1, 10)
			if err := w.log.Append(c); err != nil || noSync {
				failed <- errors.Join(err, w.log.SyncSegments(w.rotated))
				return
			}
			failed <- w.log.Wait(c)
		}()
		select {
		case err := <-failed:
			if !errors.Is(err, syscall.EIO) || len(logged) != 1 {
				t.Errorf("NoSync %v: error %v, %d records of the Logger; want %v and 1", noSync, err, len(logged), syscall.EIO)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("NoSync %v: the Logger waits for a lock of the log", noSync)
		}
	}
}

// TestPanicOfApply panics while a record is applied. Its goroutine may go on, as that of a request does.
// The group after it, which is synced, and later writers must not wait for ever: the log has failed.
func TestPanicOfApply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		first, second := put(0, 1, 10), put(1, 1, 10)
		first.OnApply = func(uint64) { panic("injected") }
		must(t, "Append", w.log.Append(first))
		w.log.mu.Lock()
		group := w.log.takeQueueLocked()
		w.log.mu.Unlock()
		<-first.wake
		first.lead = false // the test leads
		must(t, "sync", w.log.syncGroup(group))
		w.log.mu.Lock()
		w.log.leading = false
		w.log.mu.Unlock()
		must(t, "Append", w.log.Append(second))
		waited := make(chan error, 1)
		go func() { waited <- w.log.Wait(second) }()
		synctest.Wait()
		panicked := false
		func() {
			defer func() { panicked = recover() != nil }()
			w.log.endGroup(group, nil)
		}()
		if !panicked {
			t.Error("no panic")
		}
		synctest.Wait()
		for name, wait := range map[string]func() error{
			"the record": func() error { return w.log.Wait(first) }, "the next group": func() error { return <-waited },
		} {
			if err := wait(); !errors.Is(err, store.ErrOutcomeUnknown) {
				t.Errorf("%s: %v, want %v", name, err, store.ErrOutcomeUnknown)
			}
		}
		if err := w.log.Append(put(2, 1, 10)); !errors.Is(err, store.ErrReadOnly) {
			t.Errorf("a later writer: %v, want %v", err, store.ErrReadOnly)
		}
		if _, ok := w.read(1, 0); ok || w.pending(1, 0) {
			t.Error("the record after the panic is visible")
		}
	})
}

// TestPanicOfApplyAtOnce panics in Append, which applies a record in NoSync mode.
func TestPanicOfApplyAtOnce(t *testing.T) {
	w := newWorld(t, Options{NoSync: true, Reserve: func(edm.Ticks) error { return nil }})
	c := put(0, 1, 10)
	c.OnApply = func(uint64) { panic("injected") }
	ended := make(chan error, 1)
	go func() {
		func() {
			defer func() { _ = recover() }()
			_ = w.log.Append(c)
		}()
		ended <- w.log.Append(put(1, 1, 10))
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, store.ErrReadOnly) {
			t.Errorf("a later writer: %v, want %v", err, store.ErrReadOnly)
		}
	case <-time.After(time.Minute):
		t.Fatal("a later writer waits")
	}
	if !w.log.applyMu.TryLock() { // readers need it
		t.Fatal("the lock of applying is held")
	}
	w.log.applyMu.Unlock() // +checklocksignore: TryLock has locked it
}

// TestReadyAfterBarrier freezes a segment and completes it by a group that begins
// with a barrier. Ready must be called.
func TestReadyAfterBarrier(t *testing.T) {
	w := newWorld(t, Options{})
	c := put(0, 1, 10)
	must(t, "Append", w.log.Append(c))
	w.log.mu.Lock()
	must(t, "rotate", w.log.rotateLocked(0))
	group := append([]*Commit{NewCommit()}, w.log.queue...)
	w.log.queue = nil
	w.log.mu.Unlock()
	must(t, "sync", w.log.syncGroup(group))
	before := w.ready.Load()
	w.log.applyGroup(group)
	if !w.rotated[0].Applied() || w.ready.Load() == before {
		t.Errorf("applied %v, Ready was called %d times", w.rotated[0].Applied(), w.ready.Load()-before)
	}
}

// TestUsedUp appends when there is no Timestamp or sequence number for the entry. The error says which, and
// a clock that is set right ends it.
func TestUsedUp(t *testing.T) {
	w := newWorld(t, Options{})
	right := w.log.o.Now
	refused := func(want string) {
		t.Helper()
		if err := w.log.Append(put(0, 1, 10)); !errors.Is(err, store.ErrReadOnly) || !strings.Contains(err.Error(), want) {
			t.Errorf("Append: %v, want %q", err, want)
		}
	}
	w.log.o.Now = func() edm.Ticks { return edm.MaxTicks + 1 }
	refused("the clock is beyond the year 9999")
	if stamp, err := w.log.FileStamp(0); !errors.Is(err, store.ErrReadOnly) || !strings.Contains(err.Error(), "the clock is beyond the year 9999") {
		t.Errorf("FileStamp: %v, %v; want the error of Append", stamp, err)
	}
	w.log.o.Now = right
	must(t, "Append", w.log.Append(put(0, 1, 10)))
	w.log.o.Now = func() edm.Ticks { return edm.MaxTicks }
	must(t, "Append", w.log.Append(put(0, 1, 10)))
	w.log.o.Now = right
	refused("the Timestamps are used up")
	w = newWorld(t, Options{})
	w.log.mu.Lock()
	w.log.lastSeq = wal.MaxSeq - 1
	w.log.mu.Unlock()
	refused("the sequence numbers are used up")
}

// TestTimestampsOfBatches appends batches while the clock stands still. Each Timestamp is
// above all earlier ones, and the mark that segments and manifests record is the last one.
func TestTimestampsOfBatches(t *testing.T) {
	w := newWorld(t, Options{})
	var last edm.Ticks
	for i, n := range []int{1, 3, 100, 2, 1, 5} {
		c := put(i, n, 10)
		must(t, "Append", w.log.Append(c))
		must(t, "Wait", w.log.Wait(c))
		if first := c.FirstTimestamp(); first <= last {
			t.Errorf("batch %d begins with %d after %d", i, first, last)
		}
		last = c.FirstTimestamp() + edm.Ticks(n-1)
		if mark := w.log.HighWater(); mark != last {
			t.Errorf("after batch %d the greatest Timestamp is %d, want %d", i, mark, last)
		}
		if i == 3 {
			must(t, "Freeze", w.log.Freeze())
		}
	}
	info, err := wal.Inspect(w.disk, filename.Make(filename.WAL, 2), [16]byte{}, 2)
	if err != nil || info.Header.HighWater != 1000+1+3+100+2-1 {
		t.Errorf("the header of the second segment states %d, error %v", info.Header.HighWater, err)
	}
}

// TestGroupOverTwoSegments commits a group whose records are in two segments. The end of the
// first must be durable before the second exists, because the header of the second says so.
func TestGroupOverTwoSegments(t *testing.T) {
	w := newWorld(t, Options{})
	first, second, third := put(0, 1, 10), put(1, 2, 10), put(2, 1, 10)
	must(t, "Append", w.log.Append(first))
	must(t, "Append", w.log.Append(second))
	w.log.mu.Lock()
	must(t, "rotate", w.log.rotateLocked(0))
	w.log.mu.Unlock()
	must(t, "Append", w.log.Append(third))
	durable := func(seg *Segment) bool {
		after := w.disk.Crash(vfs.CrashOptions{Mode: "min"})
		name := filename.Make(filename.WAL, seg.Number)
		info, err := after.Stat(name)
		if err != nil || info.Size < seg.Tail() {
			return false
		}
		b, err := vfs.ReadFile(after, name, 1<<20)
		must(t, "read", err)
		return bytes.Equal(b[:seg.Tail()], seg.Image()[:seg.Tail()])
	}
	created := 0
	w.fs.SetRule(func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "create" && op.Name == filename.Make(filename.WAL, 2) {
			created++
			if !durable(w.rotated[0]) {
				t.Error("the second segment is created while the first is not durable")
			}
		}
		return nil
	})
	must(t, "Wait", w.log.Wait(first)) // leads the group
	must(t, "Wait", w.log.Wait(second))
	must(t, "Wait", w.log.Wait(third))
	for i, seg := range w.rotated {
		if !durable(seg) || seg.Durable() != seg.Tail() {
			t.Errorf("segment %d of the group is durable up to %d of %d bytes", i+1, seg.Durable(), seg.Tail())
		}
	}
	if len(w.rotated) != 2 || created != 1 {
		t.Errorf("%d segments, the second was created %d times", len(w.rotated), created)
	}
}
