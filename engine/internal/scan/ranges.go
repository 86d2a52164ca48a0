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
func (s *state) setRanges(table uint32) {
	within := s.fromRange(table)
	for _, r := range s.q.Filter.Ranges() {
		k := keyRange{
			lower: maxKey(s.lowerBound(table, r.From), within.lower),
			upper: minKey(s.upperBound(table, r.To), within.upper),
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
func (s *state) fromRange(table uint32) keyRange {
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
		least := s.lowerBound(table, r.From)
		return keyRange{least, s.bound(append(codec.AppendKey(s.bounds, table, from.Partition, from.Row), 0))}
	default:
		return keyRange{s.bound(codec.AppendKey(s.bounds, table, from.Partition, from.Row)), s.upperBound(table, r.To)}
	}
	return keyRange{s.lowerBound(table, r.From), s.upperBound(table, r.To)}
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

func (s *state) lowerBound(table uint32, b filter.Bound) []byte {
	if b.Kind == filter.Unbounded {
		return s.bound(codec.AppendTable(s.bounds, table))
	}
	return s.bound(appendBound(s.bounds, table, b))
}

func (s *state) upperBound(table uint32, b filter.Bound) []byte {
	if b.Kind == filter.Unbounded {
		return s.bound(codec.AppendTable(s.bounds, table+1))
	}
	return s.bound(appendBound(s.bounds, table, b))
}

// bound makes longer the memory for bounds and returns what was appended.
func (s *state) bound(longer []byte) []byte {
	n := len(s.bounds)
	s.bounds = longer
	return longer[n:len(longer):len(longer)]
}

// appendBound appends the least key bytes after b.
func appendBound(dst []byte, table uint32, b filter.Bound) []byte {
	switch b.Kind {
	case filter.BeforePartition:
		return codec.AppendPartitionStart(dst, table, b.Key.Partition)
	case filter.BeforeRow:
		return codec.AppendRowStart(dst, table, b.Key.Partition, b.Key.Row)
	case filter.AfterRow:
		return codec.AppendRowEnd(dst, table, b.Key.Partition, b.Key.Row)
	case filter.AfterPartition:
		return codec.AppendPartitionEnd(dst, table, b.Key.Partition)
	case filter.Unbounded:
	}
	panic("engine: bound of unknown kind")
}
