package lint

import (
	"go/ast"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	maxFileLines     = 500
	maxTestFileLines = 800 // tables of cases grow longer than code
	maxPackageLines  = 3000
	maxFunctionLines = 70
	maxFileBytes     = 200 << 10
)

// lines returns the number of lines of s.
func (s *source) lines() int { return files.File(s.file.FileStart).LineCount() }

func TestFileSize(t *testing.T) {
	for _, s := range moduleSources(t) {
		limit := maxFileLines
		if s.test {
			limit = maxTestFileLines
		}
		if n := s.lines(); n > limit {
			t.Errorf("%s:%d: %d lines, at most %d are allowed: give each idea its own file", s.path, limit+1, n, limit)
		}
	}
}

// testSupport lists the packages that only tests import. They have no limit of
// lines.
var testSupport = []string{"store/storetest", "store/postgres/pgtest", "tabletest", "vfs/errorfs", "vfs/internal/crash", "internal/failing", "internal/race"}

func TestPackageSize(t *testing.T) {
	for dir, list := range packages(t) {
		if slices.Contains(testSupport, dir) {
			continue
		}
		n := 0
		for _, s := range list {
			n += s.lines()
		}
		if n > maxPackageLines {
			t.Errorf("%s: %d lines without tests, at most %d are allowed: split what can be said in a sentence of its own", dir, n, maxPackageLines)
		}
	}
}

func TestFunctionSize(t *testing.T) {
	for _, s := range moduleSources(t) {
		if s.test {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.FuncDecl, *ast.FuncLit:
				if lines := bodyLines(n); lines > maxFunctionLines {
					complain(t, functionStart(n), "a function of "+itoa(lines)+" lines", "at most "+itoa(maxFunctionLines)+" are allowed; name its steps")
				}
			}
			return true
		})
	}
}

// functionStart returns the position of a function without its comment.
func functionStart(n ast.Node) token.Pos {
	if d, ok := n.(*ast.FuncDecl); ok {
		return d.Type.Func
	}
	return n.Pos()
}

func bodyLines(n ast.Node) int {
	return files.Position(n.End()).Line - files.Position(functionStart(n)).Line + 1
}

// TestPackageNames refuses names without a meaning in this field.
func TestPackageNames(t *testing.T) {
	banned := []string{"util", "utils", "common", "types", "base", "helper", "helpers", "misc", "shared"}
	for dir, list := range packages(t) {
		for _, s := range list {
			if name := s.file.Name.Name; slices.Contains(banned, name) || slices.Contains(banned, path.Base(dir)) {
				complain(t, s.file.Package, "package "+name+" in "+dir, "name it for what it is about")
			}
		}
	}
}

// TestFormatFiles requires a format.go for each kind of file.
func TestFormatFiles(t *testing.T) {
	all := packages(t)
	for _, dir := range []string{"wal", "sstable", "internal/manifest"} {
		list, ok := all[dir]
		if ok && !slices.ContainsFunc(list, func(s *source) bool { return path.Base(s.path) == "format.go" }) {
			t.Errorf("%s has no format.go: keep its diagram, constants, encoding and decoding there", dir)
		}
	}
}

// TestBlobs keeps large files out of the repository.
func TestBlobs(t *testing.T) {
	for _, name := range committed(t) {
		if slices.Contains(strings.Split(name, "/"), "testdata") {
			continue
		}
		info, err := os.Lstat(filepath.Join(root, filepath.FromSlash(name)))
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > maxFileBytes {
			t.Errorf("%s: %d bytes, at most %d are allowed outside testdata: make it by a command, or move it to testdata", name, info.Size(), maxFileBytes)
		}
	}
}

// TestBenchmarkRows requires each table of BENCHMARKS.md to be repeatable: its
// section, or the text before the first section, has a code block with the
// command, and names commit and machine.
func TestBenchmarkRows(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "BENCHMARKS.md"))
	if os.IsNotExist(err) {
		return // there are no figures
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range unprovenTables(string(text)) {
		t.Errorf("BENCHMARKS.md: %s", what)
	}
}

var (
	codeBlock = regexp.MustCompile("(?m)^```")
	tableRow  = regexp.MustCompile(`(?m)^\|`)
	commit    = regexp.MustCompile(`(?i)commit`)
	machine   = regexp.MustCompile(`(?i)machine|\bcpu\b|\bcores?\b`)
)

// unprovenTables returns what the sections with tables lack.
func unprovenTables(text string) []string {
	var missing []string
	sections := strings.Split("\n"+text, "\n## ")
	for _, section := range sections[1:] {
		if !tableRow.MatchString(section) {
			continue
		}
		title, _, _ := strings.Cut(section, "\n")
		for _, need := range []struct {
			what string
			re   *regexp.Regexp
		}{{"no command in a code block", codeBlock}, {"no commit", commit}, {"no machine", machine}} {
			if !need.re.MatchString(section) && !need.re.MatchString(sections[0]) {
				missing = append(missing, "section "+title+" has a table and "+need.what+": say how to get the numbers again")
			}
		}
	}
	return missing
}

func TestUnprovenTables(t *testing.T) {
	const proven = "## Gets\n```\ngo test\n```\nCommit abc, 2 cores\n| a | b |\n"
	for _, c := range []struct {
		name, text string
		want       int
	}{
		{"no table", "# B\n## Gets\ntext\n", 0},
		{"all there", "# B\n" + proven, 0},
		{"all missing", "# B\n## Gets\n| a | b |\n", 3},
		{"said once for all", "# B\ncommit abc, machine m\n## Gets\n```\ngo test\n```\n| a |\n", 0},
		{"another section's command", "# B\n" + proven + "## Puts\n| a |\n", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := unprovenTables(c.text); len(got) != c.want {
				t.Errorf("%q misses %q, want %d things", c.text, got, c.want)
			}
		})
	}
}
