// Package report makes tables and pictures of the results of bench/peers.
package report

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/tablerock-db/tablerock/bench/peers/internal/results"
)

// ours is the engine that the report is about, and raw the disk alone.
const ours, raw = "tablerock", "raw"

// small is Tablerock with CompressSmall.
const small = "tablerock-compact"

// goPeers are the engines of the goals: those in Go.
var goPeers = []string{"pebble", "badger", "goleveldb", "bbolt"}

// allEngines are the engines in the order of the tables.
var allEngines = append(append([]string{ours}, goPeers...), "rocksdb", "lmdb")

// cell identifies the repetitions of one workload on one engine.
type cell struct {
	workload, engine string
	size             int
	shape            string
}

// medians has the median of the repetitions of each cell.
type medians map[cell]results.Result

// fields are the figures of a result that vary between repetitions.
var fields = []func(*results.Result) *float64{
	func(r *results.Result) *float64 { return &r.Seconds },
	func(r *results.Result) *float64 { return &r.OpsPerSec },
	func(r *results.Result) *float64 { return &r.CPUMicros },
	func(r *results.Result) *float64 { return &r.P50 },
	func(r *results.Result) *float64 { return &r.P99 },
	func(r *results.Result) *float64 { return &r.P999 },
	func(r *results.Result) *float64 { return &r.AllocsPerOp },
	func(r *results.Result) *float64 { return &r.AllocBytesPerOp },
	func(r *results.Result) *float64 { return &r.WriteAmp },
	func(r *results.Result) *float64 { return &r.ForeignCores },
}

// sizes are the others.
var sizes = []func(*results.Result) *int64{
	func(r *results.Result) *int64 { return &r.DiskBytes },
	func(r *results.Result) *int64 { return &r.TableBytes },
	func(r *results.Result) *int64 { return &r.RSSBytes },
}

func mediansOf(f *results.File) medians {
	all := map[cell][]results.Result{}
	for _, r := range f.Results {
		c := cell{r.Workload, r.Engine, r.Size, r.Shape}
		all[c] = append(all[c], r)
	}
	m := medians{}
	for c, list := range all {
		r := list[0]
		for _, field := range fields {
			values := make([]float64, len(list))
			for i := range list {
				values[i] = *field(&list[i])
			}
			*field(&r) = median(values)
		}
		for _, field := range sizes {
			values := make([]float64, len(list))
			for i := range list {
				values[i] = float64(*field(&list[i]))
			}
			*field(&r) = int64(median(values))
		}
		m[c] = r
	}
	return m
}

func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// of returns the median of a workload on an engine.
func (m medians) of(workload, engine string, size int, shape string) (results.Result, bool) {
	r, ok := m[cell{workload, engine, size, shape}]
	return r, ok
}

// best returns the engines of a list with the most operations per second and with the
// least CPU time. ok is false if none has a result.
func (m medians) best(workload string, engines []string, size int, shape string) (fast, cheap results.Result, ok bool) {
	for _, e := range engines {
		r, has := m.of(workload, e, size, shape)
		if !has {
			continue
		}
		if !ok || r.OpsPerSec > fast.OpsPerSec {
			fast = r
		}
		if !ok || r.CPUMicros < cheap.CPUMicros {
			cheap = r
		}
		ok = true
	}
	return fast, cheap, ok
}

// order returns the workloads of a shape and size in the order of the file.
func order(f *results.File, size int, shape string) []string {
	var names []string
	for _, r := range f.Results {
		if r.Size == size && r.Shape == shape && r.Engine != raw && !slices.Contains(names, r.Workload) {
			names = append(names, r.Workload)
		}
	}
	return names
}

// reps returns how many repetitions the cells have, as a number or a range.
func reps(f *results.File) string {
	count := map[cell]int{}
	for _, r := range f.Results {
		count[cell{r.Workload, r.Engine, r.Size, r.Shape}]++
	}
	least, most := 0, 0
	for _, n := range count {
		if most = max(most, n); least == 0 || n < least {
			least = n
		}
	}
	if least == most {
		return strconv.Itoa(most)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

// mainSize returns the size with the most results.
func mainSize(f *results.File) int {
	count := map[int]int{}
	size := 0
	for _, r := range f.Results {
		if count[r.Size]++; count[r.Size] > count[size] {
			size = r.Size
		}
	}
	return size
}
