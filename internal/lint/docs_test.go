package lint

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const (
	dataModel = "docs/data-model.md"
	suite     = "store/storetest"
)

// proof is a reference to a test: a package, a function of its tests and perhaps
// a case; or storetest and the name of a subtest.
var proof = regexp.MustCompile("`([a-z/]+)\\.((?:Test|Fuzz)[A-Za-z0-9]+)(?:/([^`]+))?`|`storetest/([^`]+)`")

// TestDataModelProofs requires each test that docs/data-model.md names to exist.
func TestDataModelProofs(t *testing.T) {
	functions, literals := testNames(t)
	text := readDataModel(t)
	n := 0
	for i, line := range strings.Split(text, "\n") {
		for _, m := range proof.FindAllStringSubmatch(line, -1) {
			n++
			dir, function, name, subtest := m[1], m[2], m[3], m[4]
			switch {
			case subtest != "":
				if !literals[suite][subtest] {
					t.Errorf("%s:%d: package %s has no subtest %q: name one that proves the rule", dataModel, i+1, suite, subtest)
				}
			case !functions[dir+"."+function]:
				t.Errorf("%s:%d: package %s has no %s: name a test that proves the rule", dataModel, i+1, dir, function)
			case name != "" && !literals[dir][strings.ReplaceAll(name, "_", " ")] && !literals[dir][name]:
				t.Errorf("%s:%d: the tests of %s have no case %q: name one that proves the rule", dataModel, i+1, dir, name)
			}
		}
	}
	if n == 0 {
		t.Errorf("%s names no test: name those that prove its rules", dataModel)
	}
}

// TestDataModelRules requires docs/data-model.md to name each rule of package edm.
func TestDataModelRules(t *testing.T) {
	text := readDataModel(t)
	n := 0
	for _, s := range packages(t)["edm"] {
		ast.Inspect(s.file, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for _, name := range spec.Names {
				if strings.HasPrefix(name.Name, "Rule") {
					n++
					if !strings.Contains(text, "`"+name.Name+"`") {
						complain(t, name.Pos(), name.Name+" is not in "+dataModel, "add an item with the test that proves it")
					}
				}
			}
			return true
		})
	}
	if n == 0 {
		t.Error("package edm declares no constant Rule...: tell this test what they are called")
	}
}

func readDataModel(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(dataModel)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// testNames returns the functions of all tests, as "dir.TestName", and the
// string literals of each folder's tests and of the conformance suite.
func testNames(t *testing.T) (functions map[string]bool, literals map[string]map[string]bool) {
	functions, literals = map[string]bool{}, map[string]map[string]bool{}
	for _, s := range moduleSources(t) {
		dir := ownerOf(s.dir)
		if !s.test && dir != suite {
			continue
		}
		if literals[dir] == nil {
			literals[dir] = map[string]bool{}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				functions[dir+"."+n.Name.Name] = true
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil {
					literals[dir][text] = true
				}
			}
			return true
		})
	}
	return functions, literals
}
