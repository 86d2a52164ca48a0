package lint

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

const designPage = "docs/design.md"

// TestDesignMap requires docs/design.md to list each row of the table of layers,
// and each library with its reason.
func TestDesignMap(t *testing.T) {
	text := string(readRepositoryFile(t, designPage))
	for _, l := range layers {
		if !strings.Contains(text, "\n| `"+l.dir+"` | ") {
			t.Errorf("%s: the table of packages has no row of %s: say in one sentence what it is", designPage, l.dir)
		}
	}
	for dir := range packages(t) {
		if ownerOf(dir) != dir && !strings.Contains(text, "\n| `"+dir+"` | ") && !strings.HasPrefix(dir, "cmd/") {
			t.Errorf("%s: the table of packages has no row of %s: say in one sentence what it is", designPage, dir)
		}
	}
	for module := range foreign {
		if !strings.Contains(text, "`"+module+"`") && !strings.Contains(text, "`"+module[strings.LastIndex(module, "/")+1:]+"`") {
			t.Errorf("%s: no reason for %s: say why and where it is used", designPage, module)
		}
	}
}

// named is a name of the code in a page: Type.Method, Type.field or package.Name.
var named = regexp.MustCompile("`([A-Za-z]+\\.[A-Za-z]+)`")

// elsewhere matches names of files and of the standard library.
var elsewhere = regexp.MustCompile(`\.go$|^(bytes|http)\.`)

// TestDesignNames requires every name in docs/design.md to exist in the code.
func TestDesignNames(t *testing.T) {
	there := map[string]bool{}
	for _, s := range moduleSources(t) {
		if !s.test {
			s.names(there)
		}
	}
	for _, m := range named.FindAllStringSubmatch(string(readRepositoryFile(t, designPage)), -1) {
		if name := m[1]; !there[name] && !elsewhere.MatchString(name) {
			t.Errorf("%s names %s, which does not exist", designPage, name)
		}
	}
}

// names adds what the file declares: package.Name, Type.Method and Type.field.
func (s *source) names(to map[string]bool) {
	for _, d := range s.file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			of := s.file.Name.Name
			if d.Recv != nil {
				of = receiver(d.Recv.List[0].Type)
			}
			to[of+"."+d.Name.Name] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				s.specNames(spec, to)
			}
		}
	}
}

func (s *source) specNames(spec ast.Spec, to map[string]bool) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, n := range spec.Names {
			to[s.file.Name.Name+"."+n.Name] = true
		}
	case *ast.TypeSpec:
		to[s.file.Name.Name+"."+spec.Name.Name] = true
		if body, ok := spec.Type.(*ast.StructType); ok {
			for _, field := range body.Fields.List {
				for _, n := range field.Names {
					to[spec.Name.Name+"."+n.Name] = true
				}
			}
		}
	}
}
