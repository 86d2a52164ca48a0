package faults

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"

	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// variant is one way to fail an operation.
type variant struct {
	name   string
	fault  errorfs.Fault
	half   bool // a read or write does half of its work first
	sticky bool
	// also has the operations that fail from then on if sticky is set.
	also []string
	// again, unless 0, is the distance to a second operation that fails, such as one
	// that cleans up after the first.
	again uint64
}

var (
	reads  = []string{"read", "open", "list", "stat", "size"}
	writes = []string{
		"create", "open-rw", "rename", "link", "remove", "mkdir", "sync-dir",
		"write", "sync", "preallocate",
	}
	growing = []string{"create", "link", "mkdir", "write", "preallocate"}
)

// variants returns the ways in which an operation can fail.
func variants(kind string) []variant {
	var list []variant
	add := func(name string, f errorfs.Fault, half bool, also []string) {
		list = append(list, variant{name: name, fault: f, half: half},
			variant{name: name + ", sticky", fault: f, half: half, sticky: true, also: also})
	}
	switch kind {
	case "read":
		add("EIO", errorfs.Fault{Err: syscall.EIO}, false, reads)
		add("short read", errorfs.Fault{Err: syscall.EIO}, true, reads)
	case "write":
		add("EIO", errorfs.Fault{Err: syscall.EIO}, false, writes)
		add("short write", errorfs.Fault{Err: syscall.EIO}, true, writes)
		add("ENOSPC", errorfs.Fault{Err: syscall.ENOSPC}, true, growing)
	case "sync":
		add("EIO, keeps", errorfs.Fault{Err: syscall.EIO, Sync: errorfs.SyncKeeps}, false, writes)
		add("EIO, forgets", errorfs.Fault{Err: syscall.EIO, Sync: errorfs.SyncForgets}, false, writes)
		add("EIO, reverts", errorfs.Fault{Err: syscall.EIO, Sync: errorfs.SyncReverts}, false, writes)
		add("ENOSPC, forgets", errorfs.Fault{Err: syscall.ENOSPC, Sync: errorfs.SyncForgets}, false, growing)
	case "create", "link", "mkdir", "rename", "preallocate":
		add("EIO", errorfs.Fault{Err: syscall.EIO}, false, writes)
		add("EIO after it happened", errorfs.Fault{Err: syscall.EIO, Applied: true}, false, writes)
		add("ENOSPC", errorfs.Fault{Err: syscall.ENOSPC}, false, growing)
	case "remove", "sync-dir":
		add("EIO", errorfs.Fault{Err: syscall.EIO}, false, writes)
		add("EIO after it happened", errorfs.Fault{Err: syscall.EIO, Applied: true}, false, writes)
	case "open", "open-rw":
		add("EIO", errorfs.Fault{Err: syscall.EIO}, false, reads)
		add("EMFILE", errorfs.Fault{Err: syscall.EMFILE}, false, []string{"open", "open-rw", "create"})
	case "list", "stat", "size", "lock", "locked", "close":
		add("EIO", errorfs.Fault{Err: syscall.EIO}, false, []string{kind})
	}
	return list
}

// twice returns failures of two operations. The second one is one of the next few, or a
// random one of the rest.
func twice(kind string, n, total uint64, rng *rand.Rand) []variant {
	near := uint64(3)
	if kind == "link" {
		near = 8 // the copy after a failed link
	}
	var list []variant
	add := func(k uint64) {
		list = append(list, variant{name: fmt.Sprintf("EIO, and again %d later", k), fault: errorfs.Fault{Err: syscall.EIO}, again: k})
	}
	for k := range near {
		add(k + 1)
	}
	if n < total {
		add(1 + rng.Uint64N(total-n))
	}
	return list
}

// rule returns a rule that fails the n-th operation in this way.
func (v *variant) rule(n uint64, counter *uint64, happened *vfs.Op) errorfs.Rule {
	return func(op vfs.Op) *errorfs.Fault {
		*counter++
		at := *counter
		if at != n && (v.again == 0 || at != n+v.again) && (at < n || !v.sticky || !slices.Contains(v.also, op.Kind)) {
			return nil
		}
		if at == n {
			*happened = op
		}
		f := v.fault
		if v.half {
			f.Short = int(op.Len / 2)
		}
		return &f
	}
}

// String returns the name of the variant.
func (v *variant) String() string { return fmt.Sprintf("[%s]", v.name) }
