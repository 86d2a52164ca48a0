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

// TestHugeAdvice checks of which memory the system knows that it should have huge pages.
func TestHugeAdvice(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err != nil {
		t.Skip("the system has no huge pages: ", err)
	}
	check := func(what string, b []byte, want bool) {
		at := reflect.ValueOf(b).Pointer()
		if got := slices.Contains(flagsOf(t, at), "hg"); got != want || want && at%HugeSlabBytes != 0 {
			t.Errorf("%s of %d bytes at %#x: advised %t, want %t", what, len(b), at, got, want)
		}
	}
	plain, huge := Slab(), HugeSlab()
	check("slab", plain, false)
	check("slab", huge, true)
	FreeSlab(plain)
	FreeSlab(huge)
	for n, want := range map[int]bool{HugeSlabBytes - 1: false, HugeSlabBytes: true, 64<<20 + 1: true} {
		m, err := New(n)
		if err != nil {
			t.Fatal(err)
		}
		check("memory", m.Bytes(), want)
		m.Free()
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
