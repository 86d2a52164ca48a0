package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEmbedExample compares each line of the program in docs/embed.md with the
// engine's Example, which is compiled and run.
func TestEmbedExample(t *testing.T) {
	const page = "docs/embed.md"
	text := string(readRepositoryFile(t, page))
	example := map[string]bool{}
	for _, line := range strings.Split(string(readRepositoryFile(t, "engine/example_test.go")), "\n") {
		example[strings.TrimSpace(line)] = true
	}
	_, program, ok := strings.Cut(text, "\n```go\n")
	program, _, ok2 := strings.Cut(program, "\n```\n")
	if !ok || !ok2 {
		t.Fatalf("%s has no block of Go: show how to embed the engine", page)
	}
	for _, line := range strings.Split(program, "\n") {
		switch line = strings.TrimSpace(line); line {
		case "package main", "func main() {", `dir := "orders"`: // these make it a program
		default:
			if !example[line] {
				t.Errorf("%s: %q is not in the Example of package engine: show code that a test runs", page, line)
			}
		}
	}
}

var (
	// link is a Markdown link to a file of the repository, a heading of the same page, or both.
	link = regexp.MustCompile(`\]\(([^)#:]*)(?:#([^)]*))?\)`)
	// fenced is a block of code.
	fenced = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	// heading is a heading of a page.
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	// noAnchor is what GitHub leaves out of the anchor of a heading.
	noAnchor = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors returns the anchors of a page's headings.
func anchors(page []byte) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllSubmatch(fenced.ReplaceAll(page, nil), -1) {
		text := noAnchor.ReplaceAllString(strings.ToLower(string(m[1])), "")
		all[strings.ReplaceAll(text, " ", "-")] = true
	}
	return all
}

// TestLinks checks that every file and every heading that a page links to exists.
func TestLinks(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			to := page
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(page), filepath.FromSlash(m[1]))
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, m[1])
			} else if target, err := os.ReadFile(to); m[2] != "" && (err != nil || !anchors(target)[m[2]]) {
				t.Errorf("%s links to #%s of %s, which has no such heading", page, m[2], to)
			}
		}
	}
}
