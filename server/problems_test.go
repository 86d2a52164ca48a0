package server_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// stated is an error of the protocol as it is written in the source.
type stated struct {
	code, message string // message is "" if it depends on the request
}

// in reports whether a response in a transcript is the error.
func (p stated) in(response string) bool {
	return strings.Contains(response, p.code) && strings.Contains(response, p.message)
}

// statedProblems returns the code and message of each problem and refusal in the sources of
// the server.
func statedProblems(t *testing.T) []stated {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*.go", "internal/problem/*.go", "../internal/sharedkey/refusal.go"} {
		some, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, some...)
	}
	r := reader{constants: map[string]string{}}
	var sources []*ast.File
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, source)
		ast.Inspect(source, r.constant)
	}
	for _, source := range sources {
		ast.Inspect(source, r.problem)
	}
	if len(r.found) < 40 {
		t.Fatalf("found only %d problems in the sources", len(r.found))
	}
	return r.found
}

// reader finds problems in syntax trees.
type reader struct {
	constants map[string]string
	found     []stated
}

// constant records the texts of constants.
func (r *reader) constant(n ast.Node) bool {
	if spec, ok := n.(*ast.ValueSpec); ok {
		for i, name := range spec.Names {
			if i < len(spec.Values) {
				r.constants[name.Name] = r.text(spec.Values[i])
			}
		}
	}
	return true
}

// text returns the text of a constant expression, "" of any other.
func (r *reader) text(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if s, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return s
		}
	case *ast.Ident:
		return r.constants[e.Name]
	case *ast.SelectorExpr:
		return r.constants[e.Sel.Name]
	case *ast.BinaryExpr:
		if a, b := r.text(e.X), r.text(e.Y); a != "" && b != "" {
			return a + b
		}
	}
	return ""
}

// nameOf returns the name of a type or a function, without its package.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// problem records calls and literals that create a problem.
func (r *reader) problem(n ast.Node) bool {
	var p stated
	switch n := n.(type) {
	case *ast.CallExpr:
		if len(n.Args) != 2 {
			return true
		}
		switch nameOf(n.Fun) {
		case "Bad", "forbidden":
			p = stated{r.text(n.Args[0]), r.text(n.Args[1])}
		case "mismatch":
			p = stated{r.text(n.Args[0]), "using this " + r.text(n.Args[1])}
		}
	case *ast.CompositeLit:
		if name := nameOf(n.Type); name != "Problem" && name != "Refusal" {
			return true
		}
		for _, e := range n.Elts {
			field, ok := e.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			switch name, _ := field.Key.(*ast.Ident); strings.ToLower(name.Name) {
			case "code":
				p.code = r.text(field.Value)
			case "message":
				p.message = r.text(field.Value)
			}
		}
	}
	if p.code != "" {
		r.found = append(r.found, p)
	}
	return true
}
