package batch

import (
	"strings"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// resultsAtOnce is for how many results memory is allocated, or for those of a record if they
// are more. A caller that keeps one result keeps the memory of all of them.
const resultsAtOnce = 16

// results makes the results of ops.
type results struct {
	etags []byte // of a batch, back to back
	ends  []int
	// prefix begins the ETags of a second.
	second edm.Ticks
	prefix []byte
	// free and text are memory for later batches.
	free []store.Result
	text strings.Builder
}

// of returns the results of ops, the first of which has the Timestamp first, and each
// further one the next tick. left counts ops, and those of the record that are behind them.
// All ETags of a batch are substrings of one string.
func (m *results) of(ops []store.Op, first edm.Ticks, left int) []store.Result {
	n := len(ops)
	if len(m.free) < n {
		m.free = make([]store.Result, max(left, resultsAtOnce))
	}
	out := m.free[:n:n]
	m.free = m.free[n:]
	m.etags, m.ends = m.etags[:0], m.ends[:0]
	for i := range ops {
		if ops[i].Kind != store.OpDelete {
			out[i].Timestamp = first + edm.Ticks(i)
			m.appendETag(out[i].Timestamp)
		}
		m.ends = append(m.ends, len(m.etags))
	}
	if m.text.Cap()-m.text.Len() < len(m.etags) {
		m.text.Reset()
		m.text.Grow(len(m.etags) * max(left, resultsAtOnce) / n)
	}
	start := m.text.Len()
	m.text.Write(m.etags)
	all := m.text.String()[start:]
	start = 0
	for i, end := range m.ends {
		out[i].ETag = edm.ETag(all[start:end])
		start = end
	}
	return out
}

const (
	perSecond = 10_000_000
	digits    = 7     // of the fraction of a second
	etagTail  = `Z'"` // of an ETag, behind the time
)

// appendETag appends the ETag of t. Most results have a time in the second of the result
// before, so only the fraction is formatted: edm.AppendETag for each takes 4 % of an
// ordered load in batches of 100 (bench, load/order=sorted).
func (m *results) appendETag(t edm.Ticks) {
	f := t % perSecond
	if second := t - f; second != m.second || len(m.prefix) == 0 {
		m.second = second
		m.prefix = edm.AppendETag(m.prefix[:0], second)
		m.prefix = m.prefix[:len(m.prefix)-len(etagTail)]
	}
	m.etags = append(m.etags, m.prefix...)
	if f != 0 {
		text := [1 + digits]byte{'.'}
		for i := digits; i > 0; i-- {
			text[i] = '0' + byte(f%10)
			f /= 10
		}
		n := len(text)
		for text[n-1] == '0' {
			n--
		}
		m.etags = append(m.etags, text[:n]...)
	}
	m.etags = append(m.etags, etagTail...)
}
