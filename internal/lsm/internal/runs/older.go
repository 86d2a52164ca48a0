package runs

import (
	"bytes"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/filesize"
)

// Older looks up user keys, which must rise from call to call, in runs below an output. It belongs
// to one goroutine.
type Older struct {
	runs List
	at   []int
}

// NewOlder returns an Older of the runs.
func NewOlder(runs List) *Older { return &Older{runs: runs, at: make([]int, len(runs))} }

// MayContain reports whether a run may contain a version of the key.
func (o *Older) MayContain(user []byte) bool {
	hash := uint64(0)
	for i, r := range o.runs {
		for o.at[i] < len(r.SSTs) && bytes.Compare(r.SSTs[o.at[i]].Hi, user) < 0 {
			o.at[i]++
		}
		if o.at[i] == len(r.SSTs) || bytes.Compare(r.SSTs[o.at[i]].Lo, user) > 0 {
			continue
		}
		if hash == 0 {
			hash = codec.KeyHash(user)
		}
		if r.SSTs[o.at[i]].MayContain(hash) {
			return true
		}
	}
	return false
}

// FileLimit returns the limit of the files of a new run above l with about the given number of
// entries.
func (l List) FileLimit(entries int) filesize.Limit {
	return filesize.NewLimit(entries, func(user []byte) (least []byte) {
		for _, r := range l {
			if i := r.Find(user); i < len(r.SSTs) && (least == nil || bytes.Compare(r.SSTs[i].Lo, least) < 0) {
				least = r.SSTs[i].Lo
			}
		}
		return least
	})
}
