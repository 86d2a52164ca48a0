// Command apicount counts the exported identifiers of the packages of this
// module: functions, types, constants, variables and methods. Fields and the
// methods of unexported types are not counted.
//
//	go run ./apicount                     from internal/tools: every package
//	go run ./apicount -base REVISION      beside the counts of another commit
//	go run ./apicount -public             only the packages that embedders import
//	go run ./apicount -list engine        the names of one package
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"slices"
	"strings"
	"text/tabwriter"
)

// public lists the packages that embedders import.
var public = []string{"edm", "engine", "filter", "server", "server/faults", "store", "store/storetest", "tabletest", "vfs", "vfs/errorfs"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "apicount:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("apicount", flag.ContinueOnError)
	base := flags.String("base", "", "compare with this `revision`")
	onlyPublic := flags.Bool("public", false, "count only the packages that embedders import")
	list := flags.String("list", "", "print the names of this `package`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	now, err := exported(ctx, "")
	if err != nil {
		return err
	}
	if *list != "" {
		for _, n := range now[*list] {
			fmt.Fprintf(out, "%s %s\n", n.kind, n.text)
		}
		return nil
	}
	var before map[string][]name
	if *base != "" {
		if before, err = exported(ctx, *base); err != nil {
			return err
		}
	}
	keep := func(dir string) bool { return !*onlyPublic || slices.Contains(public, dir) }
	return print(out, before, now, keep)
}

// name is one exported identifier; a method is Type.Name.
type name struct{ kind, text string }

var kinds = []string{"func", "type", "const", "var", "method"}

// exported returns the exported names of each package, at a revision or, if it
// is empty, in the work tree. Keys are folders relative to the root.
func exported(ctx context.Context, revision string) (map[string][]name, error) {
	list := []string{"ls-files", "--full-name", ":/*.go"}
	if revision != "" {
		list = []string{"ls-tree", "-r", "--full-tree", "--name-only", revision}
	}
	files, err := git(ctx, list...)
	if err != nil {
		return nil, err
	}
	root, err := git(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	all := map[string][]name{}
	for _, file := range strings.Fields(string(files)) {
		if !counted(file) {
			continue
		}
		var source []byte
		if revision != "" {
			source, err = git(ctx, "show", revision+":"+file)
		} else {
			source, err = os.ReadFile(path.Join(strings.TrimSpace(string(root)), file))
			if errors.Is(err, os.ErrNotExist) {
				continue // deleted, and not committed yet
			}
		}
		if err != nil {
			return nil, err
		}
		names, err := parse(file, source)
		if err != nil {
			return nil, err
		}
		dir := path.Dir(file)
		all[dir] = append(all[dir], names...)
	}
	for dir, names := range all {
		slices.SortFunc(names, func(a, b name) int { return strings.Compare(a.text, b.text) })
		all[dir] = slices.Compact(names) // a file for each system may declare the same name
	}
	return all, nil
}

// counted reports whether a file belongs to a package that others can import.
func counted(file string) bool {
	if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
		return false
	}
	for _, folder := range []string{"testdata", "cmd", "examples", "e2e", "tools", "peers", "node_modules"} {
		if slices.Contains(strings.Split(path.Dir(file), "/"), folder) {
			return false
		}
	}
	return true
}

// parse returns the exported names that one file declares.
func parse(file string, source []byte) ([]name, error) {
	f, err := parser.ParseFile(token.NewFileSet(), file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if f.Name.Name == "main" {
		return nil, nil
	}
	var names []name
	add := func(kind, text string) {
		for _, part := range strings.Split(text, ".") {
			if !ast.IsExported(part) {
				return
			}
		}
		names = append(names, name{kind, text})
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add("func", d.Name.Name)
			} else {
				add("method", receiver(d.Recv.List[0].Type)+"."+d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, id := range spec.Names {
						add(d.Tok.String(), id.Name)
					}
				case *ast.TypeSpec:
					add("type", spec.Name.Name)
					if in, ok := spec.Type.(*ast.InterfaceType); ok {
						for _, m := range in.Methods.List {
							for _, id := range m.Names {
								add("method", spec.Name.Name+"."+id.Name)
							}
						}
					}
				}
			}
		}
	}
	return names, nil
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

// print writes a row for each package with an exported name, and the sum.
func print(out io.Writer, before, now map[string][]name, keep func(string) bool) error {
	var dirs []string
	for _, side := range []map[string][]name{before, now} {
		for dir := range side {
			if keep(dir) && !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	slices.Sort(dirs)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "package\t%s\tall\tbefore\t\n", strings.Join(kinds, "\t"))
	var sum [6]int
	sumBefore := 0
	for _, dir := range dirs {
		fmt.Fprintf(w, "%s\t", dir)
		for i, kind := range kinds {
			n := 0
			for _, id := range now[dir] {
				if id.kind == kind {
					n++
				}
			}
			sum[i] += n
			fmt.Fprintf(w, "%d\t", n)
		}
		fmt.Fprintf(w, "%d\t%d\t\n", len(now[dir]), len(before[dir]))
		sum[len(kinds)] += len(now[dir])
		sumBefore += len(before[dir])
	}
	fmt.Fprint(w, "sum\t")
	for _, n := range sum {
		fmt.Fprintf(w, "%d\t", n)
	}
	fmt.Fprintf(w, "%d\t\n", sumBefore)
	return w.Flush()
}

// git runs a git command and returns its output.
func git(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	var failed bytes.Buffer
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(failed.String()))
	}
	return out, nil
}
