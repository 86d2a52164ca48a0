package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const (
	root       = "../.." // from this folder
	modulePath = "github.com/tablerock-db/tablerock"
)

// source is one Go file of the main module, for whatever system it is built.
type source struct {
	path string // from the root, with slashes
	dir  string // the package's row in the table of layers
	test bool
	file *ast.File
}

var files = token.NewFileSet()

// sources parses the main module once.
var sources = sync.OnceValues(func() ([]*source, error) {
	var all []*source
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipDir(name)
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		p := filepath.ToSlash(rel)
		file, err := parser.ParseFile(files, p, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		all = append(all, &source{path: p, dir: path.Dir(p), test: strings.HasSuffix(p, "_test.go"), file: file})
		return nil
	})
	return all, err
})

// skipDir skips what is not in the main module: data, hidden folders, nested
// modules.
func skipDir(name string) error {
	if name == root {
		return nil
	}
	base := filepath.Base(name)
	if base == "testdata" || base == "node_modules" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func moduleSources(t *testing.T) []*source {
	t.Helper()
	all, err := sources()
	if err != nil {
		t.Fatalf("read the module: %v", err)
	}
	if len(all) == 0 {
		t.Fatalf("no Go files below %s", root)
	}
	return all
}

// packages groups the files that are not tests by folder.
func packages(t *testing.T) map[string][]*source {
	m := map[string][]*source{}
	for _, s := range moduleSources(t) {
		if !s.test {
			m[s.dir] = append(m[s.dir], s)
		}
	}
	return m
}

// complain reports a broken rule at a position, with its remedy.
func complain(t *testing.T, pos token.Pos, what, remedy string) {
	t.Helper()
	p := files.Position(pos)
	t.Errorf("%s:%d: %s: %s", p.Filename, p.Line, what, remedy)
}

// importPath returns the path of an import.
func importPath(i *ast.ImportSpec) string {
	p, err := strconv.Unquote(i.Path.Value)
	if err != nil {
		panic(err) // the parser has accepted it
	}
	return p
}

// imports reports whether s imports one of paths.
func (s *source) imports(paths ...string) bool {
	for _, i := range s.file.Imports {
		for _, p := range paths {
			if importPath(i) == p {
				return true
			}
		}
	}
	return false
}

// uses calls f for each name that s takes from the package imported as path.
func (s *source) uses(importedPath string, f func(pos token.Pos, name string)) {
	local := ""
	for _, i := range s.file.Imports {
		if importPath(i) != importedPath {
			continue
		}
		local = path.Base(importedPath)
		if strings.HasPrefix(local, "v") && len(local) == 2 { // math/rand/v2
			local = path.Base(path.Dir(importedPath))
		}
		if i.Name != nil {
			local = i.Name.Name
		}
	}
	if local == "" {
		return
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok && id.Name == local {
				f(sel.Pos(), sel.Sel.Name)
			}
		}
		return true
	})
}

// committed returns the paths of all files that git tracks, in every module.
func committed(t *testing.T) []string {
	t.Helper()
	cmd := exec.Command("git", "-c", "safe.directory=*", "ls-files", "-z") // another user may own the clone
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
}

// anywhere reports whether dir is one of folders or below one.
func anywhere(dir string, folders ...string) bool {
	for _, f := range folders {
		if dir == f || strings.HasPrefix(dir, f+"/") {
			return true
		}
	}
	return false
}
