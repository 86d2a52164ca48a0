package lint

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

var (
	unfinished  = regexp.MustCompile(`\b(TODO|FIXME|XXX)\b(\(#\d+\))?`)
	openedIssue = regexp.MustCompile(`\(#\d+\)$`)
)

// TestUnfinished requires the number of an issue after each mark of unfinished
// work, as in TODO(#12).
func TestUnfinished(t *testing.T) {
	for _, s := range moduleSources(t) {
		for _, group := range s.file.Comments {
			for _, c := range group.List {
				for _, mark := range unfinished.FindAllString(c.Text, -1) {
					if !openedIssue.MatchString(mark) {
						complain(t, c.Pos(), "the mark "+mark, "finish it, or open an issue and write its number as in TODO(#12)")
					}
				}
			}
		}
	}
}

// TestPackageComments requires one comment for each package, in the form that go doc expects.
func TestPackageComments(t *testing.T) {
	for dir, list := range packages(t) {
		n := 0
		for _, s := range list {
			if s.file.Doc == nil {
				continue
			}
			n++
			want := "Package " + s.file.Name.Name + " "
			if s.file.Name.Name == "main" {
				want = "Command "
			}
			if text := s.file.Doc.Text(); !strings.HasPrefix(text, want) && !strings.HasPrefix(text, strings.TrimSpace(want)+"\n") {
				complain(t, s.file.Doc.Pos(), "a package comment that does not begin with "+want, "say in one sentence what the package is")
			}
		}
		if n != 1 {
			complain(t, list[0].file.Package, dir+" has "+itoa(n)+" package comments", "write one, in doc.go or in the file named after the package")
		}
	}
}

// TestDocComments requires a comment on each exported identifier.
func TestDocComments(t *testing.T) {
	for _, s := range moduleSources(t) {
		if s.test || s.file.Name.Name == "main" {
			continue
		}
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				checkFuncDoc(t, d)
			case *ast.GenDecl:
				checkDeclDoc(t, d)
			}
		}
	}
}

const writeContract = "write its contract: who owns what and until when, which errors, what may run at the same time"

func checkFuncDoc(t *testing.T, d *ast.FuncDecl) {
	t.Helper()
	if d.Name.IsExported() && d.Doc == nil && (d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type))) {
		complain(t, d.Type.Func, d.Name.Name+" has no comment", writeContract)
	}
}

// receiver returns the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// checkDeclDoc accepts a comment on a group for each of its constants and
// variables, and a comment at the end of a line for the names on that line.
func checkDeclDoc(t *testing.T, d *ast.GenDecl) {
	t.Helper()
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if !spec.Name.IsExported() {
				continue
			}
			if spec.Doc == nil && (d.Doc == nil || len(d.Specs) > 1) {
				complain(t, spec.Pos(), spec.Name.Name+" has no comment", writeContract)
			}
			checkMethodDocs(t, spec)
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				if name.IsExported() && spec.Doc == nil && spec.Comment == nil && d.Doc == nil {
					complain(t, name.Pos(), name.Name+" has no comment", writeContract)
				}
			}
		}
	}
}

// checkMethodDocs requires a comment on each method of an exported interface.
func checkMethodDocs(t *testing.T, spec *ast.TypeSpec) {
	t.Helper()
	in, ok := spec.Type.(*ast.InterfaceType)
	if !ok {
		return
	}
	for _, m := range in.Methods.List {
		for _, name := range m.Names {
			if name.IsExported() && m.Doc == nil && m.Comment == nil {
				complain(t, m.Pos(), spec.Name.Name+"."+name.Name+" has no comment", writeContract)
			}
		}
	}
}
