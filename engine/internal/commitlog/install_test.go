package commitlog

import (
	"errors"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine/internal/emptyrange"
)

// TestInstall gives an install the next sequence number and a Timestamp above all others,
// unless the log has records or the install fails.
func TestInstall(t *testing.T) {
	w := newWorld(t, Options{})
	publish := func(next *Segment) { w.rotated = append(w.rotated, next); next.Ref() }
	mustCommit := func(id int) *Commit {
		t.Helper()
		c := put(id, 2, 10)
		if err := errors.Join(w.log.Append(c), w.log.Wait(c)); err != nil {
			t.Fatal(err)
		}
		return c
	}
	before := mustCommit(1)
	if _, err := w.log.Install(func(uint64, edm.Ticks, uint64) error { return nil }, publish); !errors.Is(err, ErrNotEmpty) {
		t.Fatalf("with records in the active segment: %v", err)
	}
	if err := w.log.Freeze(); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if _, err := w.log.Install(func(uint64, edm.Ticks, uint64) error { return broken }, publish); !errors.Is(err, broken) {
		t.Fatalf("got %v, want %v", err, broken)
	}
	if after := mustCommit(2); after.firstSeq != before.lastSeq()+1 {
		t.Fatalf("after an install that failed: sequence %d, want %d", after.firstSeq, before.lastSeq()+1)
	}
	if err := w.log.Freeze(); err != nil {
		t.Fatal(err)
	}
	var seq, next uint64
	var stamp edm.Ticks
	high, published := w.log.HighWater(), w.log.Published()
	old, err := w.log.Install(func(s uint64, at edm.Ticks, number uint64) error {
		seq, stamp, next = s, at, number
		w.log.Register(func(at uint64, _ emptyrange.List) {
			if at != published {
				t.Errorf("a reader during the install reads at %d, want %d", at, published)
			}
		})
		return nil
	}, publish)
	if err != nil || seq != published+1 || stamp <= high || w.log.Published() != seq || !old.Empty() || w.log.Active().Number != next {
		t.Fatalf("install with sequence %d after %d, Timestamp %d after %d, published %d: %v", seq, published, stamp, high, w.log.Published(), err)
	}
	if err := w.log.Drop(old); err != nil {
		t.Fatal(err)
	}
	if after := mustCommit(3); after.firstSeq != seq+1 || after.firstTS <= stamp {
		t.Errorf("the next record has sequence %d and Timestamp %d, the install %d and %d", after.firstSeq, after.firstTS, seq, stamp)
	}
	w.log.Fail(broken)
	if _, err := w.log.Install(func(uint64, edm.Ticks, uint64) error { return nil }, publish); !errors.Is(err, broken) {
		t.Errorf("after a failure: %v, want %v", err, broken)
	}
}
