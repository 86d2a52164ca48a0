package arena

import (
	"bytes"
	"sync"
)

const poison = 0xDB

var poisoned = sync.OnceValue(func() []byte { return bytes.Repeat([]byte{poison}, 64<<10) })

// poisons is set by the linker. For a build tag, all packages that import this one would be compiled once more.
var poisons string

// Poisons reports whether freed memory is overwritten, so that a use of it is visible. That is so in
// builds with the race detector, and in programs that are linked with
// -ldflags=-X=github.com/tablerock-db/tablerock/internal/arena.poisons=true.
func Poisons() bool { return raceDetector || poisons != "" }

// Poison overwrites memory that is free for reuse, if Poisons is true: a later read returns wrong data, and
// the race detector sees the write that raced with it. The race detector checks each copy as one
// access; a loop over the bytes of a segment took it half a second.
func Poison(b []byte) {
	if !Poisons() {
		return
	}
	for from := poisoned(); len(b) > 0; {
		b = b[copy(b, from):]
	}
}
