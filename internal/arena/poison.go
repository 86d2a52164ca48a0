//go:build race || poison

package arena

import "bytes"

const poisonFreed = true

var poisoned = bytes.Repeat([]byte{poison}, 64<<10)

// Poison overwrites memory that is free for reuse, in builds with the race detector or the tag
// poison, so that a use after it is visible. The race detector checks each copy as one access;
// a loop over the bytes of a segment took it half a second.
func Poison(b []byte) {
	for len(b) > 0 {
		b = b[copy(b, poisoned):]
	}
}
