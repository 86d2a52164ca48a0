// Package budget divides the memory of a database between its log and its block cache.
package budget

import (
	"cmp"
	"fmt"
)

// MaxFrozen is how many frozen segments may wait for their flush before writers stall.
const MaxFrozen = 3

// MinSegment is the size of the smallest segment.
const MinSegment = 64 << 10

const (
	maxSegment = 1 << 30
	// A greater segment gains little.
	maxDefaultSegment = 64 << 20
	minTotal          = 1 << 20
	defaultTotal      = 128 << 20
	// segmentParts is how many default segments the memory is divided into.
	segmentParts = 16
)

// Memory is the memory of a database in bytes.
type Memory struct {
	Total   int64
	Segment int64 // of a segment
	Cache   int64 // of the block cache
}

// Divide returns m with defaults for the fields that are 0, but for the cache if it is shared
// with other databases, or an error that names an option of the database.
func (m Memory) Divide(shared bool) (Memory, error) {
	total := cmp.Or(m.Total, defaultTotal)
	if m.Segment == 0 {
		m.Segment = min(max(total/segmentParts, MinSegment), maxDefaultSegment)
	}
	if m.Cache == 0 && !shared {
		m.Cache = max(total-m.log(), total/4)
	}
	if m.Total == 0 {
		m.Total = max(total, m.log()+m.Cache)
	}
	switch {
	case m.Total < minTotal:
		return m, fmt.Errorf("options: MemoryBytes is %d, must be at least %d", m.Total, minTotal)
	case m.Segment < MinSegment || m.Segment > maxSegment:
		return m, fmt.Errorf("options: SegmentBytes is %d, must be between %d and %d", m.Segment, MinSegment, maxSegment)
	case m.Cache < 0:
		return m, fmt.Errorf("options: CacheBytes is %d, must not be negative", m.Cache)
	case m.Cache > m.Total-m.log():
		return m, fmt.Errorf("options: CacheBytes %d and SegmentBytes %d need more than MemoryBytes, %d", m.Cache, m.Segment, m.Total)
	}
	return m, nil
}

// log returns the most memory of segments, one of them empty, and of the indexes of the
// others, which need a quarter of a segment if its entities have 200 bytes.
func (m *Memory) log() int64 { return (MaxFrozen+2)*m.Segment + (MaxFrozen+1)*m.Segment/4 }
