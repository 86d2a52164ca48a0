package filter

import (
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/predicate"
)

// narrow returns the ranges of the keys for which p can be true, and the condition for rows whose keys are
// in them: p without the comparisons of keys that are true for all of these keys. The condition is p itself
// if all comparisons are needed, and nil if none is.
func narrow(p *predicate.Program) (ranges []Range, residual *predicate.Program) {
	kids := []*predicate.Node{p.Root()}
	if p.Root().Kind == predicate.And {
		kids = p.Root().Kids
	}
	ranges, exact := rangesOf(kids)
	var left []*predicate.Node
	for _, k := range kids {
		if exact && onlyKeys(k) || k.Kind == predicate.True || k.Kind == predicate.Compare && trueIn(k, ranges) {
			continue
		}
		left = append(left, k)
	}
	switch len(left) {
	case len(kids):
		return ranges, p
	case 0:
		return ranges, nil
	}
	for i, k := range left {
		left[i] = k.Clone()
	}
	return ranges, predicate.Compile(predicate.NewAnd(left...))
}

// trueIn reports whether n compares a key and is true for every key in ranges.
func trueIn(n *predicate.Node, ranges []Range) bool {
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
		if !matching.contains(keys) {
			return false
		}
	}
	return true
}

// contains reports whether s contains all of t.
func (s spans) contains(t span) bool {
	for i := range s {
		if s[i].from.compare(t.from) <= 0 && t.to.compare(s[i].to) <= 0 {
			return true
		}
	}
	return false
}

// partitions returns the PartitionKeys of the keys in r.
func (r Range) partitions() span {
	s := span{textBound{kind: atStart}, textBound{kind: atEnd}}
	switch r.From.Kind {
	case BeforePartition, BeforeRow, AfterRow:
		s.from = boundBefore(r.From.Key.Partition)
	case AfterPartition:
		s.from = textBound{afterText, r.From.Key.Partition}
	case Unbounded:
	}
	switch r.To.Kind {
	case BeforePartition:
		s.to = boundBefore(r.To.Key.Partition)
	case BeforeRow, AfterRow, AfterPartition:
		s.to = textBound{afterText, r.To.Key.Partition}
	case Unbounded:
	}
	return s
}

// rows returns the RowKeys of the keys in r, which is within one partition.
func (r Range) rows() span {
	s := span{textBound{kind: atStart}, textBound{kind: atEnd}}
	switch r.From.Kind {
	case BeforeRow:
		s.from = boundBefore(r.From.Key.Row)
	case AfterRow:
		s.from = textBound{afterText, r.From.Key.Row}
	case Unbounded, BeforePartition, AfterPartition:
	}
	switch r.To.Kind {
	case BeforeRow:
		s.to = boundBefore(r.To.Key.Row)
	case AfterRow:
		s.to = textBound{afterText, r.To.Key.Row}
	case Unbounded, BeforePartition, AfterPartition:
	}
	return s
}
