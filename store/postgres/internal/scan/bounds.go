package scan

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
)

// bound is a position between keys: before the first key that is not less than (p, r), as
// PostgreSQL compares the columns p and r.
type bound struct{ p, r []byte }

// afterAll is greater than every key component, whose bytes are in 20..EF.
const afterAll = 0xFF

var (
	firstBound = bound{[]byte{}, []byte{}}
	lastBound  = bound{[]byte{afterAll}, []byte{}}
)

// boundOf returns b as a bound. open is for an Unbounded one.
func boundOf(b filter.Bound, open bound) bound {
	p := codec.AppendText([]byte{}, b.Key.Partition)
	switch b.Kind {
	case filter.BeforePartition:
		return bound{p, []byte{}}
	case filter.BeforeRow:
		return bound{p, codec.AppendText([]byte{}, b.Key.Row)}
	case filter.AfterRow:
		return bound{p, append(codec.AppendText([]byte{}, b.Key.Row), 0)}
	case filter.AfterPartition:
		return bound{p, []byte{afterAll}}
	case filter.Unbounded:
	}
	return open
}

func (b bound) compare(o bound) int {
	if c := bytes.Compare(b.p, o.p); c != 0 {
		return c
	}
	return bytes.Compare(b.r, o.r)
}

// from returns the Query.From of a query that continues in ascending order at b, or with
// reverse in descending order. It is nil for lastBound.
func (b bound) from(reverse bool) *edm.Key {
	text := func(b []byte) string { return string(codec.AppendUTF8(nil, b)) }
	switch {
	case len(b.p) == 1 && b.p[0] == afterAll:
		return nil
	case len(b.r) == 1 && b.r[0] == afterAll:
		// No key contains NUL, so this is between the partition and the next one.
		return &edm.Key{Partition: text(b.p) + "\x00"}
	case reverse && len(b.r) == 0 && len(b.p) > 0:
		return &edm.Key{Partition: before(text(b.p))}
	case reverse:
		// The key before b, if b is immediately after one.
		return &edm.Key{Partition: text(b.p), Row: text(bytes.TrimSuffix(b.r, []byte{0}))}
	}
	return &edm.Key{Partition: text(b.p), Row: text(b.r)}
}

// before returns a text between all legal partitions that are less than p and p: longer than they can be, and
// greater at each code unit where they differ from p.
func before(p string) string {
	last, n := utf8.DecodeLastRuneInString(p)
	p = p[:len(p)-n]
	switch last {
	case 0:
		return p
	case 0xE000:
		last = utf8.MaxRune // surrogates are before it
	case 0x10000:
		last = 0xD7FF // its surrogates are the least
	default:
		last--
	}
	return p + string(last) + strings.Repeat("\uFFFF", edm.MaxKeyUnits)
}

// interval is the set of keys from lo on and before hi.
type interval struct{ lo, hi bound }

// intervals returns what a query reads, in its order.
func intervals(ranges []filter.Range, from *edm.Key, reverse bool) []interval {
	out := make([]interval, 0, len(ranges))
	for _, r := range ranges {
		n := interval{boundOf(r.From, firstBound), boundOf(r.To, lastBound)}
		switch {
		case from == nil:
		case reverse:
			if b := boundOf(filter.Bound{Kind: filter.AfterRow, Key: *from}, lastBound); b.compare(n.hi) < 0 {
				n.hi = b
			}
		default:
			if b := boundOf(filter.Bound{Kind: filter.BeforeRow, Key: *from}, firstBound); b.compare(n.lo) > 0 {
				n.lo = b
			}
		}
		if n.lo.compare(n.hi) < 0 {
			out = append(out, n)
		}
	}
	if reverse {
		for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
			out[i], out[j] = out[j], out[i]
		}
	}
	return out
}
