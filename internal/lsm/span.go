package lsm

import (
	"bytes"

	"github.com/tablerock-db/tablerock/internal/merge"
	"github.com/tablerock-db/tablerock/sstable"
)

// selected is the selected rows of a Source.
type selected struct{ *Source }

func (s selected) Next() bool { return s.it.NextSelected() }
func (s selected) Prev() bool { return s.it.PrevSelected() }

// Ahead implements merge.Ahead: what s knows counts rows that are not selected.
func (s selected) Ahead([]byte, bool) int { return 0 }

// Selected returns a view of s that moves over the selected rows of a span: Next to the
// first one after Select, Prev to the last one. It shares the position of s.
func (s *Source) Selected() merge.Source { return selected{s} }

// Iterator returns the iterator of the current sstable, which Select has moved.
func (s *Source) Iterator() *sstable.Iterator { return s.it }

// Span returns the current span. Its Upper is not nil. It is valid until a span of another
// sstable is the current one.
func (s *Source) Span() *sstable.Span { return &s.span }

// SpanGE makes the first span that may have user keys of at least key the current one, and
// reports whether there is one. From one call to the next, key must not become less.
func (s *Source) SpanGE(key []byte) bool {
	if s.spanned && bytes.Compare(key, s.span.Upper) < 0 {
		return true
	}
	i := s.spanSST
	if s.spanned && s.span.Rows > 0 && bytes.Equal(key, s.span.Upper) && s.i == i && s.it != nil {
		if s.setSpan(s.it.SpanAfter(&s.span)) {
			return true
		}
	}
	for i < len(s.ssts) && bytes.Compare(s.ssts[i].Hi, key) < 0 {
		i++
	}
	if !s.openSpan(i) {
		return s.spanned
	}
	return s.setSpan(s.it.SpanGE(key))
}

// SpanLT makes the last span that may have user keys less than key the current one, and
// reports whether there is one. From one call to the next, key must not become greater.
func (s *Source) SpanLT(key []byte) bool {
	if s.spanned && bytes.Compare(s.span.Lower, key) < 0 {
		return true
	}
	i := s.spanSST
	if !s.spanned {
		i = len(s.ssts) - 1
	}
	for i >= 0 && bytes.Compare(s.ssts[i].Lo, key) >= 0 {
		i--
	}
	if !s.openSpan(i) {
		return s.spanned
	}
	return s.setSpan(s.it.SpanLT(key))
}

// openSpan opens sstable i for a span and reports whether it is open. If the file cannot be
// read, or s has failed before, all of the sstable becomes the current span, without Rows: it is
// not Selectable, so that rows are read one by one, which returns the error.
func (s *Source) openSpan(i int) bool {
	s.spanned, s.spanSST = false, min(max(i, 0), len(s.ssts))
	if s.spanSST != i || i == len(s.ssts) {
		return false
	}
	sst := s.ssts[i]
	s.end = append(append(s.end[:0], sst.Hi...), 0)
	if _, err := sst.Reader(); err == nil && s.open(i) {
		return true
	}
	s.setSpan(sstable.Span{Lower: sst.Lo, Upper: s.end}, true)
	return false
}

func (s *Source) setSpan(span sstable.Span, ok bool) bool {
	if ok && (span.Upper == nil || bytes.Compare(s.end, span.Upper) < 0) {
		span.Upper = s.end
	}
	s.spanned, s.span = ok, span
	return ok
}

// SpanIterator returns the iterator of the sstable of the span.
func (s *Source) SpanIterator() (*sstable.Iterator, error) {
	if !s.open(s.spanSST) {
		return nil, s.err
	}
	return s.it, nil
}

// NewerThan reports whether versions in the span of s are newer than versions of the same
// keys in the span of o.
func (s *Source) NewerThan(o *Source) bool {
	a, b := &s.ssts[s.spanSST].Meta, &o.ssts[o.spanSST].Meta
	return a.Tier < b.Tier || a.Tier == b.Tier && a.Run > b.Run
}
