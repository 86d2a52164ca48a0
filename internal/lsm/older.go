package lsm

import (
	"bytes"

	"github.com/tablerock-db/tablerock/codec"
)

// olderRuns looks up user keys, which must rise from call to call, in runs.
type olderRuns struct {
	runs []*run
	at   []int
}

func newOlderRuns(runs []*run) *olderRuns { return &olderRuns{runs: runs, at: make([]int, len(runs))} }

// mayContain reports whether a run may contain a version of the key.
func (o *olderRuns) mayContain(user []byte) bool {
	hash := uint64(0)
	for i, r := range o.runs {
		for o.at[i] < len(r.ssts) && bytes.Compare(r.ssts[o.at[i]].hi, user) < 0 {
			o.at[i]++
		}
		if o.at[i] == len(r.ssts) || bytes.Compare(r.ssts[o.at[i]].lo, user) > 0 {
			continue
		}
		if hash == 0 {
			hash = codec.KeyHash(user)
		}
		if r.ssts[o.at[i]].mayContain(hash) {
			return true
		}
	}
	return false
}
