package lint

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

// wayStep is a numbered step of an entity's way in the page of the design, with
// its functions after "Code:".
var wayStep = regexp.MustCompile(`(?m)^(\d+)\. .*\n(?:   .*\n)*?   Code: ((?:.*\n)(?:   .*\n)*)`)

// wayToken is a function of such a step, or a sign of its relation to others: the
// function before a colon calls those after it; those in parentheses are called by
// the function before them.
var wayToken = regexp.MustCompile("`[A-Za-z]+\\.[A-Za-z]+`|[:()]")

// TestDesignWay requires each function on the way of an entity to be called by the
// function that the page names, directly or through its package.
func TestDesignWay(t *testing.T) {
	calls := callsOf(t)
	steps := wayStep.FindAllStringSubmatch(string(readRepositoryFile(t, designPage)), -1)
	if len(steps) < 10 {
		t.Fatalf("%s has %d steps of the way of an entity: adapt this test", designPage, len(steps))
	}
	for _, step := range steps {
		var head, inner []string // callers of the functions after the colon, and in the parentheses
		last, deep := "", false
		for _, token := range wayToken.FindAllString(step[2], -1) {
			switch token {
			case ":":
				head = []string{last}
			case "(":
				deep, inner = true, []string{last}
			case ")":
				deep = false
			default:
				last = strings.Trim(token, "`")
				callers := head
				if deep {
					callers = inner
					inner = append(inner, last)
				}
				if len(callers) > 0 && !calls.reach(callers, last) {
					t.Errorf("%s, step %s: %s does not call %s: name the caller", designPage, step[1], strings.Join(callers, " or "), last)
				}
			}
		}
	}
}

// function is a function or method that the module declares.
type function struct {
	dir, name string          // of its package; Type.Method or package.Name
	names     map[string]bool // in its body
}

// functions maps the last name of each function to those that have it.
type functions map[string][]*function

func callsOf(t *testing.T) functions {
	t.Helper()
	all := functions{}
	for _, s := range moduleSources(t) {
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || s.test || f.Body == nil {
				continue
			}
			of := s.file.Name.Name
			if f.Recv != nil {
				of = receiver(f.Recv.List[0].Type)
			}
			made := &function{s.dir, of + "." + f.Name.Name, map[string]bool{}}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					made.names[id.Name] = true
				}
				return true
			})
			all[f.Name.Name] = append(all[f.Name.Name], made)
		}
	}
	return all
}

// reach reports whether the last name of callee is in the body of one of callers,
// or of a function of the same package that it calls.
func (fs functions) reach(callers []string, callee string) bool {
	want := callee[strings.IndexByte(callee, '.')+1:]
	seen := map[string]bool{}
	var visit func(f *function) bool
	visit = func(f *function) bool {
		if f.names[want] {
			return true
		}
		if seen[f.dir+"."+f.name] {
			return false
		}
		seen[f.dir+"."+f.name] = true
		for name := range f.names {
			for _, g := range fs[name] {
				if g.dir == f.dir && visit(g) {
					return true
				}
			}
		}
		return false
	}
	for _, c := range callers {
		last := c[strings.IndexByte(c, '.')+1:]
		for _, f := range fs[last] {
			if f.name == c && visit(f) {
				return true
			}
		}
	}
	return false
}
