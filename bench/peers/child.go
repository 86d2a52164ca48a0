package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"time"

	"github.com/tablerock-db/tablerock/bench"
)

// outcome is the result of one run of a workload, as in the JSON file.
type outcome struct {
	Workload string `json:"workload"`
	Engine   string `json:"engine"`
	Shape    string `json:"shape"`
	Rep      int    `json:"rep"`
	Ops      int64  `json:"ops"`

	OpsPerSecond    float64 `json:"ops_per_second"`
	TotalPerSecond  float64 `json:"total_per_second"` // background work included; 0 if it only reads
	CPUMicros       float64 `json:"cpu_us_per_op"`
	TotalCPUMicros  float64 `json:"total_cpu_us_per_op"`
	P50Micros       float64 `json:"p50_us"`
	P99Micros       float64 `json:"p99_us"`
	P999Micros      float64 `json:"p999_us"`
	MaxMicros       float64 `json:"max_us"`
	AllocsPerOp     float64 `json:"allocs_per_op"`
	AllocBytesPerOp float64 `json:"alloc_bytes_per_op"`
	SyncsPerOp      float64 `json:"syncs_per_op"` // -1 if not counted
	DiskBytes       int64   `json:"disk_bytes"`
	Rows            int64   `json:"rows"`
	Sum             uint64  `json:"sum,string"`
	// ForeignCores is the number of processors that other processes used meanwhile,
	// -1 if it is not known.
	ForeignCores float64 `json:"foreign_cores"`
}

// runChild runs one workload, or prepares a database, in this process.
func (s *settings) runChild(stdout io.Writer) error {
	stores, err := s.stores()
	if err != nil {
		return err
	}
	shape, err := bench.ShapeOf(s.shapes, s.n)
	if err != nil {
		return err
	}
	r := &bench.Run{
		Store: stores[0], Data: bench.NewDataset(shape, s.seed), Dir: s.dir, Loaded: s.loaded,
		CacheBytes: s.cacheMiB << 20, Seed: s.seed,
	}
	if s.child == "prepare" {
		return r.PrepareLoaded(s.loaded)
	}
	for _, w := range bench.Workloads() {
		if w.Name == s.child {
			out, err := s.measure(r, w)
			if err != nil {
				return err
			}
			return json.NewEncoder(stdout).Encode(out)
		}
	}
	return fmt.Errorf("workload %q is not known", s.child)
}

// errProfiled ends a run with a profile, which distorts its results.
var errProfiled = errors.New("profile written, no result")

// profile writes a CPU profile of the measured part of w to a file.
func profile(r *bench.Run, w bench.Workload, name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	var started error
	_, err = r.Do(w, w.Ops(r.Data.Len()), func() { started = pprof.StartCPUProfile(f) }, pprof.StopCPUProfile)
	if err = errors.Join(err, started, f.Close()); err != nil {
		return err
	}
	return errProfiled
}

// measure runs w and returns its cost.
func (s *settings) measure(r *bench.Run, w bench.Workload) (outcome, error) {
	var begin, end usage
	before := func() { begin = currentUsage() }
	after := func() { end = currentUsage() }
	if s.profile != "" {
		return outcome{}, profile(r, w, s.profile)
	}
	res, err := r.Do(w, w.Ops(r.Data.Len()), before, after)
	if err != nil {
		return outcome{}, err
	}
	micros := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
	out := outcome{
		Workload: w.Name, Engine: r.Store.Name(), Shape: s.shapes, Ops: res.Ops,
		OpsPerSecond:    res.OpsPerSecond(),
		CPUMicros:       res.PerOp(res.CPU) / 1e3,
		P50Micros:       micros(res.Quantile(0.5)),
		P99Micros:       micros(res.Quantile(0.99)),
		P999Micros:      micros(res.Quantile(0.999)),
		MaxMicros:       micros(res.Quantile(1)),
		AllocsPerOp:     float64(res.Allocs) / float64(res.Ops),
		AllocBytesPerOp: float64(res.AllocBytes) / float64(res.Ops),
		SyncsPerOp:      float64(res.Syncs) / float64(res.Ops),
		DiskBytes:       res.DiskBytes,
		Rows:            res.Rows,
		Sum:             res.Sum,
		ForeignCores:    end.foreign(begin),
	}
	if res.Syncs < 0 {
		out.SyncsPerOp = -1
	}
	if res.BackgroundElapsed > 0 {
		out.TotalPerSecond = float64(res.Ops) / (res.Elapsed + res.BackgroundElapsed).Seconds()
		out.TotalCPUMicros = res.PerOp(res.CPU+res.BackgroundCPU) / 1e3
	}
	return out, nil
}
