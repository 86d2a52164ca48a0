package commitlog

import (
	"slices"

	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/internal/memtable"
)

// Ends returns the ends of the segments with records, given newest first, for the
// manifest, or the newest segment if none has records. The segments must be sealed.
func Ends(segs []*Segment) (logs []manifest.Log) {
	for _, s := range slices.Backward(segs) {
		if !s.Empty() {
			logs = append(logs, manifest.Log{Number: s.Number, Sealed: s.Tail()})
		}
	}
	if len(logs) == 0 {
		logs = []manifest.Log{{Number: segs[0].Number}}
	}
	return logs
}

// Proven returns how far the oldest segment, and each other one with durable records, is
// durable. segs are given newest first. Every manifest records it, so that recovery notices a
// segment that lost durable records.
func Proven(segs []*Segment) (logs []manifest.Log) {
	for i, s := range slices.Backward(segs) {
		if end := s.Durable(); end != 0 || i == len(segs)-1 {
			logs = append(logs, manifest.Log{Number: s.Number, Proven: end})
		}
	}
	return logs
}

// Tables returns the memtables of the segments.
func Tables(segs []*Segment) []*memtable.Table {
	tables := make([]*memtable.Table, len(segs))
	for i, s := range segs {
		tables[i] = s.Table
	}
	return tables
}

// NumberAfter returns the number of the segment that follows seg in segs, given newest first.
func NumberAfter(segs []*Segment, seg *Segment) uint64 {
	for i := 1; i < len(segs); i++ {
		if segs[i] == seg {
			return segs[i-1].Number
		}
	}
	panic("commitlog: no segment follows")
}
