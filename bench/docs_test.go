package bench_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/bench"
)

var (
	// documented matches a command that runs benchmarks.
	documented = regexp.MustCompile("go test [^`\\n]*-bench[ =][^`\\n]*")
	// pattern and folder are its pattern and the folder of its package.
	pattern   = regexp.MustCompile(`-bench[ =]'?([^' ]+)`)
	folder    = regexp.MustCompile(` \./([a-z/]*[a-z])\b`)
	benchmark = regexp.MustCompile(`(?m)^func (Benchmark\w*)\(b \*testing\.B\)`)
)

// TestDocumentedBenchmarks checks that each command in the pages and comments that runs
// benchmarks matches one: go test succeeds even if none does.
func TestDocumentedBenchmarks(t *testing.T) {
	n := 0
	for _, glob := range []string{"../*.md", "../docs/*.md", "../*/doc.go", "../*/*/doc.go"} {
		files, err := filepath.Glob(glob)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, command := range documented.FindAllString(string(text), -1) {
				n++
				p, dir := pattern.FindStringSubmatch(command), folder.FindStringSubmatch(command)
				if p == nil || dir == nil {
					t.Errorf("%s: %q: name a pattern and a package such as ./bench", name, command)
					continue
				}
				if dir[1] != "bench" {
					p[1], _, _ = strings.Cut(p[1], "/") // the cases are not known
				}
				if !matchesAny(t, p[1], namesOf(t, dir[1])) {
					t.Errorf("%s: %q runs no benchmark of %s", name, command, dir[1])
				}
			}
		}
	}
	if n < 3 {
		t.Errorf("%d commands found, want those of CONTRIBUTING.md, docs/format.md and doc.go", n)
	}
}

// namesOf returns the names of the benchmarks of a package, those of package bench whole,
// of others without their cases.
func namesOf(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	if dir == "bench" {
		for _, shapeName := range bench.ShapeNames() {
			shape, err := bench.ShapeOf(shapeName, *entities)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range bench.Workloads() {
				if w.Fits(shapeName, shape.Len()) {
					names = append(names, "BenchmarkStore/"+caseName(w, shape))
				}
			}
		}
		for _, layout := range queryLayouts {
			for _, c := range queryCases {
				names = append(names, "BenchmarkQuery/"+layout.name+"/"+c.name)
			}
		}
		return names
	}
	files, err := filepath.Glob(filepath.Join("..", dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range benchmark.FindAllSubmatch(text, -1) {
			names = append(names, string(m[1]))
		}
	}
	return names
}

// matchesAny reports whether go test runs one of names with the pattern: each part of the
// pattern between slashes must match that part of the name.
func matchesAny(t *testing.T, pattern string, names []string) bool {
	t.Helper()
	var parts []*regexp.Regexp
	for part := range strings.SplitSeq(pattern, "/") {
		re, err := regexp.Compile(part)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, re)
	}
	for _, name := range names {
		of := strings.Split(name, "/")
		if len(parts) > len(of) {
			continue
		}
		matches := true
		for i, re := range parts {
			matches = matches && re.MatchString(of[i])
		}
		if matches {
			return true
		}
	}
	return false
}
