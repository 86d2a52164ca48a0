package keyrange

import (
	"fmt"
	"testing"
)

func TestDeleted(t *testing.T) {
	var d Deleted
	const n = minPassed / 8
	add := func(lower, upper string, n, queries int, want bool) {
		t.Helper()
		got := false
		for range queries {
			got = d.Add([]byte(lower), []byte(upper), n)
		}
		if got != want {
			t.Errorf("%d times Add(%s, %s, %d) = %t, want %t", queries, lower, upper, n, got, want)
		}
	}
	take := func(want string) {
		t.Helper()
		lower, upper := d.Take()
		if got := fmt.Sprintf("%s-%s", lower, upper); got != want {
			t.Errorf("Take is %s, want %s", got, want)
		}
	}
	take("-")
	add("b", "c", n, 3, false)
	add("x", "y", n, 7, false)
	take("-")
	add("a", "b", n, 4, false) // meets the first
	add("bb", "d", n, 1, true)
	take("a-d")
	take("-")
	// A range of many tombstones is worth more passes.
	add("b", "c", minPassed, 3, false)
	add("x", "y", n, 1, true)
	add("b", "c", minPassed, 1, true)
	take("x-y")
	take("b-c")
	take("-")
}

// TestDeletedKeepsMost adds one range again and again between many ranges that are passed once.
func TestDeletedKeepsMost(t *testing.T) {
	var d Deleted
	for i := range 100 * maxDeleted {
		d.Add(fmt.Appendf(nil, "a%06d", i), fmt.Appendf(nil, "a%06dz", i), 1024)
		if i%maxDeleted == 0 && d.Add([]byte("q"), []byte("r"), 8192) {
			if lower, _ := d.Take(); string(lower) != "q" {
				t.Fatalf("%s is due before q", lower)
			}
			return
		}
	}
	t.Error("the range is never due")
}
