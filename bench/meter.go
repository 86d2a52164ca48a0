package bench

import (
	"runtime"
	"slices"
	"time"
)

// Result is the cost of a run of a workload.
type Result struct {
	Ops     int64
	Elapsed time.Duration
	// CPU is the CPU time of the whole process, background work included, up to the
	// end of the last operation.
	CPU time.Duration
	// Allocs and AllocBytes are the process's allocations.
	Allocs, AllocBytes uint64
	// Syncs is the number of syncs, or -1 if the store does not count them.
	Syncs int64
	// Reads and ReadBytes count the reads of files, or are -1.
	Reads, ReadBytes int64
	// BackgroundElapsed and BackgroundCPU are the cost of the background work after
	// the last operation of a workload that writes.
	BackgroundElapsed, BackgroundCPU time.Duration
	// Logical is the size of the entities that a workload wrote, 0 of one that only
	// reads. Written and BackgroundWritten are the bytes written to files until the
	// last operation and by the background work after it, 0 on systems that do not
	// count them.
	Logical, Written, BackgroundWritten int64
	// DiskBytes is the size of all files at the end, TableBytes that of sorted tables.
	DiskBytes, TableBytes int64
	// Latencies has the latencies of the timed steps, sorted. Workload.Step says
	// what a step is.
	Latencies []time.Duration
	// Sum and Rows are the Fold of all rows read.
	Sum  uint64
	Rows int64
}

// Quantile returns the latency that the fraction q of the steps did not exceed, or
// zero if no step was timed.
func (r *Result) Quantile(q float64) time.Duration {
	n := len(r.Latencies)
	if n == 0 {
		return 0
	}
	return r.Latencies[min(n-1, int(q*float64(n)))]
}

// PerOp returns d per operation, in nanoseconds.
func (r *Result) PerOp(d time.Duration) float64 {
	return float64(d.Nanoseconds()) / float64(max(1, r.Ops))
}

// OpsPerSecond returns the operations per second of wall time.
func (r *Result) OpsPerSecond() float64 {
	return float64(r.Ops) / max(r.Elapsed.Seconds(), 1e-9)
}

// meter adds up the cost between calls of start and stop.
type meter struct {
	wall    time.Time
	cpu     time.Duration
	mem     runtime.MemStats
	syncs   int64
	reads   int64
	bytes   int64
	written written
	running bool
}

func (m *meter) start(db DB) {
	m.running = true
	runtime.ReadMemStats(&m.mem)
	m.syncs = db.Syncs()
	m.reads, m.bytes = db.Reads()
	m.written = currentWritten()
	m.cpu = CPUTime()
	m.wall = time.Now()
}

// stop adds the cost since start to r.
func (m *meter) stop(db DB, r *Result) {
	if !m.running {
		return
	}
	m.running = false
	r.Elapsed += time.Since(m.wall)
	r.CPU += CPUTime() - m.cpu
	r.Written += currentWritten().since(m.written)
	r.addAllocs(&m.mem)
	if n := db.Syncs(); n < 0 {
		r.Syncs = -1
	} else {
		r.Syncs += n - m.syncs
	}
	if n, bytes := db.Reads(); n < 0 {
		r.Reads, r.ReadBytes = -1, -1
	} else {
		r.Reads += n - m.reads
		r.ReadBytes += bytes - m.bytes
	}
}

// addAllocs adds the allocations since earlier.
func (r *Result) addAllocs(earlier *runtime.MemStats) {
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	r.Allocs += now.Mallocs - earlier.Mallocs
	r.AllocBytes += now.TotalAlloc - earlier.TotalAlloc
}

// merge returns the latencies of all workers, sorted.
func merge(workers []*worker) []time.Duration {
	var all []time.Duration
	for _, w := range workers {
		all = append(all, w.latencies...)
	}
	slices.Sort(all)
	return all
}
