package arena

import (
	"testing"
	"time"
)

// TestPageSizes makes pages resident that take a given time, and counts the huge ones.
func TestPageSizes(t *testing.T) {
	var p pageSizes
	count := func(pages int, small, huge time.Duration) (n int) {
		for range pages {
			if p.choose() {
				n++
				p.add(true, huge)
			} else {
				p.add(false, small)
			}
		}
		return n
	}
	const pages = 10 * retryEach
	if n := count(1, 1200*time.Microsecond, 300*time.Microsecond); n != 1 || !p.preferHuge() {
		t.Error("the first page is not huge, or huge pages are not preferred while small ones are unknown")
	}
	if n := count(1, 1200*time.Microsecond, 300*time.Microsecond); n != 0 {
		t.Error("the second page is huge")
	}
	if n := count(pages, 1200*time.Microsecond, 300*time.Microsecond); n != pages-10 {
		t.Errorf("huge pages are cheap, %d of %d are huge, want %d", n, pages, pages-10)
	}
	if !p.preferHuge() {
		t.Error("huge pages are cheap and not preferred")
	}
	// The first average is that of before.
	if n := count(pages, 1200*time.Microsecond, 7500*time.Microsecond); n < 10 || n > 12 {
		t.Errorf("huge pages are slow, %d of %d are huge, want 10 and a few", n, pages)
	}
	if p.preferHuge() {
		t.Error("huge pages are slow and preferred")
	}
	count(2*pages, 1200*time.Microsecond, 2200*time.Microsecond)
	if !p.preferHuge() {
		t.Error("huge pages take less than twice the time of small ones and are not preferred")
	}
}
