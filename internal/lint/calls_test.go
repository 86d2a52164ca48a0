package lint

import (
	"go/token"
	"slices"
	"strconv"
	"testing"
)

func itoa(n int) string { return strconv.Itoa(n) }

// TestBannedImports refuses imports that make memory unsafe or need a C compiler,
// and hashes whose seed comes from the runtime, which make runs unrepeatable.
func TestBannedImports(t *testing.T) {
	banned := map[string]string{
		"unsafe":       "no unsafe: the race detector and the compiler must see every access",
		"C":            "no cgo: the program is one static binary",
		"hash/maphash": "its seed differs from run to run; use xxhash with a fixed seed",
	}
	for _, s := range moduleSources(t) {
		for _, i := range s.file.Imports {
			if why, ok := banned[importPath(i)]; ok {
				complain(t, i.Pos(), "import of "+importPath(i), why)
			}
		}
	}
}

// TestClock keeps the time of day behind injected clocks, so that a test can
// repeat a run. The file that defines the system's clock of a package is excepted.
func TestClock(t *testing.T) {
	banned := []string{"Now", "Since", "Until"}
	for _, s := range moduleSources(t) {
		if s.test || anywhere(s.dir, "cmd", "bench", "vfs") || slices.Contains(systemClocks, s.path) {
			continue
		}
		s.uses("time", func(pos token.Pos, name string) {
			if slices.Contains(banned, name) {
				complain(t, pos, "use of time."+name, "take the time from the injected clock, or a test cannot repeat the run")
			}
		})
	}
}

// systemClocks are the files whose clock is the default of a package.
var systemClocks = []string{
	"backup/clock.go", "engine/options.go", "internal/front/clock.go", "server/clock.go", "server/faults/clock.go", "store/postgres/clock.go",
	"tabletest/clock.go",
}

// TestRandomness refuses the functions of math/rand that draw from the unseeded
// global source, in tests too: their failures could not be repeated.
func TestRandomness(t *testing.T) {
	seeded := []string{"New", "NewPCG", "NewChaCha8", "NewSource", "NewZipf", "Rand", "PCG", "ChaCha8", "Source", "Source64", "Zipf"}
	for _, s := range moduleSources(t) {
		for _, pkg := range []string{"math/rand", "math/rand/v2"} {
			s.uses(pkg, func(pos token.Pos, name string) {
				if !slices.Contains(seeded, name) {
					complain(t, pos, "use of rand."+name, "draw from a rand.New whose seed is given and printed")
				}
			})
		}
	}
}

// TestNoSleeps refuses time.Sleep in tests, except inside a testing/synctest
// bubble, where no time passes.
func TestNoSleeps(t *testing.T) {
	for _, s := range moduleSources(t) {
		if !s.test || s.imports("testing/synctest") {
			continue
		}
		s.uses("time", func(pos token.Pos, name string) {
			if name == "Sleep" {
				complain(t, pos, "time.Sleep in a test", "wait for the event itself, or use testing/synctest")
			}
		})
	}
}
