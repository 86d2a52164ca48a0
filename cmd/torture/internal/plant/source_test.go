package plant

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSourceDiffsApply checks that each diff changes the source. torture planted checks that
// the tests find the bugs.
func TestSourceDiffsApply(t *testing.T) {
	dir, err := SourceDir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range SourceBugs() {
		work := t.TempDir()
		if _, err := b.plant(t.Context(), dir, work); err != nil {
			t.Errorf("%s: %v", b.Name, err)
		}
	}
}

const (
	toySource = "package toy\n\nfunc sum(a, b int) int {\n\treturn a + b\n}\n"
	toyTest   = `package toy

import "testing"

func TestSum(t *testing.T) {
	t.Run("small", func(t *testing.T) {
		if got := sum(1, 1); got != 2 {
			t.Errorf("1 + 1 = %d", got)
		}
	})
}
`
)

// toyDiff replaces the sum.
func toyDiff(old, by string) string {
	return "--- a/toy.go\n+++ b/toy.go\n@@ -1,5 +1,5 @@\n package toy\n \n func sum(a, b int) int {\n" +
		"-\treturn " + old + "\n+\treturn " + by + "\n }\n"
}

// TestSourceBug plants changes in a small module. Only a bug that the test finds is found.
func TestSourceBug(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{"go.mod": "module toy\n\ngo 1.26.0\n", "toy.go": toySource, "toy_test.go": toyTest}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, diff, test, want string
	}{
		{"found", toyDiff("a + b", "a - b"), "TestSum", ""},
		{"panic", toyDiff("a + b", "a / (b - b)"), "TestSum", ""},
		{"missed", toyDiff("a + b", "a * b * 2"), "TestSum", "not found"},
		{"no test", toyDiff("a + b", "a - b"), "TestProduct", "has no TestProduct"},
		{"does not compile", toyDiff("a + b", "c"), "TestSum", "undefined: c"},
		{"does not apply", toyDiff("a * b", "a - b"), "TestSum", "the source has changed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := SourceBug{Name: "toy", Diff: c.diff, Package: ".", Test: c.test}.Hunt(t.Context(), dir)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) || (c.name == "missed") != errors.Is(err, ErrMissed) {
					t.Errorf("found by %+v, error %v, want %q", got, err, c.want)
				}
				return
			}
			if err != nil || got.Test != c.test || got.By == "" {
				t.Errorf("found by %+v, error %v", got, err)
			}
		})
	}
	for name, text := range files {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != text {
			t.Errorf("%s is now %q, %v", name, got, err)
		}
	}
}
