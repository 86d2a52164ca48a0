//go:build !race

package arena

import "golang.org/x/sys/unix"

// minHuge is the size from which on huge pages are worth their granularity.
const minHuge = 4 << 20

// adviseHuge asks for huge pages: reads all over a large image otherwise miss
// the TLB as often as the cache. A kernel that refuses is as good as one that
// agrees.
func adviseHuge(b []byte) {
	if len(b) >= minHuge {
		_ = unix.Madvise(b, unix.MADV_HUGEPAGE)
	}
}
