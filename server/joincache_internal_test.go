package server

import (
	"strings"
	"testing"
)

// TestJoinCache sets a text after another, which may have a common prefix.
func TestJoinCache(t *testing.T) {
	long := strings.Repeat("a", maxJoinCacheBytes)
	for _, c := range []struct{ before, elems []string }{
		{nil, nil},
		{nil, []string{"a", "b"}},
		{[]string{"a", "b"}, nil},
		{[]string{"a", "b"}, []string{"a", "b"}},
		{[]string{"ab", ""}, []string{"a", "b"}},
		{[]string{"a", "b", "c"}, []string{"a", "b"}},
		{[]string{"a", "b"}, []string{"a", "b", "c"}},
		{[]string{"a", "b"}, []string{"a", "c"}},
		{[]string{"a", "b"}, []string{"", ""}},
		{[]string{long, "b"}, []string{"b"}},
		{[]string{long}, []string{long}},
		{[]string{"a"}, []string{long, "b"}},
	} {
		var j joinCache
		j.set(c.before...)
		j.trim()
		if len(j) > maxJoinCacheBytes {
			t.Errorf("%d bytes after trim, want at most %d", len(j), maxJoinCacheBytes)
		}
		j.set(c.elems...)
		if want := strings.Join(c.elems, ""); string(j) != want {
			t.Errorf("after %.9q, %.9q gives %.9q, want %.9q", c.before, c.elems, j, want)
		}
	}
}
