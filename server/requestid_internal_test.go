package server

import (
	"regexp"
	"testing"
)

// TestIDs checks that ids are GUIDs of version 4 and all different.
func TestIDs(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := make(map[string]bool)
	for range 2 {
		random := newIDs()
		for range 1000 {
			id := nextID(random)
			if !form.MatchString(id) || seen[id] {
				t.Fatalf("%q is no GUID of version 4, or was returned before: %v", id, seen[id])
			}
			seen[id] = true
		}
	}
}
