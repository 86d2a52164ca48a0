package faults

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// Sites is the set of call sites of operations. Its methods may be called concurrently.
type Sites struct {
	mu sync.Mutex
	// +checklocks:mu
	all map[site]*errorfs.Site
}

type site struct {
	kind string
	file string
	line int
}

// NewSites returns an empty set.
func NewSites() *Sites { return &Sites{all: map[site]*errorfs.Site{}} }

func (s *Sites) add(used []*errorfs.FS) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, fs := range used {
		for _, from := range fs.Sites() {
			if strings.Contains(from.File, "/cmd/torture/") {
				continue
			}
			k := site{from.Kind, from.File, from.Line}
			to := s.all[k]
			if to == nil {
				to = &errorfs.Site{Kind: from.Kind, Func: from.Func, File: from.File, Line: from.Line}
				s.all[k] = to
			}
			to.Ops += from.Ops
			to.Failed += from.Failed
		}
	}
}

// List returns all sites, ordered by file, line and kind.
func (s *Sites) List() []errorfs.Site {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []errorfs.Site
	for _, at := range s.all {
		list = append(list, *at)
	}
	slices.SortFunc(list, func(a, b errorfs.Site) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Kind, b.Kind))
	})
	return list
}
