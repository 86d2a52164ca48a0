package bench

import (
	"runtime"
	"slices"
	"time"
)

// Result is what a run of a workload has cost.
type Result struct {
	Ops     int64
	Elapsed time.Duration
	// CPU is the time of the whole process, background work included, up to
	// the end of the last operation.
	CPU time.Duration
	// Allocs and AllocBytes are the process's allocations.
	Allocs, AllocBytes uint64
	// Syncs of files, -1 if they are not counted.
	Syncs int64
	// SettleElapsed and SettleCPU are what it took, after the last operation of
	// a workload that writes, until the background had nothing left to do.
	SettleElapsed, SettleCPU time.Duration
	// DiskBytes is the size of all files at the end.
	DiskBytes int64
	// Latencies of timed steps, sorted. A step is one operation, or what the
	// workload says.
	Latencies []time.Duration
	// Sum and Rows are the fold of all that was read.
	Sum  uint64
	Rows int64
}

// Quantile returns the latency that the fraction q of the steps did not exceed,
// zero if none was timed.
func (r *Result) Quantile(q float64) time.Duration {
	n := len(r.Latencies)
	if n == 0 {
		return 0
	}
	return r.Latencies[min(n-1, int(q*float64(n)))]
}

// PerOp returns d divided by the operations, in nanoseconds.
func (r *Result) PerOp(d time.Duration) float64 {
	return float64(d.Nanoseconds()) / float64(max(1, r.Ops))
}

// OpsPerSecond returns the operations in a second of wall time.
func (r *Result) OpsPerSecond() float64 {
	return float64(r.Ops) / max(r.Elapsed.Seconds(), 1e-9)
}

// meter sums up the cost between calls of start and stop.
type meter struct {
	wall    time.Time
	cpu     time.Duration
	mem     runtime.MemStats
	syncs   int64
	running bool
}

func (m *meter) start(db DB) {
	m.running = true
	runtime.ReadMemStats(&m.mem)
	m.syncs = db.Syncs()
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
	before := m.mem
	runtime.ReadMemStats(&m.mem)
	r.Allocs += m.mem.Mallocs - before.Mallocs
	r.AllocBytes += m.mem.TotalAlloc - before.TotalAlloc
	if n := db.Syncs(); n < 0 {
		r.Syncs = -1
	} else {
		r.Syncs += n - m.syncs
	}
}

// merge sorts all latencies into one list.
func merge(workers []*worker) []time.Duration {
	var all []time.Duration
	for _, w := range workers {
		all = append(all, w.latencies...)
	}
	slices.Sort(all)
	return all
}
