//go:build !race

package arena

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestHugeSlabAdvice checks that the system knows of huge slabs only that they should have
// huge pages.
func TestHugeSlabAdvice(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err != nil {
		t.Skip("the system has no huge pages: ", err)
	}
	for _, c := range []struct {
		slab func() []byte
		want bool
	}{{Slab, false}, {HugeSlab, true}} {
		b := c.slab()
		if got := slices.Contains(flagsOf(t, reflect.ValueOf(b).Pointer()), "hg"); got != c.want {
			t.Errorf("slab of %d bytes: advised %t, want %t", len(b), got, c.want)
		}
		FreeSlab(b)
	}
}

// flagsOf returns the flags of the mapping with an address.
func flagsOf(t *testing.T, at uintptr) []string {
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
		if flags, ok := strings.CutPrefix(s.Text(), "VmFlags:"); ok && within {
			return strings.Fields(flags)
		}
	}
	t.Fatalf("no mapping has the address %#x", at)
	return nil
}
