package errorfs

import (
	"sync/atomic"

	"github.com/tablerock-db/tablerock/vfs"
)

// FailNth gives fault to the n-th operation, counted from 1, that match accepts,
// and with sticky to every later one. A nil match accepts all operations.
func FailNth(n uint64, match func(vfs.Op) bool, fault Fault, sticky bool) Rule {
	var count atomic.Uint64
	return func(op vfs.Op) *Fault {
		if match != nil && !match(op) {
			return nil
		}
		if k := count.Add(1); k == n || sticky && k > n {
			f := fault
			return &f
		}
		return nil
	}
}
