package filter

import (
	"slices"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/predicate"
)

// Limits on ranges and on the work of finding them.
const (
	// maxRanges is how many ranges Ranges returns.
	maxRanges = 256
	// maxSpans is how many segments and spans of rows a keySet has. No filter
	// that fits into a URL gets there by naming keys, only by multiplying
	// partitions by rows.
	maxSpans = 1 << 14
)

// keySet is a set of keys: the partitions, cut into segments in ascending order,
// each with the rows that belong to the set in every partition of the segment.
// The first segment begins at the first partition, each ends where the next
// begins, and the last never ends. Sets of this form are closed under and, or and
// not of comparisons with keys, so that conditions on RowKey find their
// partitions wherever they stand in a filter.
type keySet []segment

type segment struct {
	from place
	rows spans
}

// spans is a set of PartitionKeys or of RowKeys: intervals, ascending, not empty
// and not touching. It is never changed once made.
type spans []span

type span struct{ from, to place }

// place is a place between texts.
type place struct {
	kind placeKind
	text string // of before and after
}

type placeKind uint8

const (
	first  placeKind = iota // before the empty text, which is the least
	before                  // right before text, which is not empty
	after                   // right after text
	last                    // after every text
)

// beforeText returns the place right before s.
func beforeText(s string) place {
	if s == "" {
		return place{kind: first}
	}
	return place{before, s}
}

func (p place) compare(q place) int {
	if p.kind == first || p.kind == last || q.kind == first || q.kind == last {
		return int(p.kind) - int(q.kind)
	}
	if c := edm.Compare(p.text, q.text); c != 0 {
		return c
	}
	return int(p.kind) - int(q.kind)
}

var (
	allRows = spans{{place{kind: first}, place{kind: last}}}
	allKeys = keySet{{place{kind: first}, allRows}}
	noKeys  = keySet{{place{kind: first}, nil}}
)

// rangesOf returns the ranges in which n can hold.
func rangesOf(n *predicate.Node) []Range { return keysOf(n).ranges() }

// keysOf returns a set that holds every key for which n can hold.
func keysOf(n *predicate.Node) keySet {
	switch n.Kind {
	case predicate.False:
		return noKeys
	case predicate.True:
		return allKeys
	case predicate.And:
		return join(n.Kids, spans.intersect)
	case predicate.Or:
		return join(n.Kids, spans.unite)
	}
	if n.Term.Name != edm.PartitionKeyName && n.Term.Name != edm.RowKeyName {
		return allKeys
	}
	op := n.Term.Op
	if n.Negated {
		op = op.Negate() // every entity has both keys
	}
	matching := spansOf(op, string(n.Term.Value.Bytes()))
	if n.Term.Name == edm.RowKeyName {
		return keySet{{place{kind: first}, matching}}
	}
	set := keySet{{place{kind: first}, nil}}
	for _, s := range matching {
		if s.from.kind == first {
			set = set[:0]
		}
		set = append(set, segment{s.from, allRows})
		if s.to.kind != last {
			set = append(set, segment{s.to, nil})
		}
	}
	return set
}

// join combines the sets of nodes by halves, so that long chains cost n log n.
func join(nodes []*predicate.Node, combine func(a, b spans) spans) keySet {
	if len(nodes) == 1 {
		return keysOf(nodes[0])
	}
	half := len(nodes) / 2
	return combineKeys(join(nodes[:half], combine), join(nodes[half:], combine), combine)
}

// combineKeys combines the rows of a and b in every partition.
func combineKeys(a, b keySet, combine func(a, b spans) spans) keySet {
	out := make(keySet, 0, len(a)+len(b)-1)
	size := 0
	for i, j := 0, 0; ; {
		from := a[i].from
		if b[j].from.compare(from) > 0 {
			from = b[j].from
		}
		rows := combine(a[i].rows, b[j].rows)
		if n := len(out); n == 0 || !slices.Equal(out[n-1].rows, rows) {
			out = append(out, segment{from, rows})
			size += 1 + len(rows)
		}
		// Step to where the rows can change next.
		switch {
		case i+1 < len(a) && (j+1 == len(b) || a[i+1].from.compare(b[j+1].from) <= 0):
			if j+1 < len(b) && a[i+1].from == b[j+1].from {
				j++
			}
			i++
		case j+1 < len(b):
			j++
		default:
			return out.widen(size)
		}
	}
}

// widen returns a superset of s that is at most maxSpans large; s is size large.
// What it takes in are the gaps between rows first, then those between
// partitions.
func (s keySet) widen(size int) keySet {
	for _, n := range []int{maxRanges, 1} {
		if size <= maxSpans {
			return s
		}
		size = 0
		for i := range s {
			s[i].rows = s[i].rows.coalesce(n)
			size += 1 + len(s[i].rows)
		}
	}
	for ; size > maxSpans; size = 2 * len(s) {
		s = s.halve()
	}
	return s
}

// halve joins every second segment that holds rows with the one before it.
func (s keySet) halve() keySet {
	out := make(keySet, 0, len(s)/2+2)
	open := false // the last segment of out that holds rows waits for another
	for i, g := range s {
		switch {
		case len(g.rows) == 0:
			if !open || i == len(s)-1 {
				out = append(out, g)
			}
		case open:
			l := &out[len(out)-1]
			l.rows = l.rows.unite(g.rows).coalesce(1)
			open = false
		default:
			out = append(out, segment{g.from, g.rows.coalesce(1)})
			open = true
		}
	}
	return out
}

// coalesce returns at most n spans that hold what s holds, by joining
// neighbours.
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

// all reports whether s holds every text.
func (s spans) all() bool { return len(s) == 1 && s[0].from.kind == first && s[0].to.kind == last }

// intersect returns what is in both s and t.
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

// unite returns what is in s or in t.
func (s spans) unite(t spans) spans {
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

// ranges returns s as ranges of keys. A segment that is not a single partition
// is taken with all rows, or not at all.
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
		end := place{kind: last}
		if i+1 < len(s) {
			end = s[i+1].from
		}
		partition, single := singleText(g.from, end)
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
	return coalesce(out)
}

// singleText returns the only text between from and to, if there is one.
func singleText(from, to place) (string, bool) {
	if to.kind == after && from == beforeText(to.text) {
		return to.text, true
	}
	return "", false
}

// partitionBound returns p as a place between partitions.
func (p place) partitionBound() Bound {
	switch p.kind {
	case before:
		return Bound{BeforePartition, edm.Key{Partition: p.text}}
	case after:
		return Bound{AfterPartition, edm.Key{Partition: p.text}}
	}
	return Bound{}
}

// rowBound returns p as a place between the rows of a partition.
func (p place) rowBound(partition string) Bound {
	switch p.kind {
	case before:
		return Bound{BeforeRow, edm.Key{Partition: partition, Row: p.text}}
	case after:
		return Bound{AfterRow, edm.Key{Partition: partition, Row: p.text}}
	case last:
		return place{after, partition}.partitionBound()
	}
	return beforeText(partition).partitionBound()
}

// coalesce returns at most maxRanges ranges that hold what r holds, by joining
// neighbours.
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
