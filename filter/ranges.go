package filter

import (
	"slices"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/predicate"
)

// Limits on ranges and on the work of finding them.
const (
	// maxRanges limits the ranges that Ranges returns.
	maxRanges = 256
	// maxSpans limits the spans of partitions and rows in a keySet. A filter that
	// fits into a URL exceeds it only by combining partitions with rows.
	maxSpans = 1 << 14
)

// keySet is a set of keys: all partitions, divided into spans in ascending order,
// each with the rows that the set has in every partition of the span. The first
// span begins at the first partition. Each ends where the next begins; the last
// has no end.
//
// "and", "or" and "not" of comparisons with keys give sets of this form, so a
// condition on RowKey applies to the right partitions wherever it is in a filter.
type keySet []partitionSpan

type partitionSpan struct {
	from textBound
	rows spans
}

// spans is a set of PartitionKeys or of RowKeys: intervals in ascending order,
// neither empty nor adjacent. It is immutable.
type spans []span

type span struct{ from, to textBound }

// textBound is a position between two texts.
type textBound struct {
	kind boundSide
	text string // of beforeText and afterText
}

type boundSide uint8

const (
	atStart    boundSide = iota // before the empty text, which is the least
	beforeText                  // immediately before text, which is not empty
	afterText                   // immediately after text
	atEnd                       // after every text
)

// boundBefore returns the bound immediately before s.
func boundBefore(s string) textBound {
	if s == "" {
		return textBound{kind: atStart}
	}
	return textBound{beforeText, s}
}

func (p textBound) compare(q textBound) int {
	if p.kind == atStart || p.kind == atEnd || q.kind == atStart || q.kind == atEnd {
		return int(p.kind) - int(q.kind)
	}
	if c := edm.Compare(p.text, q.text); c != 0 {
		return c
	}
	return int(p.kind) - int(q.kind)
}

var (
	allRows = spans{{textBound{kind: atStart}, textBound{kind: atEnd}}}
	allKeys = keySet{{textBound{kind: atStart}, allRows}}
	noKeys  = keySet{{textBound{kind: atStart}, nil}}
)

// rangesOf returns the ranges of the keys for which all of nodes can be true. exact reports that those of
// the nodes that compare only keys are true for all keys in the ranges.
func rangesOf(nodes []*predicate.Node) (ranges []Range, exact bool) {
	var keys, others []*predicate.Node
	for _, n := range nodes {
		if onlyKeys(n) {
			keys = append(keys, n)
		} else {
			others = append(others, n)
		}
	}
	set, exact := allKeys, true
	if len(keys) > 0 {
		set, exact = join(keys, spans.intersect)
		exact = exact && set.isRanges()
	}
	if len(others) > 0 {
		more, _ := join(others, spans.intersect)
		var whole bool
		set, whole = combineKeys(set, more, spans.intersect)
		exact = exact && whole
	}
	ranges = set.ranges()
	return coalesce(ranges), exact && len(ranges) <= maxRanges
}

// onlyKeys reports whether n compares nothing but keys.
func onlyKeys(n *predicate.Node) bool {
	if n.Kind == predicate.Compare {
		return n.Term.Name == edm.PartitionKeyName || n.Term.Name == edm.RowKeyName
	}
	return !slices.ContainsFunc(n.Kids, func(k *predicate.Node) bool { return !onlyKeys(k) })
}

// keysOf returns a set that contains every key for which n can be true. exact reports that it contains
// no other key.
func keysOf(n *predicate.Node) (set keySet, exact bool) {
	switch n.Kind {
	case predicate.False:
		return noKeys, true
	case predicate.True:
		return allKeys, true
	case predicate.And:
		return join(n.Kids, spans.intersect)
	case predicate.Or:
		return join(n.Kids, spans.union)
	}
	if n.Term.Name != edm.PartitionKeyName && n.Term.Name != edm.RowKeyName {
		return allKeys, false
	}
	op := n.Term.Op
	if n.Negated {
		op = op.Negate() // every entity has both keys
	}
	matching := spansOf(op, string(n.Term.Value.Bytes()))
	if n.Term.Name == edm.RowKeyName {
		return keySet{{textBound{kind: atStart}, matching}}, true
	}
	set = keySet{{textBound{kind: atStart}, nil}}
	for _, s := range matching {
		if s.from.kind == atStart {
			set = set[:0]
		}
		set = append(set, partitionSpan{s.from, allRows})
		if s.to.kind != atEnd {
			set = append(set, partitionSpan{s.to, nil})
		}
	}
	return set, true
}

// join combines the sets of nodes, with exact as keysOf. It divides them in halves, so that long chains
// take O(n log n).
func join(nodes []*predicate.Node, combine func(a, b spans) spans) (set keySet, exact bool) {
	if len(nodes) == 1 {
		return keysOf(nodes[0])
	}
	half := len(nodes) / 2
	a, exactA := join(nodes[:half], combine)
	b, exactB := join(nodes[half:], combine)
	set, whole := combineKeys(a, b, combine)
	return set, exactA && exactB && whole
}

// combineKeys combines the rows of a and b in every partition. It coalesces rows as soon as the
// result has too many spans: the product of the partitions of a and the rows of b would need
// 100 MB for a filter of 64 KiB. whole reports that it did not.
func combineKeys(a, b keySet, combine func(a, b spans) spans) (out keySet, whole bool) {
	out = make(keySet, 0, len(a)+len(b)-1)
	size, most := 0, maxSpans // most spans of rows in a partition
	whole = true
	for i, j := 0, 0; ; {
		from := a[i].from
		if b[j].from.compare(from) > 0 {
			from = b[j].from
		}
		rows := combine(a[i].rows.coalesce(most), b[j].rows.coalesce(most)).coalesce(most)
		if n := len(out); n == 0 || !slices.Equal(out[n-1].rows, rows) {
			out = append(out, partitionSpan{from, rows})
			size += 1 + len(rows)
		}
		whole = whole && size <= maxSpans
		for size > maxSpans && most > 1 {
			if most == maxRanges {
				most = 1
			} else {
				most = maxRanges
			}
			size = out.coalesceRows(most)
		}
		// Advance to the next partition at which the rows can change.
		switch {
		case i+1 < len(a) && (j+1 == len(b) || a[i+1].from.compare(b[j+1].from) <= 0):
			if j+1 < len(b) && a[i+1].from == b[j+1].from {
				j++
			}
			i++
		case j+1 < len(b):
			j++
		default:
			return out.widen(size), whole
		}
	}
}

// widen returns a superset of s with at most maxSpans spans, where size is the
// number of spans in s. It fills gaps between rows first, then between partitions.
func (s keySet) widen(size int) keySet {
	for _, n := range []int{maxRanges, 1} {
		if size <= maxSpans {
			return s
		}
		size = s.coalesceRows(n)
	}
	for ; size > maxSpans; size = 2 * len(s) {
		s = s.halve()
	}
	return s
}

// coalesceRows joins neighbours in the rows of each partition until at most n spans are left.
// It returns the number of spans in s.
func (s keySet) coalesceRows(n int) (size int) {
	for i := range s {
		s[i].rows = s[i].rows.coalesce(n)
		size += 1 + len(s[i].rows)
	}
	return size
}

// halve joins every second span that has rows with the one before it.
func (s keySet) halve() keySet {
	out := make(keySet, 0, len(s)/2+2)
	open := false // the last span of out that has rows is not joined yet
	for i, g := range s {
		switch {
		case len(g.rows) == 0:
			if !open || i == len(s)-1 {
				out = append(out, g)
			}
		case open:
			l := &out[len(out)-1]
			l.rows = l.rows.union(g.rows).coalesce(1)
			open = false
		default:
			out = append(out, partitionSpan{g.from, g.rows.coalesce(1)})
			open = true
		}
	}
	return out
}

// coalesce joins neighbours of s until at most n spans are left.
func (s spans) coalesce(n int) spans {
	if len(s) <= n {
		return s
	}
	out := make(spans, n)
	for i := range out {
		out[i] = span{s[i*len(s)/n].from, s[(i+1)*len(s)/n-1].to}
	}
	return out
}

// all reports whether s contains every text.
func (s spans) all() bool { return len(s) == 1 && s[0].from.kind == atStart && s[0].to.kind == atEnd }

// intersect returns the texts in both s and t.
func (s spans) intersect(t spans) spans {
	switch {
	case len(s) == 0 || t.all():
		return s
	case len(t) == 0 || s.all():
		return t
	}
	var out spans
	for i, j := 0, 0; i < len(s) && j < len(t); {
		from, to := s[i].from, s[i].to
		if t[j].from.compare(from) > 0 {
			from = t[j].from
		}
		if t[j].to.compare(to) < 0 {
			to = t[j].to
			j++
		} else {
			i++
		}
		if from.compare(to) < 0 {
			out = append(out, span{from, to})
		}
	}
	return out
}

// union returns the texts in s or t.
func (s spans) union(t spans) spans {
	switch {
	case len(s) == 0 || t.all():
		return t
	case len(t) == 0 || s.all():
		return s
	}
	out := make(spans, 0, len(s)+len(t))
	for i, j := 0, 0; i < len(s) || j < len(t); {
		var next span
		if j == len(t) || i < len(s) && s[i].from.compare(t[j].from) <= 0 {
			next = s[i]
			i++
		} else {
			next = t[j]
			j++
		}
		if n := len(out); n > 0 && next.from.compare(out[n-1].to) <= 0 {
			if next.to.compare(out[n-1].to) > 0 {
				out[n-1].to = next.to
			}
		} else {
			out = append(out, next)
		}
	}
	return out
}

// isRanges reports whether ranges has no keys that are not in s.
func (s keySet) isRanges() bool {
	for i, g := range s {
		if _, single := s.single(i); !single && len(g.rows) > 0 && !g.rows.all() {
			return false
		}
	}
	return true
}

// single returns the only partition in span i, if there is only one.
func (s keySet) single(i int) (partition string, ok bool) {
	if i+1 == len(s) {
		return "", false
	}
	return singleText(s[i].from, s[i+1].from)
}

// ranges returns s as ranges of keys. A span of several partitions that has rows
// becomes a range with all rows.
func (s keySet) ranges() []Range {
	var out []Range
	add := func(from, to Bound) {
		if n := len(out); n > 0 && out[n-1].To == from {
			out[n-1].To = to
		} else {
			out = append(out, Range{from, to})
		}
	}
	for i, g := range s {
		end := textBound{kind: atEnd}
		if i+1 < len(s) {
			end = s[i+1].from
		}
		partition, single := s.single(i)
		switch {
		case len(g.rows) == 0:
		case !single:
			add(g.from.partitionBound(), end.partitionBound())
		default:
			for _, r := range g.rows {
				add(r.from.rowBound(partition), r.to.rowBound(partition))
			}
		}
	}
	return out
}

// singleText returns the text between from and to if there is only one.
func singleText(from, to textBound) (string, bool) {
	if to.kind == afterText && from == boundBefore(to.text) {
		return to.text, true
	}
	return "", false
}

// partitionBound returns p as a bound between partitions.
func (p textBound) partitionBound() Bound {
	switch p.kind {
	case beforeText:
		return Bound{BeforePartition, edm.Key{Partition: p.text}}
	case afterText:
		return Bound{AfterPartition, edm.Key{Partition: p.text}}
	}
	return Bound{}
}

// rowBound returns p as a bound between the rows of a partition.
func (p textBound) rowBound(partition string) Bound {
	switch p.kind {
	case beforeText:
		return Bound{BeforeRow, edm.Key{Partition: partition, Row: p.text}}
	case afterText:
		return Bound{AfterRow, edm.Key{Partition: partition, Row: p.text}}
	case atEnd:
		return textBound{afterText, partition}.partitionBound()
	}
	return boundBefore(partition).partitionBound()
}

// coalesce joins neighbours of r until at most maxRanges ranges are left.
func coalesce(r []Range) []Range {
	n := len(r)
	if n <= maxRanges {
		return r
	}
	out := make([]Range, maxRanges)
	for i := range out {
		out[i] = Range{r[i*n/maxRanges].From, r[(i+1)*n/maxRanges-1].To}
	}
	return out
}
