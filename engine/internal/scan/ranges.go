package scan

import (
	"bytes"
	"slices"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
)

// keyRange is a range of user keys, [lower, upper).
type keyRange struct{ lower, upper []byte }

// setRanges sets rest to the ranges of keys that the query must read, in its order. It leaves out
// what is empty at their ends.
func (s *state) setRanges() {
	within := s.fromRange()
	for _, r := range s.q.Filter.Ranges() {
		k := keyRange{
			lower: maxKey(s.lowerBound(r.From), within.lower),
			upper: minKey(s.upperBound(r.To), within.upper),
		}
		if bytes.Compare(k.lower, k.upper) < 0 && !s.empty.Empty() {
			k.lower, k.upper = s.empty.Trim(k.lower, k.upper)
		}
		if bytes.Compare(k.lower, k.upper) < 0 {
			s.rest = append(s.rest, k)
		}
	}
	if s.q.Reverse {
		slices.Reverse(s.rest)
	}
}

// fromRange returns the keys that the From of the query allows. It begins exactly at a legal
// From: a window between another bound of that row and its key would have no entity, and the
// rows examined for it could take the whole Budget, so that Resume were From again.
func (s *state) fromRange() keyRange {
	var r filter.Range
	switch from := s.q.From; {
	case from == nil:
	case edm.CheckKey(*from) != nil:
		// No entity has such a key, and its bytes have no defined order. The
		// filter finds the nearest legal keys.
		if s.q.Reverse {
			r.To = filter.Bound{Kind: filter.AfterRow, Key: *from}
		} else {
			r.From = filter.Bound{Kind: filter.BeforeRow, Key: *from}
		}
		ranges := filter.Keys(r.From, r.To).Ranges()
		if len(ranges) == 0 {
			return keyRange{}
		}
		r = filter.Range{From: ranges[0].From, To: ranges[len(ranges)-1].To}
	case s.q.Reverse:
		least := s.lowerBound(r.From)
		return keyRange{least, s.bound(append(codec.AppendKey(s.bounds, s.table, from.Partition, from.Row), 0))}
	default:
		return keyRange{s.bound(codec.AppendKey(s.bounds, s.table, from.Partition, from.Row)), s.upperBound(r.To)}
	}
	return keyRange{s.lowerBound(r.From), s.upperBound(r.To)}
}

func maxKey(a, b []byte) []byte {
	if bytes.Compare(a, b) < 0 {
		return b
	}
	return a
}

func minKey(a, b []byte) []byte {
	if bytes.Compare(a, b) > 0 {
		return b
	}
	return a
}

// lowerBound returns the lower bound of the keys after b.
func (s *state) lowerBound(b filter.Bound) []byte { return s.boundOf(b, s.table) }

// upperBound returns the upper bound of the keys before b.
func (s *state) upperBound(b filter.Bound) []byte { return s.boundOf(b, s.table+1) }

// boundOf returns the least key bytes after b, or the least of the table with the id open if b is
// unbounded.
func (s *state) boundOf(b filter.Bound, open uint32) []byte {
	switch b.Kind {
	case filter.Unbounded:
		return s.bound(codec.AppendTable(s.bounds, open))
	case filter.BeforePartition:
		return s.bound(codec.AppendPartitionStart(s.bounds, s.table, b.Key.Partition))
	case filter.BeforeRow:
		return s.bound(codec.AppendRowStart(s.bounds, s.table, b.Key.Partition, b.Key.Row))
	case filter.AfterRow:
		return s.bound(codec.AppendRowEnd(s.bounds, s.table, b.Key.Partition, b.Key.Row))
	case filter.AfterPartition:
		return s.bound(codec.AppendPartitionEnd(s.bounds, s.table, b.Key.Partition))
	}
	panic("engine: bound of unknown kind")
}

// bound makes longer the memory for bounds and returns what was appended.
func (s *state) bound(longer []byte) []byte {
	n := len(s.bounds)
	s.bounds = longer
	return longer[n:len(longer):len(longer)]
}
