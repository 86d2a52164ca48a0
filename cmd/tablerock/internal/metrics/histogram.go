package metrics

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	vm "github.com/VictoriaMetrics/metrics"
)

// durationBounds are the upper bounds of the buckets of a histogram.
var durationBounds = [...]time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second,
	10 * time.Second, 30 * time.Second,
}

// histogram counts durations in the buckets of durationBounds, as a Prometheus histogram
// does; those of package vm have buckets that only VictoriaMetrics reads. Its zero value
// is empty. It is safe for concurrent use.
type histogram struct {
	counts [len(durationBounds) + 1]atomic.Uint64 // the last one is for longer durations
	nanos  atomic.Int64
}

func (h *histogram) observe(d time.Duration) {
	i, _ := slices.BinarySearch(durationBounds[:], d)
	h.counts[i].Add(1)
	h.nanos.Add(int64(d))
}

// write writes h as the histogram called name of one operation.
func (h *histogram) write(w io.Writer, name, operation string) {
	n := uint64(0)
	for i := range h.counts {
		bound := "+Inf"
		if i < len(durationBounds) {
			bound = formatFloat(durationBounds[i].Seconds())
		}
		n += h.counts[i].Load()
		fmt.Fprintf(w, "%s_bucket{operation=%q,le=%q} %d\n", name, operation, bound, n)
	}
	fmt.Fprintf(w, "%s_sum{operation=%q} %s\n", name, operation, formatFloat(time.Duration(h.nanos.Load()).Seconds()))
	fmt.Fprintf(w, "%s_count{operation=%q} %d\n", name, operation, n)
}

// writeDurations writes the histograms of all operations.
func (m *Metrics) writeDurations(w io.Writer) {
	m.mu.RLock()
	durations := maps.Clone(m.durations)
	m.mu.RUnlock()
	if len(durations) == 0 {
		return
	}
	const name = "tablerock_request_duration_seconds"
	vm.WriteMetadataIfNeeded(w, name, "histogram")
	for _, operation := range slices.Sorted(maps.Keys(durations)) {
		durations[operation].write(w, name, operation)
	}
}
