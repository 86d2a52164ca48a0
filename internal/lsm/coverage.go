package lsm

import (
	"bytes"

	"github.com/tablerock-db/tablerock/codec"
)

// coverage tells, for user keys that rise from call to call, whether older runs
// may hold them.
type coverage struct {
	runs []*run
	at   []int
}

func newCoverage(runs []*run) *coverage { return &coverage{runs: runs, at: make([]int, len(runs))} }

// has reports whether an older run may have a version of the key.
func (c *coverage) has(user []byte) bool {
	hash := uint64(0)
	for i, r := range c.runs {
		for c.at[i] < len(r.parts) && bytes.Compare(r.parts[c.at[i]].hi, user) < 0 {
			c.at[i]++
		}
		if c.at[i] == len(r.parts) || bytes.Compare(r.parts[c.at[i]].lo, user) > 0 {
			continue
		}
		if hash == 0 {
			hash = codec.KeyHash(user)
		}
		if r.parts[c.at[i]].reader.MayContain(hash) {
			return true
		}
	}
	return false
}
