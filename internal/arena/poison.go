//go:build race || poison

package arena

import "bytes"

const poisonFreed = true

var poisoned = bytes.Repeat([]byte{poison}, 64<<10)

// fillPoison fills b with poison. The race detector checks each copy as one access; a
// loop over the bytes of a segment took it half a second.
func fillPoison(b []byte) {
	for len(b) > 0 {
		b = b[copy(b, poisoned):]
	}
}
