package commitlog

import "github.com/tablerock-db/tablerock/codec"

// Pending is an entry that is in the log and not durable.
type Pending struct {
	Seg *Segment
	Seq uint64
	off uint32
	// shape is nil for a delete.
	shape *codec.Shape
}

// Row makes row the entry's, in the memory of Seg, and reports whether it is a
// put.
func (p *Pending) Row(row *codec.Row) bool {
	if p.shape == nil {
		return false
	}
	row.ResetEntry(p.Seg.image[p.off:], p.shape)
	return true
}

// Pending returns the newest entry of key, whose hashes are partHash and
// keyHash, that is in the log and not durable, of commits without OnApply. The
// caller keeps others from appending entries of key meanwhile.
func (l *Log) Pending(partHash, keyHash uint64, key []byte) (Pending, bool) {
	return l.overlay.get(partHash, keyHash, key)
}

// Quiet reports whether nothing in the partition with the hash partHash is in
// the log and not durable.
func (l *Log) Quiet(partHash uint64) bool { return !l.overlay.has(partHash) }
