package filesize

import "bytes"

// Limit bounds the files of a new run that overlap older runs. A compaction removes an input when
// it has consumed its whole range, so files of a tenth of the keys need little space beside its
// output. A file that overlaps nothing is moved to the bottom, where small files would remain. The
// zero Limit has no bound.
type Limit struct {
	Entries uint64 // of a file that overlaps older runs, 0 if there is no bound
	older   func(user []byte) []byte
	// next is a lower bound of the older keys that the current file may overlap, nil if
	// there are none.
	next []byte
}

// NewLimit returns the Limit of a run of about the given number of entries. older returns a lower
// bound of the older keys at or above a key, nil if there are none.
func NewLimit(entries int, older func(user []byte) []byte) Limit {
	return Limit{Entries: uint64(entries/filesPerRun + 1), older: older}
}

// Begin starts a file at a user key.
func (l *Limit) Begin(user []byte) {
	if l.older != nil {
		l.next = l.older(user)
	}
}

// Reached reports whether a file up to a user key overlaps an older run.
func (l *Limit) Reached(user []byte) bool {
	return l.next != nil && bytes.Compare(user, l.next) >= 0
}
