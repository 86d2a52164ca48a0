//go:build race || poison

package cache

// Poison overwrites memory that is free for reuse, in builds with the race detector or the tag
// poison, so that a use after it is visible.
func Poison(b []byte) {
	for i := range b {
		b[i] = 0xDB
	}
}
