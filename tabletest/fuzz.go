package tabletest

import (
	"fmt"
	"testing"
)

// fuzzTest is the testing.TB of a fuzz test. While the fuzz target runs, the methods of
// testing.F panic, but Reset and Import are called there.
type fuzzTest struct{ *testing.F }

// Helper does nothing. In the fuzz target there is no way to mark a function as a helper.
func (fuzzTest) Helper() {}

// Fatalf fails the test. In the fuzz target it panics with the message, which fails the input.
func (f fuzzTest) Fatalf(format string, args ...any) {
	defer func() {
		if recover() != nil {
			panic(fmt.Sprintf(format, args...))
		}
	}()
	f.F.Fatalf(format, args...)
}
