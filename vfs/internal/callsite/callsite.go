// Package callsite counts the calls of package vfs by the place in the code
// that they come from.
package callsite

import (
	"cmp"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// Site is a place in the code, and how many calls of one kind it made.
type Site[K cmp.Ordered] struct {
	Kind   K
	Func   string
	File   string
	Line   int
	Calls  uint64
	Failed uint64
}

type key[K cmp.Ordered] struct {
	file string
	line int
	kind K
}

// Table counts calls. Its methods may be called concurrently.
type Table[K cmp.Ordered] struct {
	mu sync.Mutex
	// +checklocks:mu
	sites map[key[K]]*Site[K]
}

// NewTable returns an empty table.
func NewTable[K cmp.Ordered]() *Table[K] { return &Table[K]{sites: map[key[K]]*Site[K]{}} }

// inside begins the names of the functions of vfs and of what is below it.
// Those of its external tests begin with "vfs_test.".
var inside = func() []string {
	pc, _, _, _ := runtime.Caller(0)
	vfs, _, _ := strings.Cut(runtime.FuncForPC(pc).Name(), "/internal/callsite.")
	return []string{vfs + ".", vfs + "/internal/"}
}()

// Note counts a call that comes from the first function on the stack that is
// outside vfs.
func (t *Table[K]) Note(kind K, failed bool) {
	var pcs [24]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	frame, more := frames.Next()
	for more && (strings.HasPrefix(frame.Function, inside[0]) || strings.HasPrefix(frame.Function, inside[1])) {
		frame, more = frames.Next()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	k := key[K]{frame.File, frame.Line, kind}
	s := t.sites[k]
	if s == nil {
		s = &Site[K]{Kind: kind, Func: frame.Function, File: frame.File, Line: frame.Line}
		t.sites[k] = s
	}
	s.Calls++
	if failed {
		s.Failed++
	}
}

// Sites returns a copy of the table, ordered by file, line and kind.
func (t *Table[K]) Sites() []Site[K] {
	t.mu.Lock()
	defer t.mu.Unlock()
	sites := make([]Site[K], 0, len(t.sites))
	for _, s := range t.sites {
		sites = append(sites, *s)
	}
	slices.SortFunc(sites, func(a, b Site[K]) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Kind, b.Kind))
	})
	return sites
}
