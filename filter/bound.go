package filter

import "github.com/tablerock-db/tablerock/edm"

// BoundKind says where a Bound lies relative to keys.
type BoundKind uint8

// Kinds of Bound, in the order in which they lie for the same Key.
const (
	Unbounded       BoundKind = iota // before the first key as From, after the last as To
	BeforePartition                  // before every key whose Partition is Key.Partition or greater
	BeforeRow                        // before Key itself and every greater key
	AfterRow                         // after Key and before every greater key
	AfterPartition                   // after every key whose Partition is Key.Partition or smaller
)

// Bound is a place between keys.
type Bound struct {
	Kind BoundKind
	Key  edm.Key
}

// Range is the keys between two bounds.
type Range struct{ From, To Bound }
