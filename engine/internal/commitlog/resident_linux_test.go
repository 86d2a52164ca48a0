//go:build !race

package commitlog

import (
	"encoding/binary"
	"errors"
	"os"
	"reflect"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tablerock-db/tablerock/internal/arena"
)

// TestPagesAreResident looks at the pages of segments: of one with records, those that populate
// has made resident before the records reach them, and of a recovered one those of PopulateTo.
func TestPagesAreResident(t *testing.T) {
	skipWithoutPopulate(t)
	withoutHugePages(t)
	const huge = arena.HugeSlabBytes
	w := newWorld(t, Options{SegmentBytes: 9 << 20})
	seg := w.log.Active()
	checked := 0
	for i := 0; w.log.Active() == seg && seg.Tail() < 7<<20; i++ {
		c := put(i, 1, 100<<10)
		must(t, "Append", w.log.Append(c))
		must(t, "Wait", w.log.Wait(c))
		page := seg.ahead
		if page == nil || seg.Tail() > page.off {
			continue
		}
		<-page.done
		whole := seg.image[page.off:min(page.off+huge, int64(len(seg.image)))]
		if n := residentBytes(t, whole); n != len(whole) {
			t.Fatalf("records end at %d, and %d bytes of the page at %d are resident", seg.Tail(), n, page.off)
		}
		checked++
	}
	if checked == 0 {
		t.Error("no page was made resident")
	}

	recovered, err := Recovered(1, 9<<20)
	must(t, "Recovered", err)
	defer recovered.Free()
	recovered.PopulateTo(huge + 1)
	if n := residentBytes(t, recovered.image[huge:3*huge]); n != huge {
		t.Errorf("%d bytes behind the first page are resident, want %d", n, huge)
	}
}

// skipWithoutPopulate skips t on a kernel that cannot make pages resident: older than Linux 5.14.
func skipWithoutPopulate(t testing.TB) {
	t.Helper()
	b, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	must(t, "Mmap", err)
	defer func() { must(t, "Munmap", unix.Munmap(b)) }()
	err = unix.Madvise(b, unix.MADV_POPULATE_WRITE)
	if errors.Is(err, unix.EINVAL) {
		t.Skip("the system is older than Linux 5.14: ", err)
	}
	must(t, "Madvise", err)
}

// withoutHugePages makes the system give the process small pages until t ends, so that a write to
// one page makes no others resident. Tests that run beside t have small pages too.
func withoutHugePages(t testing.TB) {
	t.Helper()
	set := func(disable uintptr) error { return unix.Prctl(unix.PR_SET_THP_DISABLE, disable, 0, 0, 0) }
	must(t, "Prctl", set(1))
	t.Cleanup(func() { _ = set(0) })
}

// residentBytes returns how many bytes of the pages of b are resident.
func residentBytes(t testing.TB, b []byte) (n int) {
	t.Helper()
	f, err := os.Open("/proc/self/pagemap")
	must(t, "Open", err)
	defer f.Close()
	const entry, present = 8, 1 << 63 // a word for each page
	page := uintptr(os.Getpagesize())
	at := reflect.ValueOf(b).Pointer() / page
	list := make([]byte, (len(b)+int(page)-1)/int(page)*entry)
	_, err = f.ReadAt(list, int64(at)*entry)
	must(t, "ReadAt", err)
	for ; len(list) > 0; list = list[entry:] {
		if binary.NativeEndian.Uint64(list)&present != 0 {
			n += int(page)
		}
	}
	return n
}
