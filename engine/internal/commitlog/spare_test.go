package commitlog

import "testing"

// TestSpare follows the memory of segments from one to the next: one piece is
// kept, until the end.
func TestSpare(t *testing.T) {
	const size = 2 << 20
	var s spare
	first, err := s.take(size)
	must(t, "take", err)
	second, err := s.take(size)
	must(t, "take", err)
	s.give(first)
	s.give(second)
	if first.Bytes() != nil {
		t.Error("the first of two is kept, want it freed for the second")
	}
	other, err := s.take(size / 2)
	must(t, "take", err)
	if len(other.Bytes()) != size/2 {
		t.Errorf("%d bytes, want %d", len(other.Bytes()), size/2)
	}
	if again, err := s.take(size); err != nil || again != second {
		t.Errorf("took %p, %v, want what was given back, %p", again, err, second)
	}
	s.give(second)
	s.end()
	if second.Bytes() != nil {
		t.Error("kept after the end")
	}
	s.give(other)
	if other.Bytes() != nil {
		t.Error("given after the end and kept")
	}
}

// TestSegmentsReuseMemory fills segments one after the other: the next but one
// has the memory of a dropped one, but not that of one made for a large record.
func TestSegmentsReuseMemory(t *testing.T) {
	w := newWorld(t, Options{SegmentBytes: 1 << 20})
	fill := func(id, size int) *Segment {
		t.Helper()
		seg := w.log.Active()
		c := put(id, 1, size)
		must(t, "Append", w.log.Append(c))
		must(t, "Wait", w.log.Wait(c))
		must(t, "Freeze", w.log.Freeze())
		return seg
	}
	drop := func(s *Segment) {
		t.Helper()
		must(t, "Drop", w.log.Drop(s))
		s.Unref()
	}
	first := fill(1, 1000)
	drop(first)
	fill(2, 1000)
	if seg := w.log.Active(); seg.memory != first.memory {
		t.Error("the segment after a dropped one has new memory")
	}
	// The record opens a segment of its own size, right behind an empty one.
	fill(3, 1<<20)
	large := w.rotated[len(w.rotated)-2]
	if len(large.image) <= 1<<20 {
		t.Fatalf("segment of %d bytes holds a record of %d", len(large.image), 1<<20)
	}
	drop(large)
	if large.memory.Bytes() != nil {
		t.Error("the memory of a large segment is kept")
	}
}

// TestEndFreesMemory gives up a log right after it was made, as an open does that
// fails later.
func TestEndFreesMemory(t *testing.T) {
	w := newWorld(t, Options{SegmentBytes: 1 << 20})
	seg := w.log.Active()
	w.log.End()
	seg.Unref()
	if seg.memory.Bytes() != nil {
		t.Error("the memory is kept for a segment that will not be")
	}
}
