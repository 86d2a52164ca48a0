package lint

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// publicPackages lists the packages that an embedder imports.
var publicPackages = []string{
	"edm", "engine", "filter", "server", "server/faults", "store", "store/storetest", "tabletest", "vfs", "vfs/errorfs",
}

// apiExceptions lists the exported declarations that may mention an internal
// type, by package and name, each with its reason.
var apiExceptions = map[string]string{}

// TestPublicAPI checks that go doc of a public package shows all that a caller
// can use: no exported type is an alias of a type in an internal package, and no
// exported declaration mentions one.
func TestPublicAPI(t *testing.T) {
	used := map[string]bool{}
	for dir, list := range packages(t) {
		if !slices.Contains(publicPackages, dir) {
			continue
		}
		for _, s := range list {
			for _, d := range s.file.Decls {
				checkExported(t, s, d, used)
			}
		}
	}
	for name := range apiExceptions {
		if !used[name] {
			t.Errorf("apiExceptions lists %s, which needs no exception", name)
		}
	}
}

// checkExported reports the internal types that an exported declaration
// mentions. It marks the exceptions that it meets in used.
func checkExported(t *testing.T, s *source, d ast.Decl, used map[string]bool) {
	t.Helper()
	check := func(name string, n ast.Node) {
		if n == nil {
			return
		}
		internalTypes(s, n, func(pos token.Pos, of string) {
			key := s.dir + "." + name
			if _, ok := apiExceptions[key]; ok {
				used[key] = true
				return
			}
			complain(t, pos, key+" mentions "+of, "an embedder cannot see that type; export a type of "+s.dir+", or list the reason in apiExceptions")
		})
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && (d.Recv == nil || exportedReceiver(d.Recv)) {
			check(d.Name.Name, d.Type)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if spec.Name.IsExported() {
					check(spec.Name.Name, spec.Type)
				}
			case *ast.ValueSpec:
				if spec.Type != nil && spec.Names[0].IsExported() {
					check(spec.Names[0].Name, spec.Type)
				}
			}
		}
	}
}

// exportedReceiver reports whether the type of a method is exported.
func exportedReceiver(recv *ast.FieldList) bool {
	typ := recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	id, ok := typ.(*ast.Ident)
	return ok && id.IsExported()
}

// internalTypes calls report for each type of an internal package that n
// mentions, except in unexported fields of structs and methods of interfaces.
func internalTypes(s *source, n ast.Node, report func(pos token.Pos, of string)) {
	fields := func(list *ast.FieldList) bool {
		for _, f := range list.List {
			if len(f.Names) == 0 || slices.ContainsFunc(f.Names, (*ast.Ident).IsExported) {
				internalTypes(s, f.Type, report)
			}
		}
		return false
	}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StructType:
			return fields(n.Fields)
		case *ast.InterfaceType:
			return fields(n.Methods)
		case *ast.SelectorExpr:
			id, ok := n.X.(*ast.Ident)
			if !ok {
				return true
			}
			if of := importOf(s, id.Name); strings.Contains("/"+of+"/", "/internal/") {
				report(n.Pos(), of+"."+n.Sel.Name)
			}
		}
		return true
	})
}

// importOf returns the path of the package that s imports as name.
func importOf(s *source, name string) string {
	for _, i := range s.file.Imports {
		p := importPath(i)
		if i.Name != nil && i.Name.Name == name || i.Name == nil && path.Base(p) == name {
			return p
		}
	}
	return ""
}
