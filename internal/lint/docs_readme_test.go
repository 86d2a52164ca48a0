package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReadmeExample wants each line of the program in README.md to stand in the
// engine's Example, which is compiled and run, but for what makes it a program.
func TestReadmeExample(t *testing.T) {
	text := string(readRepositoryFile(t, "README.md"))
	example := map[string]bool{}
	for _, line := range strings.Split(string(readRepositoryFile(t, "engine/example_test.go")), "\n") {
		example[strings.TrimSpace(line)] = true
	}
	_, program, ok := strings.Cut(text, "\n```go\n")
	program, _, ok2 := strings.Cut(program, "\n```\n")
	if !ok || !ok2 {
		t.Fatal("README.md has no block of Go: show how to embed the engine")
	}
	for _, line := range strings.Split(program, "\n") {
		switch line = strings.TrimSpace(line); line {
		case "package main", "func main() {", `dir := "orders"`:
		default:
			if !example[line] {
				t.Errorf("README.md: %q is not in the Example of package engine: show code that is run by a test", line)
			}
		}
	}
}

// link is a Markdown link to a file of the repository.
var link = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)

// TestLinks wants every file that the documentation links to to be there.
func TestLinks(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), filepath.FromSlash(m[1]))); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			}
		}
	}
}
