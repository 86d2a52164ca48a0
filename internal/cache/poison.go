//go:build race

package cache

// poison tells tests that Poison overwrites memory.
const poison = true

// Poison overwrites memory that is free for reuse in builds with the race detector, so that
// a use after it is visible.
func Poison(b []byte) {
	for i := range b {
		b[i] = 0xDB
	}
}
