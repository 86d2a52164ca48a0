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

// stated is an error of the protocol as the source states it.
type stated struct {
	code, message string // message is "" if it depends on the request
}

// in reports whether an answer in a transcript is the error.
func (p stated) in(answer string) bool {
	return strings.Contains(answer, p.code) && strings.Contains(answer, p.message)
}

// statedProblems returns every error that the sources of the server can answer:
// the code and message of each problem and refusal that is written there.
func statedProblems(t *testing.T) []stated {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	r := reader{constants: map[string]string{}}
	var sources []*ast.File
	for _, file := range append(files, "../internal/sharedkey/refusal.go") {
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
		t.Fatalf("only %d problems found in the sources", len(r.found))
	}
	return r.found
}

// reader finds problems in syntax trees.
type reader struct {
	constants map[string]string
	found     []stated
}

// constant takes note of the texts that have a name.
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

// text returns the text that an expression stands for, "" if it depends on more
// than constants.
func (r *reader) text(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if s, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return s
		}
	case *ast.Ident:
		return r.constants[e.Name]
	case *ast.BinaryExpr:
		if a, b := r.text(e.X), r.text(e.Y); a != "" && b != "" {
			return a + b
		}
	}
	return ""
}

// problem takes note of calls and literals that make a problem.
func (r *reader) problem(n ast.Node) bool {
	var p stated
	switch n := n.(type) {
	case *ast.CallExpr:
		name, ok := n.Fun.(*ast.Ident)
		if !ok || len(n.Args) != 2 {
			return true
		}
		switch name.Name {
		case "bad", "forbidden":
			p = stated{r.text(n.Args[0]), r.text(n.Args[1])}
		case "mismatch":
			p = stated{r.text(n.Args[0]), "using this " + r.text(n.Args[1])}
		}
	case *ast.CompositeLit:
		if name, ok := n.Type.(*ast.Ident); !ok || name.Name != "problem" && name.Name != "Refusal" {
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
