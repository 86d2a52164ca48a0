package scan

import (
	"bytes"
	"slices"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
)

// keyRange is a range of user keys, [lower, upper).
type keyRange struct{ lower, upper []byte }

// queryRanges returns the ranges of keys that a query must read, in the order of the
// query.
func queryRanges(table uint32, q *store.Query) []keyRange {
	within := fromRange(table, q)
	var out []keyRange
	for _, r := range q.Filter.Ranges() {
		k := keyRange{
			lower: maxKey(lowerBound(table, r.From), within.lower),
			upper: minKey(upperBound(table, r.To), within.upper),
		}
		if bytes.Compare(k.lower, k.upper) < 0 {
			out = append(out, k)
		}
	}
	if q.Reverse {
		slices.Reverse(out)
	}
	return out
}

// fromRange returns the keys that the From of a query allows.
func fromRange(table uint32, q *store.Query) keyRange {
	var r filter.Range
	switch {
	case q.From == nil:
	case q.Reverse:
		r.To = filter.Bound{Kind: filter.AfterRow, Key: *q.From}
	default:
		r.From = filter.Bound{Kind: filter.BeforeRow, Key: *q.From}
	}
	if q.From != nil && edm.CheckKey(*q.From) != nil {
		// No entity has such a key, and its bytes have no defined order. The
		// filter finds the nearest legal keys.
		ranges := filter.Keys(r.From, r.To).Ranges()
		if len(ranges) == 0 {
			return keyRange{}
		}
		r = filter.Range{From: ranges[0].From, To: ranges[len(ranges)-1].To}
	}
	return keyRange{lowerBound(table, r.From), upperBound(table, r.To)}
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

func lowerBound(table uint32, b filter.Bound) []byte {
	if b.Kind == filter.Unbounded {
		return codec.AppendTable(nil, table)
	}
	return boundKey(table, b)
}

func upperBound(table uint32, b filter.Bound) []byte {
	if b.Kind == filter.Unbounded {
		return codec.AppendTable(nil, table+1)
	}
	return boundKey(table, b)
}

// boundKey returns the least key bytes after b.
func boundKey(table uint32, b filter.Bound) []byte {
	switch b.Kind {
	case filter.BeforePartition:
		return codec.AppendPartitionStart(nil, table, b.Key.Partition)
	case filter.BeforeRow:
		return codec.AppendRowStart(nil, table, b.Key.Partition, b.Key.Row)
	case filter.AfterRow:
		return codec.AppendRowEnd(nil, table, b.Key.Partition, b.Key.Row)
	case filter.AfterPartition:
		return codec.AppendPartitionEnd(nil, table, b.Key.Partition)
	case filter.Unbounded:
	}
	panic("engine: bound of unknown kind")
}
