package faults

import (
	"cmp"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// Site is a line of code that calls the file system, with the operations of one kind
// that it did.
type Site struct {
	Kind   string
	Func   string // the calling function, with its package
	File   string // its source file
	Line   int
	Ops    uint64
	Failed uint64 // operations that got a Fault with an error
}

// Sites is the set of call sites of operations. Its methods may be called concurrently.
type Sites struct {
	mu sync.Mutex
	// +checklocks:mu
	all map[siteKey]*Site
}

type siteKey struct {
	kind string
	file string
	line int
}

// NewSites returns an empty set.
func NewSites() *Sites { return &Sites{all: map[siteKey]*Site{}} }

// rule returns a rule that applies next to an operation and adds its call site, unless
// that is in this program.
func (s *Sites) rule(next errorfs.Rule) errorfs.Rule {
	return func(op vfs.Op) *errorfs.Fault {
		fault := next(op)
		if at := caller(); !strings.Contains(at.File, "/cmd/torture/") {
			s.count(op.Kind, at, fault != nil && fault.Err != nil)
		}
		return fault
	}
}

func (s *Sites) count(kind string, at runtime.Frame, failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := siteKey{kind, at.File, at.Line}
	site := s.all[k]
	if site == nil {
		site = &Site{Kind: kind, Func: at.Function, File: at.File, Line: at.Line}
		s.all[k] = site
	}
	site.Ops++
	if failed {
		site.Failed++
	}
}

// caller returns the function that called the file system, from a rule.
func caller() runtime.Frame {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	frame, more := frames.Next()
	for more && !inVFS(frame.Function) {
		frame, more = frames.Next()
	}
	for more && inVFS(frame.Function) {
		frame, more = frames.Next()
	}
	return frame
}

var vfsPath = reflect.TypeFor[vfs.Op]().PkgPath()

// inVFS reports whether a function belongs to package vfs or one below it.
func inVFS(function string) bool {
	rest, ok := strings.CutPrefix(function, vfsPath)
	return ok && (rest[0] == '.' || rest[0] == '/')
}

// List returns all sites, ordered by file, line and kind.
func (s *Sites) List() []Site {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Site
	for _, site := range s.all {
		list = append(list, *site)
	}
	slices.SortFunc(list, func(a, b Site) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), strings.Compare(a.Kind, b.Kind))
	})
	return list
}
