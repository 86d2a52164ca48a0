package keyrange

import "github.com/tablerock-db/tablerock/internal/manifest"

// Sampled reports whether the nth entry of a file is one of those that Share is told of. It is
// true for one entry in sixteen, at irregular distances, so that it does not select the same
// row of every group of sixteen.
func Sampled(n uint64) bool { return n*0x9E3779B97F4A7C15 < 1<<60 }

// Share returns manifest.File.NewKeys of a file of which found of the sampled entries are new.
func Share(found, sampled int) uint32 {
	if sampled == 0 {
		return 0
	}
	return uint32(max(1, found*manifest.AllNewKeys/sampled)) // 0 is unknown
}
