// Package keyspan describes the ranges of keys that a query reads.
package keyspan

import (
	"fmt"
	"strings"

	"github.com/tablerock-db/tablerock/filter"
)

// Scan is how much of a table ranges of keys select.
type Scan uint8

// The kinds of Scan, from the least to the most.
const (
	Nothing    Scan = iota
	Points          // single keys
	Rows            // ranges of rows in partitions
	Partitions      // all rows of some partitions
	Table           // all partitions
)

// String returns the name of the kind, for messages.
func (s Scan) String() string {
	return [...]string{"nothing", "points", "rows", "partitions", "table"}[s]
}

// Of returns the most that one of the ranges selects.
func Of(ranges []filter.Range) Scan {
	most := Nothing
	for _, r := range ranges {
		most = max(most, of(r))
	}
	return most
}

func of(r filter.Range) Scan {
	from, to := r.From, r.To
	switch {
	case from.Kind == filter.Unbounded && to.Kind == filter.Unbounded:
		return Table
	case isPoint(r):
		return Points
	case from.Kind == filter.Unbounded || to.Kind == filter.Unbounded || from.Key.Partition != to.Key.Partition:
		return Partitions
	case from.Kind == filter.BeforePartition && to.Kind == filter.AfterPartition:
		return Partitions
	}
	return Rows
}

// Advice says which whole partitions the ranges select, and which condition, joined by "and",
// would limit them. Both are "" if the ranges select none. A condition on RowKey limits ranges
// of one partition only.
func Advice(ranges []filter.Range) (reads, condition string) {
	switch Of(ranges) {
	case Table:
		return "the whole table", "on PartitionKey"
	case Partitions:
		for _, r := range ranges {
			if r.From.Kind == filter.Unbounded || r.To.Kind == filter.Unbounded || r.From.Key.Partition != r.To.Key.Partition {
				return "whole partitions", `"PartitionKey eq"`
			}
		}
		return "whole partitions", "on RowKey"
	case Nothing, Points, Rows:
	}
	return "", ""
}

func isPoint(r filter.Range) bool {
	return r.From.Kind == filter.BeforeRow && r.To.Kind == filter.AfterRow && r.From.Key == r.To.Key
}

// Describe returns a range in words.
func Describe(r filter.Range) string {
	from, to := r.From, r.To
	switch {
	case from.Kind == filter.Unbounded && to.Kind == filter.Unbounded:
		return "all keys"
	case isPoint(r):
		return key(from)
	case from.Kind == filter.BeforePartition && to.Kind == filter.AfterPartition && from.Key.Partition == to.Key.Partition:
		return partition(from)
	}
	return strings.TrimSpace(bound(from, "from ", "after ") + " " + bound(to, "before ", "to "))
}

// bound returns a bound in words, "" if it is open. A bound before a key or a partition begins with
// the word before, another one with after.
func bound(b filter.Bound, before, after string) string {
	switch b.Kind {
	case filter.BeforePartition:
		return before + partition(b)
	case filter.BeforeRow:
		return before + key(b)
	case filter.AfterRow:
		return after + key(b)
	case filter.AfterPartition:
		return after + partition(b)
	case filter.Unbounded:
	}
	return ""
}

func partition(b filter.Bound) string { return fmt.Sprintf("PartitionKey %q", b.Key.Partition) }

func key(b filter.Bound) string {
	return fmt.Sprintf("PartitionKey %q RowKey %q", b.Key.Partition, b.Key.Row)
}
