package lint

import (
	"go/token"
	"path"
	"slices"
	"strconv"
	"testing"
)

func itoa(n int) string { return strconv.Itoa(n) }

// TestBannedImports refuses what makes memory unsafe or needs a C compiler, and
// hashes whose seed comes from the runtime, with which no run can be repeated.
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

// TestClock keeps the time of day behind injected clocks, whose defaults live in
// a clock.go.
func TestClock(t *testing.T) {
	banned := []string{"Now", "Since", "Until"}
	for _, s := range moduleSources(t) {
		if s.test || anywhere(s.dir, "cmd", "bench", "vfs") || isClock(s) {
			continue
		}
		s.uses("time", func(pos token.Pos, name string) {
			if slices.Contains(banned, name) {
				complain(t, pos, "use of time."+name, "take the time from the injected clock, or a test cannot repeat the run")
			}
		})
	}
}

// isClock reports whether s is the default clock of a package that has one.
func isClock(s *source) bool {
	return path.Base(s.path) == "clock.go" && slices.Contains([]string{"engine", "server", "internal/front", "tabletest"}, s.dir)
}

// TestRandomness refuses the functions of math/rand that draw from a source that
// nobody seeds, in tests too: their failures could not be repeated.
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

// TestNoSleeps refuses waiting for time to pass in tests. In a bubble of
// testing/synctest no time passes.
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
