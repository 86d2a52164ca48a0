package errorfs

import (
	"cmp"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/tablerock-db/tablerock/vfs"
)

// Site is a line of code that calls the file system, with the operations of one
// kind that it did.
type Site struct {
	Kind   string
	Func   string // the calling function, with its package
	File   string // its source file
	Line   int
	Ops    uint64 // operations since RecordSites
	Failed uint64 // operations that got a Fault with an error
}

// RecordSites starts to count operations by the line of code that they come
// from. This costs about a microsecond for each operation.
func (x *FS) RecordSites() { x.sites.CompareAndSwap(nil, &siteTable{sites: map[siteKey]*Site{}}) }

// Sites returns the sites seen since RecordSites, ordered by file, line and kind.
func (x *FS) Sites() []Site {
	t := x.sites.Load()
	if t == nil {
		return nil
	}
	return t.list()
}

type siteKey struct {
	file string
	line int
	kind string
}

// siteTable counts operations by site. Its methods may be called concurrently.
type siteTable struct {
	mu sync.Mutex
	// +checklocks:mu
	sites map[siteKey]*Site
}

// callee holds the prefixes of the names of functions in package vfs and below it.
var callee = func() [2]string {
	p := reflect.TypeFor[vfs.Op]().PkgPath()
	return [2]string{p + ".", p + "/"}
}()

// isCallee reports whether a function belongs to the file system itself.
func isCallee(function string) bool {
	if !strings.HasPrefix(function, callee[0]) && !strings.HasPrefix(function, callee[1]) {
		return false
	}
	pkg, _, _ := strings.Cut(function[len(callee[0])-1:], ".")
	return !strings.HasSuffix(pkg, "_test")
}

// count counts an operation for the first function on the stack outside vfs.
func (t *siteTable) count(kind string, failed bool) {
	var pcs [24]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	frame, more := frames.Next()
	for more && isCallee(frame.Function) {
		frame, more = frames.Next()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	k := siteKey{frame.File, frame.Line, kind}
	s := t.sites[k]
	if s == nil {
		s = &Site{Kind: kind, Func: frame.Function, File: frame.File, Line: frame.Line}
		t.sites[k] = s
	}
	s.Ops++
	if failed {
		s.Failed++
	}
}

func (t *siteTable) list() []Site {
	t.mu.Lock()
	defer t.mu.Unlock()
	sites := make([]Site, 0, len(t.sites))
	for _, s := range t.sites {
		sites = append(sites, *s)
	}
	slices.SortFunc(sites, func(a, b Site) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Kind, b.Kind))
	})
	return sites
}
