package vfs

import (
	"sync/atomic"

	"github.com/tablerock-db/tablerock/vfs/internal/callsite"
)

// FailAt fails the n-th operation, counted from 1, and with sticky every later
// one.
func FailAt(n uint64, err error, sticky bool) Rule {
	return func(op Op) *Fault {
		if op.Index == n || sticky && op.Index > n {
			return &Fault{Err: err}
		}
		return nil
	}
}

// FaultNth gives fault to the n-th operation that match accepts, counted from
// 1, and with sticky to every later one.
func FaultNth(n uint64, match func(Op) bool, fault Fault, sticky bool) Rule {
	var count atomic.Uint64
	return func(op Op) *Fault {
		if !match(op) {
			return nil
		}
		if k := count.Add(1); k == n || sticky && k > n {
			f := fault
			return &f
		}
		return nil
	}
}

// FlipBits inverts the bits of mask in the byte at off of the named file: in
// the first read that covers it, and with sticky in every later one. Once is
// an error on the way from the disk, sticky one on it.
func FlipBits(name string, off int64, mask byte, sticky bool) Rule {
	covers := func(op Op) bool {
		return op.Kind == OpRead && op.Name == name && op.Off <= off && off < op.Off+op.Len
	}
	return FaultNth(1, covers, Fault{Corrupt: func(p []byte, at int64) {
		if off-at < int64(len(p)) {
			p[off-at] ^= mask
		}
	}}, sticky)
}

// FirstOf gives an operation the first fault that one of the rules decides on.
// All of them see every operation.
func FirstOf(rules ...Rule) Rule {
	return func(op Op) *Fault {
		var first *Fault
		for _, rule := range rules {
			if f := rule(op); first == nil {
				first = f
			}
		}
		return first
	}
}

// Site is a place in the code that calls an FS or File.
type Site struct {
	Kind   OpKind
	Func   string
	File   string
	Line   int
	Ops    uint64
	Failed uint64 // operations that got a Fault with an error
}

// RecordSites begins to note where operations come from. It costs about a
// microsecond for each.
func (x *Injected) RecordSites() { x.sites.CompareAndSwap(nil, callsite.NewTable[OpKind]()) }

// Sites returns every place seen since RecordSites, ordered by file and line.
func (x *Injected) Sites() []Site {
	t := x.sites.Load()
	if t == nil {
		return nil
	}
	var sites []Site
	for _, s := range t.Sites() {
		sites = append(sites, Site{s.Kind, s.Func, s.File, s.Line, s.Calls, s.Failed})
	}
	return sites
}
