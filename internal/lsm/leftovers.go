package lsm

import (
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/leftovers"
)

func (t *Tree) leftovers() (*leftovers.Leftovers, error) {
	v := t.Version()
	defer v.Unref()
	listed := make(map[uint64]bool)
	for _, s := range v.runs.SSTs() {
		listed[s.Number] = true
	}
	return leftovers.Find(t.o.FS, t.o.Dir, t.dbid, listed, t.next.Load())
}

// CheckLeftovers compares the files of interrupted jobs with the last sequence and the
// last timestamp of manifest and logs. It returns a *corrupt.Error if a file is newer.
func (t *Tree) CheckLeftovers(lastSeq uint64, highWater edm.Ticks) error {
	found, err := t.leftovers()
	if err != nil {
		return err
	}
	m := t.Manifest()
	return found.Check(max(lastSeq, m.ReservedSeq()), highWater)
}

// RemoveLeftovers removes the files of jobs that a crash interrupted, and no other files. Call it
// before the first job, after Open and CheckLeftovers succeeded: with an outdated manifest, the
// files of the newer manifest look like leftovers.
func (t *Tree) RemoveLeftovers() (removed []string, err error) {
	found, err := t.leftovers()
	if err != nil {
		return nil, err
	}
	return found.Remove()
}
