package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const azuritePage = "docs/azurite.md"

// azuriteProof is the test of a difference: a function of e2e and perhaps a case.
var azuriteProof = regexp.MustCompile("\\| `e2e\\.(Test[A-Za-z0-9]+)(?:/[^`]+)?` \\|$")

// TestAzuriteProofs requires each difference of docs/azurite.md to end with a test that
// exists.
func TestAzuriteProofs(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "e2e", "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the files of e2e are %v, %v", files, err)
	}
	var tests strings.Builder
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		tests.Write(text)
	}
	_, table, _ := strings.Cut(string(readRepositoryFile(t, azuritePage)), "\n## Differences\n")
	n := 0
	for line := range strings.Lines(table) {
		line = strings.TrimSuffix(line, "\n")
		if !strings.HasPrefix(line, "| ") || strings.HasSuffix(line, "| test |") {
			continue
		}
		n++
		if m := azuriteProof.FindStringSubmatch(line); m == nil {
			t.Errorf("%s: %q: end it with a test of e2e", azuritePage, line)
		} else if !strings.Contains(tests.String(), "\nfunc "+m[1]+"(t *testing.T)") {
			t.Errorf("%s: e2e has no %s: name a test that proves the difference", azuritePage, m[1])
		}
	}
	if n == 0 {
		t.Errorf("%s has no differences: adapt this test", azuritePage)
	}
}
