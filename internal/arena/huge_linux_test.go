//go:build !race

package arena

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestHugeAdvice checks of which memory the system knows that it should have huge pages.
func TestHugeAdvice(t *testing.T) {
	skipWithoutHugePages(t)
	check := func(what string, b []byte, want bool) {
		at := reflect.ValueOf(b).Pointer()
		if got := slices.Contains(flagsOf(t, at), "hg"); got != want || want && at%HugeSlabBytes != 0 {
			t.Errorf("%s of %d bytes at %#x: advised %t, want %t", what, len(b), at, got, want)
		}
	}
	resetPages(t)
	plain, huge := Slab(), HugeSlab()
	check("slab", plain, false)
	check("slab", huge, true)
	FreeSlab(plain)
	FreeSlab(huge)
	for n, want := range map[int]bool{2*HugeSlabBytes - 1: false, 2 * HugeSlabBytes: true, 64<<20 + 1: true} {
		m, err := New(n)
		if err != nil {
			t.Fatal(err)
		}
		check("first huge page of memory", m.Bytes(), false)
		check("memory", m.Bytes()[HugeSlabBytes:], want)
		m.Free(0)
	}
}

// skipWithoutHugePages skips a test of the advice on huge pages if the kernel was built without
// them: then its mappings have no flags for it.
func skipWithoutHugePages(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err != nil {
		t.Skip("the system has no huge pages: ", err)
	}
}

// resetPages forgets the costs of pages, and does so again after the test.
func resetPages(t *testing.T) {
	populated = pageSizes{}
	t.Cleanup(func() { populated = pageSizes{} })
}

// TestPopulateChoosesPages checks of what size the system should make the pages that Populate
// makes resident, and those of new memory after that.
func TestPopulateChoosesPages(t *testing.T) {
	skipWithoutHugePages(t)
	resetPages(t)
	const at = 4 * HugeSlabBytes
	for _, want := range []bool{true, false} {
		populated = pageSizes{}
		populated.add(want, time.Minute)
		populated.add(!want, time.Hour)
		m, err := New(8 * HugeSlabBytes)
		if err != nil {
			t.Fatal(err)
		}
		for _, off := range []int{HugeSlabBytes, at} {
			if off == at {
				m.Populate(at, at+HugeSlabBytes)
			}
			flags := flagsOf(t, reflect.ValueOf(m.Bytes()[off:]).Pointer())
			if slices.Contains(flags, "hg") != want || off == at && slices.Contains(flags, "nh") == want {
				t.Errorf("page at %d with huge pages preferred %t: flags %v", off, want, flags)
			}
		}
		m.Free(0)
	}
}

// TestPopulateMeasures populates pages, whose costs must be known then, and stay as they are
// when the pages are populated again.
func TestPopulateMeasures(t *testing.T) {
	skipWithoutPopulate(t)
	resetPages(t)
	m, err := New(16 * HugeSlabBytes)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Free(0)
	for at := HugeSlabBytes; at < 8*HugeSlabBytes; at += HugeSlabBytes {
		m.Populate(at, at+HugeSlabBytes)
	}
	costs := func() any {
		populated.mu.Lock()
		defer populated.mu.Unlock()
		if populated.costs.small == 0 || populated.costs.huge == 0 {
			t.Errorf("costs are %v", populated.costs)
		}
		return populated.costs
	}
	before := costs()
	for range 2 { // pages that are resident
		for at := HugeSlabBytes; at < 8*HugeSlabBytes; at += HugeSlabBytes {
			m.Populate(at, at+HugeSlabBytes)
		}
		m.Idle(0)
	}
	if after := costs(); after != before {
		t.Errorf("costs are %v after pages that were resident, %v before", after, before)
	}
}

func skipWithoutPopulate(t *testing.T) {
	t.Helper()
	probe := make([]byte, 64<<10)
	err := unix.Madvise(probe[-reflect.ValueOf(probe).Pointer()%4096:][:4096], unix.MADV_POPULATE_WRITE)
	if errors.Is(err, unix.EINVAL) {
		t.Skip("the system is older than Linux 5.14: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestPopulate makes a part of a memory resident that has contents.
func TestPopulate(t *testing.T) {
	skipWithoutPopulate(t)
	resetPages(t)
	const size = 32 << 20
	m, err := New(size)
	if err != nil {
		t.Fatal(err)
	}
	b := m.Bytes()
	b[20<<20] = 7
	resident := func() (kB int) {
		if _, err := fmt.Sscanf(fieldOf(t, reflect.ValueOf(b[HugeSlabBytes:]).Pointer(), "Rss"), "%d kB", &kB); err != nil {
			t.Fatal(err)
		}
		return kB
	}
	before := resident()
	m.Populate(16<<20, size)
	if got := resident(); before > 8<<10 || got < 16<<10 || got > 24<<10 {
		t.Errorf("%d kB were resident, and then %d kB", before, got)
	}
	if b[20<<20] != 7 || b[20<<20+1] != 0 {
		t.Error("the contents have changed")
	}
	m.Free(0)
	m.Populate(0, size) // does nothing
}

// flagsOf returns the flags of the mapping with an address.
func flagsOf(t *testing.T, at uintptr) []string {
	return strings.Fields(fieldOf(t, at, "VmFlags"))
}

// fieldOf returns a field of the system's description of the mapping with an address.
func fieldOf(t *testing.T, at uintptr, name string) string {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	within := false
	for s := bufio.NewScanner(f); s.Scan(); {
		var from, to uintptr
		if n, _ := fmt.Sscanf(s.Text(), "%x-%x ", &from, &to); n == 2 {
			within = from <= at && at < to
		}
		if value, ok := strings.CutPrefix(s.Text(), name+":"); ok && within {
			return value
		}
	}
	t.Fatalf("no mapping has the address %#x", at)
	return ""
}
