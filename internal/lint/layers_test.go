package lint

import (
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"
)

// layer is one package, or with a final /... all packages below a folder, and the
// packages of this module that its non-test files may import.
type layer struct {
	dir     string
	imports []string
}

const anything = "anything"

// layers lists the packages of the project from the bottom up. A new package
// starts with its row here and in docs/design.md. P/internal/... share P's row.
var layers = []layer{
	{"edm", nil},
	{"vfs", nil},
	{"vfs/errorfs", []string{"vfs"}},
	{"internal/corrupt", nil},
	{"internal/filename", nil},
	{"internal/feature", nil},
	{"internal/predicate", []string{"edm"}},
	{"internal/arena", nil},
	{"internal/cache", []string{"internal/arena"}},
	{"codec", []string{"edm", "internal/corrupt"}},
	{"filter", []string{"edm", "internal/predicate"}},
	{"wal", []string{"vfs", "internal/corrupt", "internal/feature"}},
	{"sstable", []string{"vfs", "internal/corrupt", "internal/feature", "edm", "codec", "internal/predicate", "internal/arena", "internal/cache"}},
	{"internal/memtable", []string{"edm", "codec", "internal/arena"}},
	{"internal/manifest", []string{"vfs", "internal/corrupt", "internal/filename", "internal/feature", "wal"}},
	{"internal/merge", []string{"codec"}},
	{"internal/lsm", []string{
		"vfs", "internal/corrupt", "internal/filename", "edm", "codec", "internal/predicate", "internal/arena", "internal/cache",
		"sstable", "internal/memtable", "internal/manifest", "internal/merge",
	}},
	{"internal/archive", []string{
		"vfs", "internal/corrupt", "internal/feature", "internal/filename", "edm", "codec", "internal/arena", "internal/manifest", "wal",
	}},
	{"store", []string{"edm", "filter", "internal/corrupt", "internal/feature"}},
	{"store/storetest", []string{"edm", "filter", "store"}},
	{"engine", []string{
		"edm", "vfs", "internal/corrupt", "internal/filename", "internal/predicate", "internal/arena", "internal/cache", "codec", "filter", "wal",
		"sstable", "internal/memtable", "internal/manifest", "internal/merge", "internal/lsm", "internal/archive", "store",
	}},
	{"backup", []string{
		"vfs", "internal/corrupt", "internal/feature", "internal/filename", "internal/manifest", "wal", "store", "engine", "edm", "internal/archive",
	}},
	{"backup/backuptest", []string{"backup"}},
	{"internal/odata", []string{"edm", "store"}},
	{"internal/odata/batch", nil},
	{"store/remote", []string{"edm", "filter", "store", "internal/odata"}},
	{"store/postgres/pgtest", nil},
	{"store/postgres", []string{"edm", "filter", "codec", "store", "internal/corrupt"}},
	{"internal/sharedkey", []string{"edm", "filter", "store"}},
	{"internal/front", nil},
	{"server", []string{"edm", "filter", "store", "internal/odata", "internal/odata/batch", "internal/sharedkey"}}, // never engine
	{"server/faults", []string{"server", "server/internal/problem", "edm", "internal/odata"}},
	{"internal/transfer", []string{"edm", "filter", "store", "internal/odata"}},
	{"internal/keyspan", []string{"filter"}},
	{"internal/livestate", nil},
	{"internal/webguard", nil},
	{"internal/tempfile", []string{"vfs"}},
	{"internal/explorer", []string{
		"edm", "filter", "store", "internal/odata", "internal/sharedkey", "internal/transfer", "internal/keyspan", "internal/livestate", "internal/webguard",
		"internal/tempfile",
	}},
	{"tabletest", []string{"engine", "server", "server/faults", "internal/front", "internal/sharedkey", "internal/transfer", "store", "edm", "vfs"}},
	{"internal/failing", []string{"edm", "engine", "server", "store", "vfs"}},
	{"internal/race", nil},
	{"internal/lint", nil},
	{"bench/...", []string{anything}},
	{"fuzz/...", []string{anything}},
	{"examples/...", []string{anything}},
	{"cmd/tablerock/...", []string{anything}},
}

// foreign lists the packages that may import a module other than this one: one or
// a few for each library.
var foreign = map[string][]string{
	"github.com/cespare/xxhash/v2":       {"codec", "wal", "sstable", "internal/manifest", "internal/lsm", "internal/archive", "engine", "backup"},
	"github.com/klauspost/compress":      {"sstable", "internal/transfer"},
	"github.com/parquet-go/parquet-go":   {"internal/transfer"},
	"github.com/google/btree":            {"internal/memtable", "engine"},
	"golang.org/x/sys":                   {"vfs", "internal/arena", "store/postgres", "bench"},
	"github.com/google/uuid":             {"server"},
	"github.com/spf13/cobra":             {"cmd/..."},
	"github.com/coreos/go-systemd/v22":   {"cmd/tablerock"},
	"github.com/spf13/pflag":             {"cmd/..."},
	"github.com/vbauerster/mpb/v8":       {"cmd/..."},
	"github.com/VictoriaMetrics/metrics": {"cmd/..."},
	"github.com/rivo/uniseg":             {"cmd/..."},
	"github.com/google/go-cmp":           {"store/storetest"},

	"go.opentelemetry.io/otel": {"cmd/tablerock"},
	"github.com/go-logr/logr":  {"cmd/tablerock"},

	"github.com/Azure/azure-sdk-for-go/sdk/azcore":        {"store/remote"},
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity":    {"store/remote"},
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables": {"store/remote"},
	"github.com/jackc/pgx/v5":                             {"store/postgres", "store/postgres/pgtest"},
}

// rowOf returns the row of a package, nil if it has none.
func rowOf(dir string) *layer {
	for i := range layers {
		if matches(layers[i].dir, ownerOf(dir)) {
			return &layers[i]
		}
	}
	return nil
}

// ownerOf returns P for P/internal/..., whose row is that of P, and dir for any
// other package.
func ownerOf(dir string) string {
	owner, _, _ := strings.Cut(dir, "/internal/")
	return owner
}

// allows reports whether a package of this row may import another of ours.
func (l *layer) allows(of string) bool {
	own := ownerOf(of) != of && ownerOf(of) == l.dir
	return own || slices.Contains(l.imports, of)
}

// matches reports whether pattern, a folder or with /... all below it, holds dir.
func matches(pattern, dir string) bool {
	if folder, ok := strings.CutSuffix(pattern, "/..."); ok {
		return anywhere(dir, folder)
	}
	return pattern == dir
}

func matchesAny(patterns []string, dir string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, dir) })
}

// TestLayers compares each import of a package of this module with the table.
func TestLayers(t *testing.T) {
	for dir, list := range packages(t) {
		row := rowOf(dir)
		if row == nil {
			complain(t, list[0].file.Package, "package "+dir+" has no row in the table of layers",
				"add one in internal/lint/layers_test.go and in the map of docs/design.md")
			continue
		}
		if row.imports != nil && row.imports[0] == anything {
			continue
		}
		for _, s := range list {
			for _, i := range s.file.Imports {
				of, ok := strings.CutPrefix(importPath(i), modulePath+"/")
				if ok && !row.allows(of) {
					complain(t, i.Pos(), dir+" may not import "+of, "its row allows ["+strings.Join(row.imports, " ")+"]; move the code, or hand the value in from above")
				}
			}
		}
	}
}

// TestLayersPointDown keeps the table in order: a row allows only packages of
// earlier rows, or packages below them that share their row.
func TestLayersPointDown(t *testing.T) {
	row := map[string]int{}
	for i, l := range layers {
		if _, ok := row[l.dir]; ok {
			t.Errorf("package %s has two rows", l.dir)
		}
		row[l.dir] = i
	}
	for i, l := range layers {
		for _, of := range l.imports {
			below, ok := row[ownerOf(of)]
			switch {
			case of == anything:
			case !ok:
				t.Errorf("the row of %s allows %s, which has no row", l.dir, of)
			case below >= i:
				t.Errorf("the row of %s allows %s, which has no earlier row", l.dir, of)
			}
		}
	}
}

// TestForeignImports keeps each library behind the packages that wrap it.
func TestForeignImports(t *testing.T) {
	modules := slices.Sorted(maps.Keys(foreign))
	for dir, list := range packages(t) {
		for _, s := range list {
			for _, i := range s.file.Imports {
				p := importPath(i)
				first, _, _ := strings.Cut(p, "/")
				if !strings.Contains(first, ".") || anywhere(p, modulePath) {
					continue
				}
				m := slices.IndexFunc(modules, func(m string) bool { return anywhere(p, m) })
				switch {
				case m < 0:
					complain(t, i.Pos(), dir+" imports "+p+", which has no row in foreign",
						"say its reason in docs/design.md and its one package in internal/lint/layers_test.go")
				case !matchesAny(foreign[modules[m]], ownerOf(dir)):
					complain(t, i.Pos(), dir+" imports "+p, "only ["+strings.Join(foreign[modules[m]], " ")+"] may; use what that package offers")
				}
			}
		}
	}
}

// TestForeignRequired requires each library of the table to be in go.mod.
func TestForeignRequired(t *testing.T) {
	required := string(readRepositoryFile(t, "go.mod"))
	for _, m := range slices.Sorted(maps.Keys(foreign)) {
		if !strings.Contains(required, "\n\t"+m+" v") {
			t.Errorf("go.mod has no %s: take it out of foreign, and out of docs/design.md", m)
		}
	}
}

// TestFilesThroughVFS keeps the operating system's files out of the engine and its
// packages, except vfs and the memory that arena maps.
func TestFilesThroughVFS(t *testing.T) {
	engine := slices.IndexFunc(layers, func(l layer) bool { return l.dir == "engine" })
	for dir, list := range packages(t) {
		owner := ownerOf(dir)
		row := slices.IndexFunc(layers, func(l layer) bool { return l.dir == owner })
		for _, s := range list {
			if row >= 0 && row <= engine && owner != "vfs" {
				refuseOS(t, s)
			}
			if owner != "vfs" && owner != "internal/arena" && owner != "store/postgres" && !anywhere(dir, "cmd", "bench") {
				refuseSystemCalls(t, s)
			}
		}
	}
}

func refuseOS(t *testing.T, s *source) {
	t.Helper()
	for _, i := range s.file.Imports {
		if p := importPath(i); anywhere(p, "os") || p == "io/ioutil" {
			complain(t, i.Pos(), s.dir+" imports "+p, "reach files through vfs.FS alone, so that a test can cut the power")
		}
	}
}

func refuseSystemCalls(t *testing.T, s *source) {
	t.Helper()
	s.uses("syscall", func(pos token.Pos, name string) {
		if !errorNumber(name) {
			complain(t, pos, s.dir+" uses syscall."+name, "only vfs, internal/arena and store/postgres make system calls; others may compare error numbers")
		}
	})
}

// errorNumber reports whether a name of package syscall is an error number, such
// as ENOSPC.
func errorNumber(name string) bool {
	return len(name) > 1 && name[0] == 'E' && strings.ToUpper(name) == name
}
