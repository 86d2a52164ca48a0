package server

import (
	"regexp"
	"strings"
	"testing"
)

// TestJoined joins parts after others that are alike.
func TestJoined(t *testing.T) {
	long := strings.Repeat("a", maxJoined)
	for _, c := range []struct{ before, parts []string }{
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
		var j joined
		j.join(c.before...)
		j = j.kept()
		if len(j) > maxJoined {
			t.Errorf("%d bytes are kept", len(j))
		}
		j.join(c.parts...)
		if want := strings.Join(c.parts, ""); string(j) != want {
			t.Errorf("after %.9q, %.9q are joined as %.9q", c.before, c.parts, j)
		}
	}
}

// TestIDs wants GUIDs of version 4, all of them different.
func TestIDs(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := make(map[string]bool)
	for range 2 {
		random := newIDs()
		for range 1000 {
			id := nextID(random)
			if !form.MatchString(id) || seen[id] {
				t.Fatalf("%q, which was seen: %v", id, seen[id])
			}
			seen[id] = true
		}
	}
}
