package filter

import "github.com/tablerock-db/tablerock/edm"

// BoundKind is the position of a Bound relative to its key.
type BoundKind uint8

// The kinds of Bound, in their order for one Key.
const (
	Unbounded       BoundKind = iota // before the first key as From, after the last as To
	BeforePartition                  // before every key whose Partition is Key.Partition or greater
	BeforeRow                        // before Key and every greater key
	AfterRow                         // after Key and before every greater key
	AfterPartition                   // after every key whose Partition is Key.Partition or smaller
)

// Bound is a position between keys. It need not be next to a key that exists.
type Bound struct {
	Kind BoundKind
	Key  edm.Key // Row is ignored for BeforePartition and AfterPartition
}

// Range is the set of all keys between two bounds.
type Range struct{ From, To Bound }
