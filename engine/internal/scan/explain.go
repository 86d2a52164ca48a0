package scan

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/lsm"
	"github.com/tablerock-db/tablerock/internal/merge"
	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/store"
)

// Explain implements store.Explainer. It reads indexes and bounds of groups, but no rows.
func (c *Cursor) Explain() (store.Plan, error) {
	var p store.Plan
	if c.state == nil {
		return p, c.err
	}
	all := keyRange{codec.AppendTable(nil, c.table), codec.AppendTable(nil, c.table+1)}
	err := c.spans([]keyRange{all}, nil, func(bool) { p.Groups++ })
	ranges := slices.Clone(c.rest)
	if c.q.Reverse {
		slices.Reverse(ranges)
	}
	if err != nil || len(ranges) == 0 {
		return p, err
	}
	var prune *predicate.Program
	if r := predicate.Residual(c.q.Filter); r != nil {
		prune = r.ForBounds()
	}
	err = c.spans(ranges, prune, func(excluded bool) {
		p.InRanges++
		if excluded {
			p.Excluded++
		}
	})
	return p, err
}

// spans calls visit for each span of a file that can have keys in the ranges, which ascend.
func (s *state) spans(ranges []keyRange, prune *predicate.Program, visit func(excluded bool)) error {
	var sources Sources
	s.data.AddSources(&sources, ranges[0].lower, ranges[len(ranges)-1].upper, prune)
	var err error
	for _, src := range sources.files {
		if err == nil {
			err = s.spansOf(src, ranges, visit)
		}
		err = cmp.Or(err, src.Err())
	}
	var it merge.Iterator
	it.Init(sources.all, merge.Options{})
	return cmp.Or(err, it.Close()) // Close repeats the sources' errors
}

// spansOf is spans for one source.
func (s *state) spansOf(src *lsm.Source, ranges []keyRange, visit func(excluded bool)) error {
	var last []byte // the lower bound of the last span visited
	for _, r := range ranges {
		for key := r.lower; bytes.Compare(key, r.upper) < 0 && src.SpanGE(key); {
			span := src.Span()
			if bytes.Compare(span.Lower, r.upper) >= 0 || bytes.Compare(span.Upper, key) <= 0 {
				break
			}
			if span.Rows == 0 { // the file could not be read
				if _, err := src.SpanIterator(); err != nil {
					return err
				}
			}
			if last == nil || !bytes.Equal(last, span.Lower) {
				visit(span.Rows > 0 && excludes(src))
			}
			last = append(last[:0], span.Lower...)
			key = bytes.Clone(span.Upper)
			if err := s.ctx.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}
