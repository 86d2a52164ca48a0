package commitlog

import (
	"testing"
	"testing/synctest"

	"github.com/tablerock-db/tablerock/internal/arena"
)

// TestSpareMemory takes and puts memory of two sizes. Memory of one segment is kept,
// until close.
func TestSpareMemory(t *testing.T) {
	const size = 2 << 20
	var s spareMemory
	first, _, err := s.take(size)
	must(t, "take", err)
	second, _, err := s.take(size)
	must(t, "take", err)
	s.put(first, 1, size)
	s.put(second, 2, size)
	if first.Bytes() != nil {
		t.Error("the first of two is kept, want it freed for the second")
	}
	other, _, err := s.take(size / 2)
	must(t, "take", err)
	if len(other.Bytes()) != size/2 {
		t.Errorf("%d bytes, want %d", len(other.Bytes()), size/2)
	}
	if again, resident, err := s.take(size); err != nil || again != second || resident != 2 {
		t.Errorf("took %p with %d resident bytes, %v, want the memory put back, %p, with 2", again, resident, err, second)
	}
	s.put(second, 2, size)
	s.close()
	if second.Bytes() != nil {
		t.Error("kept after close")
	}
	s.put(other, 0, size/2)
	if other.Bytes() != nil {
		t.Error("put after close and kept")
	}
}

// TestSegmentsReuseMemory fills segments one after the other. The segment after a
// dropped one takes over its memory, unless that was made for a large record.
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
	first.resident = 12345
	drop(first)
	if poison := first.image[0]; arena.Poisons() && (first.image[12344] != poison || first.image[12345] != 0) {
		t.Errorf("%#x at the end of the used memory, %#x behind it, want %#x, 0", first.image[12344], first.image[12345], poison)
	}
	fill(2, 1000)
	if seg := w.log.Active(); seg.memory != first.memory || seg.resident != first.resident {
		t.Errorf("the segment after a dropped one has new memory, or %d resident bytes, want %d", seg.resident, first.resident)
	}
	// The record starts a segment of its own size, right after an empty one.
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

// TestFreeSpareMemory frees the memory of a new log, as an Open that fails does.
func TestFreeSpareMemory(t *testing.T) {
	w := newWorld(t, Options{SegmentBytes: 1 << 20})
	seg := w.log.Active()
	w.log.FreeSpareMemory()
	seg.Unref()
	if seg.memory.Bytes() != nil {
		t.Error("the memory is kept although no segment follows")
	}
}

// TestSegmentIsResident fills a segment. The memory behind the records must become resident
// before they reach it, to the end of the segment.
func TestSegmentIsResident(t *testing.T) {
	const size, huge = 9 << 20, arena.HugeSlabBytes
	for _, bytes := range []int{100 << 10, 3 << 20} {
		w := newWorld(t, Options{SegmentBytes: size})
		seg := w.log.Active()
		for i := 0; w.log.Active() == seg; i++ {
			tail := seg.Tail()
			resident := max(seg.resident, (tail+huge-1)/huge*huge) // what records are in is resident
			if tail < populateFrom && seg.resident > 0 {
				t.Fatalf("%d bytes are resident for records of %d", seg.resident, tail)
			}
			if tail >= populateFrom && resident < min(tail+populateAhead, size) || resident > tail+populateAhead+huge {
				t.Fatalf("%d bytes are resident, and records end at %d", resident, tail)
			}
			if seg.ahead != nil && seg.ahead.off < tail {
				t.Fatalf("records end at %d, and the page at %d was not waited for", tail, seg.ahead.off)
			}
			c := put(i, 1, bytes)
			must(t, "Append", w.log.Append(c))
			must(t, "Wait", w.log.Wait(c))
		}
		if bytes < populateAhead && seg.resident != size {
			t.Errorf("%d bytes are resident at the end", seg.resident)
		}
	}
}

// TestWriterAwaitsPage appends records up to and into a page that is being made resident, and
// into one that is not yet.
func TestWriterAwaitsPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const off = 2 * arena.HugeSlabBytes
		s := &Segment{}
		s.awaitPage(off) // there is no page
		page := &pageAhead{off: off, done: make(chan struct{})}
		page.taken.Store(true)
		s.ahead = page
		s.awaitPage(off)
		returned := false
		go func() {
			s.awaitPage(off + 1)
			returned = true
		}()
		synctest.Wait()
		if returned {
			t.Fatal("a writer did not wait for the page")
		}
		close(page.done)
		synctest.Wait()
		if !returned || s.ahead != nil {
			t.Fatal("a writer waits for a page that is resident")
		}
		page = &pageAhead{off: off, done: make(chan struct{})}
		s.ahead = page
		s.awaitPage(off + 1)
		if !page.taken.Load() {
			t.Error("a page that a writer needs is left to be made resident")
		}
	})
}

// TestPopulateTo makes the memory of a recovered segment resident as it is read.
func TestPopulateTo(t *testing.T) {
	const huge, size = arena.HugeSlabBytes, 9 << 20
	seg, err := Recovered(1, size)
	must(t, "Recovered", err)
	defer seg.Free()
	seg.image[size-1] = 7
	for _, c := range []struct{ end, want int64 }{
		{100, huge},
		{huge, huge},
		{huge + 1, 2 * huge},
		{huge, 2 * huge},
		{4*huge + 1, size},
		{size, size},
	} {
		if seg.PopulateTo(c.end); seg.resident != c.want {
			t.Errorf("%d bytes are resident for reads up to %d, want %d", seg.resident, c.end, c.want)
		}
	}
	if seg.image[size-1] != 7 {
		t.Error("the memory has lost its contents")
	}
	small, err := Recovered(1, 100)
	must(t, "Recovered", err)
	defer small.Free()
	n := int64(len(small.image))
	if small.PopulateTo(n); small.resident != n {
		t.Errorf("%d bytes are resident of %d", small.resident, n)
	}
}
