package filter

import (
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/predicate"
)

// residualOf returns what is left to ask of a row whose key lies in one of the
// ranges: n without those of its conditions on keys that hold everywhere there.
// It is n's own program where nothing can be left out, and nil if nothing is
// left.
func residualOf(p *predicate.Program, ranges []Range) *predicate.Program {
	root := p.Root()
	kids := []*predicate.Node{root}
	if root.Kind == predicate.And {
		kids = root.Kids
	}
	var left []*predicate.Node
	for _, k := range kids {
		if k.Kind == predicate.True || k.Kind == predicate.Compare && holdsIn(k, ranges) {
			continue
		}
		left = append(left, k)
	}
	switch len(left) {
	case len(kids):
		return p
	case 0:
		return nil
	}
	for i, k := range left {
		left[i] = copyOf(k)
	}
	return predicate.Compile(predicate.NewAnd(left...))
}

// copyOf returns a node that can become a part of another program.
func copyOf(n *predicate.Node) *predicate.Node {
	if n.Kind == predicate.Compare {
		c := predicate.NewCompare(n.Term.Name, n.Term.Op, n.Term.Value)
		c.Negated = n.Negated
		return c
	}
	c := &predicate.Node{Kind: n.Kind, Negated: n.Negated}
	for _, k := range n.Kids {
		c.Kids = append(c.Kids, copyOf(k))
	}
	return c
}

// holdsIn reports whether the comparison n is one of a key that is true for
// every key in the ranges.
func holdsIn(n *predicate.Node, ranges []Range) bool {
	if n.Term.Name != edm.PartitionKeyName && n.Term.Name != edm.RowKeyName {
		return false
	}
	op := n.Term.Op
	if n.Negated {
		op = op.Negate()
	}
	matching := spansOf(op, string(n.Term.Value.Bytes()))
	for _, r := range ranges {
		keys := r.partitions()
		if n.Term.Name == edm.RowKeyName {
			if _, single := singleText(keys.from, keys.to); !single {
				return false
			}
			keys = r.rows()
		}
		if !matching.hold(keys) {
			return false
		}
	}
	return true
}

// hold reports whether s holds all of t.
func (s spans) hold(t span) bool {
	for i := range s {
		if s[i].from.compare(t.from) <= 0 && t.to.compare(s[i].to) <= 0 {
			return true
		}
	}
	return false
}

// partitions returns the PartitionKeys that keys in r can have.
func (r Range) partitions() span {
	s := span{place{kind: first}, place{kind: last}}
	switch r.From.Kind {
	case BeforePartition, BeforeRow, AfterRow:
		s.from = beforeText(r.From.Key.Partition)
	case AfterPartition:
		s.from = place{after, r.From.Key.Partition}
	case Unbounded:
	}
	switch r.To.Kind {
	case BeforePartition:
		s.to = beforeText(r.To.Key.Partition)
	case BeforeRow, AfterRow, AfterPartition:
		s.to = place{after, r.To.Key.Partition}
	case Unbounded:
	}
	return s
}

// rows returns the RowKeys that keys in r, which lies in one partition, can
// have.
func (r Range) rows() span {
	s := span{place{kind: first}, place{kind: last}}
	switch r.From.Kind {
	case BeforeRow:
		s.from = beforeText(r.From.Key.Row)
	case AfterRow:
		s.from = place{after, r.From.Key.Row}
	case Unbounded, BeforePartition, AfterPartition:
	}
	switch r.To.Kind {
	case BeforeRow:
		s.to = beforeText(r.To.Key.Row)
	case AfterRow:
		s.to = place{after, r.To.Key.Row}
	case Unbounded, BeforePartition, AfterPartition:
	}
	return s
}
