// Package recent keeps the last requests of a server, their latencies and the slow queries,
// in bounded memory.
package recent

import (
	"cmp"
	"math/bits"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/internal/livestate"
)

const (
	kept       = 256 // requests
	seconds    = 60  // of latencies
	maxShapes  = 200
	maxText    = 2 << 10 // bytes of a filter
	slowTime   = 20 * time.Millisecond
	slowRows   = 1000 // examined in vain
	stepsOfTwo = 4    // buckets for each power of two of microseconds
	buckets    = 40 * stepsOfTwo
)

// Request is a request that was answered. Texts are kept.
type Request struct {
	Operation, Account, Table string
	Write                     bool
	Status                    int
	Code, ID                  string
	Duration                  time.Duration
	Examined, Returned        int
	Filter                    *filter.Expr // of a query
}

// Monitor keeps requests. It is safe for concurrent use.
type Monitor struct {
	now      func() time.Time
	InFlight func() int64 // requests under way; nil if that is not known
	Conns    func() int   // open connections; nil if that is not known

	reads    atomic.Uint64
	writes   atomic.Uint64
	failures atomic.Uint64
	examined atomic.Uint64
	returned atomic.Uint64

	mu      sync.Mutex
	last    [kept]livestate.Request    // a ring; +checklocks:mu
	n       uint64                     // requests so far; +checklocks:mu
	latency [seconds]second            // by the second of the clock; +checklocks:mu
	shapes  map[shape]*livestate.Shape // +checklocks:mu
}

// second counts the requests of one second by duration.
type second struct {
	at     int64 // Unix time
	counts [buckets]uint32
	max    time.Duration
}

// shape is a query without its constants.
type shape struct{ account, table, text string }

// New returns an empty Monitor.
func New(now func() time.Time) *Monitor {
	return &Monitor{now: now, shapes: map[shape]*livestate.Shape{}}
}

// Observe adds a request.
func (m *Monitor) Observe(q *Request) {
	now := m.now()
	if q.Write {
		m.writes.Add(1)
	} else {
		m.reads.Add(1)
	}
	if q.Status >= http.StatusBadRequest {
		m.failures.Add(1)
	}
	m.examined.Add(uint64(q.Examined))
	m.returned.Add(uint64(q.Returned))
	text, form := "", shape{account: q.Account, table: q.Table}
	isSlow := q.Filter != nil && (q.Duration >= slowTime || q.Examined-q.Returned >= slowRows)
	if isSlow {
		text, form.text = cut(q.Filter.String()), shapeOf(q.Filter)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at := &m.last[m.n%kept]
	m.n++
	*at = livestate.Request{
		At: now, Operation: q.Operation, Account: q.Account, Table: q.Table, Status: q.Status, Code: q.Code, ID: q.ID,
		Ms: milliseconds(q.Duration), Examined: q.Examined, Returned: q.Returned, Filter: text,
	}
	s := &m.latency[now.Unix()%seconds]
	if s.at != now.Unix() {
		*s = second{at: now.Unix()}
	}
	s.counts[bucketOf(q.Duration)]++
	s.max = max(s.max, q.Duration)
	if isSlow {
		m.addLocked(form, at)
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// cut limits a text, at a character.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "..."
}

// addLocked adds a slow query to its shape. The shape that was not seen for longest gives
// way to another one.
//
// +checklocks:m.mu
func (m *Monitor) addLocked(form shape, q *livestate.Request) {
	s := m.shapes[form]
	if s == nil {
		if len(m.shapes) == maxShapes {
			var oldest *shape
			for key := range m.shapes {
				if oldest == nil || m.shapes[key].Last.Before(m.shapes[*oldest].Last) {
					oldest = &key
				}
			}
			delete(m.shapes, *oldest)
		}
		s = &livestate.Shape{Account: form.account, Table: form.table, Shape: form.text}
		m.shapes[form] = s
	}
	s.Count++
	s.TotalMs += q.Ms
	s.Examined += uint64(q.Examined)
	s.Returned += uint64(q.Returned)
	s.Last = q.At
	if q.Ms >= s.MaxMs {
		s.MaxMs, s.Example = q.Ms, q.Filter
	}
}

// shapeOf returns the text of a filter with ? for each constant.
func shapeOf(e *filter.Expr) string { return cut(string(appendShape(nil, e.Tree()))) }

func appendShape(dst []byte, t filter.Tree) []byte {
	if len(dst) > maxText {
		return dst
	}
	switch t.Op {
	case "and", "or", "not":
		if t.Op == "not" {
			dst = append(dst, "not "...)
		}
		dst = append(dst, '(')
		for i, item := range t.Items {
			if i > 0 {
				dst = append(append(append(dst, ' '), t.Op...), ' ')
			}
			dst = appendShape(dst, item)
		}
		return append(dst, ')')
	case "":
		return append(dst, '?')
	}
	return append(append(append(append(dst, t.Name...), ' '), t.Op...), " ?"...)
}

// bucketOf returns the bucket of a duration: stepsOfTwo for each power of two.
func bucketOf(d time.Duration) int {
	us := uint64(max(d.Microseconds(), 0))
	if us < stepsOfTwo {
		return int(us)
	}
	power := bits.Len64(us) - 3 // of the step, since 1<<2 is stepsOfTwo
	return min(power*stepsOfTwo+int(us>>power), buckets-1)
}

// boundOf returns the upper bound of a bucket in milliseconds.
func boundOf(i int) float64 {
	if i < 2*stepsOfTwo {
		return float64(i+1) / 1000
	}
	power := i/stepsOfTwo - 1
	return float64(uint64(i-power*stepsOfTwo+1)<<power) / 1000
}

// Read returns the counts, the last requests, newest first and at most n, and the shapes,
// the most expensive first.
func (m *Monitor) Read(n int) (r livestate.Requests, last []livestate.Request, shapes []livestate.Shape) {
	r.Reads, r.Writes, r.Failures = m.reads.Load(), m.writes.Load(), m.failures.Load()
	r.Count, r.Examined, r.Returned = r.Reads+r.Writes, m.examined.Load(), m.returned.Load()
	if m.InFlight != nil {
		r.InFlight = m.InFlight()
	}
	if m.Conns != nil {
		r.Connections = m.Conns()
	}
	last, shapes = []livestate.Request{}, []livestate.Shape{}
	m.mu.Lock()
	defer m.mu.Unlock()
	r.Latency = m.latencyLocked()
	for i := range min(m.n, kept, uint64(n)) {
		last = append(last, m.last[(m.n-1-i)%kept])
	}
	for _, s := range m.shapes {
		shapes = append(shapes, *s)
	}
	slices.SortFunc(shapes, func(a, b livestate.Shape) int {
		return cmp.Or(cmp.Compare(b.TotalMs, a.TotalMs), cmp.Compare(a.Account+a.Table+a.Shape, b.Account+b.Table+b.Shape))
	})
	return r, last, shapes
}

// latencyLocked returns the percentiles of the last seconds.
//
// +checklocks:m.mu
func (m *Monitor) latencyLocked() (l livestate.Latency) {
	var sums [buckets]uint64
	oldest := m.now().Unix() - seconds
	for i := range m.latency {
		s := &m.latency[i]
		if s.at <= oldest {
			continue
		}
		l.Max = max(l.Max, milliseconds(s.max))
		for b, n := range s.counts {
			sums[b] += uint64(n)
			l.Count += uint64(n)
		}
	}
	at := percentiles{&sums, l.Count, l.Max}
	l.P50, l.P90, l.P99 = at.of(0.5), at.of(0.9), at.of(0.99)
	return l
}

// percentiles are those of count durations in buckets.
type percentiles struct {
	counts *[buckets]uint64
	count  uint64
	max    float64
}

func (p *percentiles) of(share float64) float64 {
	seen := uint64(0)
	for b, n := range p.counts {
		if seen += n; n > 0 && float64(seen) >= share*float64(p.count) {
			return min(boundOf(b), p.max)
		}
	}
	return 0
}
