package emptyrange

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// check fails the test unless the ranges of l ascend, are not empty, and neither overlap nor touch.
func (l List) check(t *testing.T) {
	t.Helper()
	for i, r := range l.ranges {
		if bytes.Compare(r.lower, r.upper) >= 0 || i > 0 && bytes.Compare(l.ranges[i-1].upper, r.lower) > 0 {
			t.Fatalf("range %d of %v", i, l.ranges)
		}
	}
	if len(l.ranges) > maxRanges {
		t.Fatalf("%d ranges", len(l.ranges))
	}
}

// key returns one of the keys of a test: some are prefixes of others.
func key(i int) []byte {
	if i%3 == 2 {
		return fmt.Appendf(nil, "%02d\x00", i-1)
	}
	return fmt.Appendf(nil, "%02d", i)
}

// TestListIsEmpty adds ranges and removes keys at random, as queries and puts do, and compares with the set of
// keys that have an entity: no range may ever contain one, also in an older List.
func TestListIsEmpty(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { testListIsEmpty(t, rand.New(rand.NewPCG(seed, 0))) })
	}
}

func testListIsEmpty(t *testing.T, r *rand.Rand) {
	const keys = 90
	type version struct {
		list List
		has  [keys]bool
	}
	var now version
	var held []version
	trimmed := 0
	for seq := range uint64(2_000) {
		switch r.IntN(3) {
		case 0: // a put
			k := r.IntN(keys)
			now.has[k] = true
			now.list = now.list.Without(key(k))
		case 1: // deletes
			from := r.IntN(keys)
			for k := from; k < min(from+r.IntN(30), keys); k++ {
				now.has[k] = false
			}
		case 2: // a query that finds an empty range
			from := r.IntN(keys)
			to := from
			for to < keys-1 && !now.has[to] {
				to++
			}
			lower, upper := key(from), key(to)
			now.list = now.list.With(lower, upper, seq)
			clear(lower) // no reference is kept
			clear(upper)
		}
		now.list.check(t)
		if len(held) < 10 || r.IntN(20) == 0 {
			held = append(held, now)
		}
		if len(held) > 20 {
			held = held[10:]
		}
		for k := range keys {
			lower, upper, ok := now.list.Around(key(k))
			if ok && (now.has[k] || bytes.Compare(key(k), lower) < 0 || bytes.Compare(key(k), upper) >= 0) {
				t.Fatalf("Around(%q) is %q, %q; the key has an entity: %t", key(k), lower, upper, now.has[k])
			}
		}
		for _, v := range []version{held[r.IntN(len(held))], now} {
			i, j := r.IntN(keys), r.IntN(keys)
			lower, upper := v.list.Trim(key(i), key(j))
			for k := range keys {
				before := bytes.Compare(key(i), key(k)) <= 0 && bytes.Compare(key(k), key(j)) < 0
				after := bytes.Compare(lower, key(k)) <= 0 && bytes.Compare(key(k), upper) < 0
				if v.has[k] && before != after || after && !before {
					t.Fatalf("Trim(%q, %q) is %q, %q: key %q, ranges %v", key(i), key(j), lower, upper, key(k), v.list.ranges)
				}
				if before && !after {
					trimmed++
				}
			}
		}
	}
	if trimmed == 0 {
		t.Error("no key was ever left out")
	}
}

// TestNeighbours looks for the ranges above and below keys.
func TestNeighbours(t *testing.T) {
	l := List{}.With([]byte("c"), []byte("e"), 1).With([]byte("g"), []byte("i"), 2)
	for _, c := range []struct{ key, after, before string }{
		{"b", "c", ""},
		{"c", "g", ""},
		{"d", "g", ""},
		{"e", "g", ""}, // it touches the range
		{"f", "g", "e"},
		{"g", "", "e"},
		{"i", "", "e"},
		{"j", "", "i"},
	} {
		if after, before := l.After([]byte(c.key)), l.Before([]byte(c.key)); string(after) != c.after || string(before) != c.before {
			t.Errorf("After(%[1]q) is %[2]q, Before(%[1]q) is %[3]q, want %[4]q, %[5]q", c.key, after, before, c.after, c.before)
		}
	}
}

// TestTrim leaves out the ranges at both ends, and only those.
func TestTrim(t *testing.T) {
	var l List
	for i, r := range []string{"bd", "fh", "hj", "mp", "ac"} { // touches or overlaps others
		l = l.With([]byte(r[:1]), []byte(r[1:]), uint64(i))
	}
	l = l.With([]byte("x"), []byte("x"), 9)
	l = l.Without([]byte("n"))
	for _, c := range []struct{ lower, upper, wantLower, wantUpper string }{
		{"a", "z", "d", "z"},
		{"b", "e", "d", "e"},
		{"d", "z", "d", "z"},
		{"d", "g", "d", "f"},
		{"c", "i", "d", "f"},
		{"d", "j", "d", "f"},
		{"d", "k", "d", "k"},
		{"m", "z", "n", "z"},
		{"n", "z", "n", "z"},
		{"o", "z", "o", "z"}, // only the part before a key is kept
		{"k", "n", "k", "m"},
		{"k", "n\x00", "k", "n\x00"},
		{"k", "p", "k", "p"},
		{"f", "i", "j", "f"}, // nothing is left
		{"x", "y", "x", "y"},
	} {
		lower, upper := l.Trim([]byte(c.lower), []byte(c.upper))
		if string(lower) != c.wantLower || string(upper) != c.wantUpper {
			t.Errorf("Trim(%q, %q) is %q, %q, want %q, %q", c.lower, c.upper, lower, upper, c.wantLower, c.wantUpper)
		}
	}
}

// TestMaxRanges adds more ranges than are kept: that which was found first goes, however it was found again.
func TestMaxRanges(t *testing.T) {
	var l List
	lower := func(i int) []byte { return fmt.Appendf(nil, "%03d", i) }
	upper := func(i int) []byte { return fmt.Appendf(nil, "%03dx", i) }
	for i := range maxRanges {
		l = l.With(lower(i), upper(i), uint64(i))
	}
	l = l.With(lower(0), upper(0), maxRanges) // found again
	l = l.With(lower(maxRanges), upper(maxRanges), maxRanges+1)
	l.check(t)
	for i := range maxRanges + 1 {
		got, _ := l.Trim(lower(i), []byte("z"))
		if kept := string(got) == string(upper(i)); kept != (i != 1) {
			t.Errorf("range %d is kept: %t", i, kept)
		}
	}
	for i := range maxRanges + 1 {
		l = l.Without(lower(i))
		l.check(t)
	}
	if !l.Empty() {
		t.Errorf("ranges %v are left", l.ranges)
	}
}
