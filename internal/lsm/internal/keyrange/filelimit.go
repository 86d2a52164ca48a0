package keyrange

import "bytes"

// FileLimit bounds the files of a flush that overlap older runs. A compaction removes an
// input when it has consumed its whole range, so files of a tenth of the keys need
// little space beside its output. A file that overlaps nothing is moved to the bottom,
// where small files would remain. The zero FileLimit has no bound.
type FileLimit struct {
	Entries uint64 // of a file that overlaps older runs
	// Older returns a lower bound of the older keys at or above a key, nil if there are none.
	Older func(user []byte) []byte
	// next is a lower bound of the older keys that the current file may overlap, nil if
	// there are none.
	next []byte
}

// Begin starts a file at a user key.
func (l *FileLimit) Begin(user []byte) {
	if l.Older != nil {
		l.next = l.Older(user)
	}
}

// Reached reports whether a file up to a user key overlaps an older run.
func (l *FileLimit) Reached(user []byte) bool {
	return l.next != nil && bytes.Compare(user, l.next) >= 0
}
