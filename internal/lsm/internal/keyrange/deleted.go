package keyrange

import (
	"bytes"
	"slices"
	"sync"
)

const (
	// minPassed tombstones take queries a millisecond: about as long as the shortest compaction.
	minPassed = 1 << 14
	// minQueries queries that pass all of a range take about as long as its compaction.
	minQueries = 4
	// maxDeleted ranges are kept.
	maxDeleted = 16
)

// Deleted collects ranges of keys in which queries found only deleted entities. A range is due once
// they have spent more on its tombstones than its compaction does. The zero Deleted is empty. All
// methods may be called concurrently.
type Deleted struct {
	mu sync.Mutex
	// +checklocks:mu
	list []deletedRange
}

type deletedRange struct {
	lower, upper []byte
	tombstones   int // the most that one query passed
	passed       int // by all queries
}

func (r *deletedRange) due() bool { return r.passed >= max(minPassed, minQueries*r.tombstones) }

// Add adds a query that passed n tombstones, and no row, in [lower, upper), which it copies. It reports
// whether a range is due.
//
// If there are too many ranges, the new one takes the place of the least passed, and its count too:
// so what queries pass most stays in the list (Metwally et al., Efficient Computation of Frequent
// and Top-k Elements in Data Streams, 2005).
func (d *Deleted) Add(lower, upper []byte, n int) (due bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := deletedRange{lower, upper, n, n}
	d.list = slices.DeleteFunc(d.list, func(old deletedRange) bool {
		if bytes.Compare(old.upper, r.lower) < 0 || bytes.Compare(r.upper, old.lower) < 0 {
			return false
		}
		if bytes.Compare(old.lower, r.lower) < 0 {
			r.lower = old.lower
		}
		if bytes.Compare(old.upper, r.upper) > 0 {
			r.upper = old.upper
		}
		r.tombstones = max(r.tombstones, old.tombstones)
		r.passed += old.passed
		return true
	})
	if len(d.list) == maxDeleted {
		least := 0
		for i := range d.list {
			if d.list[i].passed < d.list[least].passed {
				least = i
			}
		}
		r.passed += d.list[least].passed
		d.list = slices.Delete(d.list, least, least+1)
	}
	r.lower, r.upper = bytes.Clone(r.lower), bytes.Clone(r.upper)
	d.list = append(d.list, r)
	return r.due()
}

// Take removes a range that is due and returns it, nil and nil if there is none.
func (d *Deleted) Take() (lower, upper []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.list, func(r deletedRange) bool { return r.due() })
	if i < 0 {
		return nil, nil
	}
	r := d.list[i]
	d.list = slices.Delete(d.list, i, i+1)
	return r.lower, r.upper
}
