package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"time"

	"github.com/tablerock-db/tablerock/bench"
	"github.com/tablerock-db/tablerock/bench/peers/internal/results"
)

// job is the work of one child process, which it reads as JSON from its standard input.
type job struct {
	Engine   string `json:"engine"`
	Workload string `json:"workload"` // or "" to prepare a database
	Start    string `json:"start"`    // the state of Prepared
	Prepared string `json:"prepared"` // directory of the prepared database, "" of an empty one
	Dir      string `json:"dir"`      // for other databases
	Dataset  string `json:"dataset"`  // file with the entities; the first process makes it
	Size     int    `json:"size"`
	Shape    string `json:"shape"`
	Seed     uint64 `json:"seed"`
	Rep      int    `json:"rep"`
	Divide   int    `json:"divide"` // of the workload's operations
	CacheMiB int64  `json:"cache_mib"`
	Profile  string `json:"profile"` // file for a CPU profile of the measurement
}

// runChild does the job and prints its results.
func runChild(stdin io.Reader, stdout io.Writer) error {
	var j job
	if err := json.NewDecoder(stdin).Decode(&j); err != nil {
		return fmt.Errorf("read the job: %w", err)
	}
	out, err := j.run()
	if err != nil || out == nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(out)
}

func (j *job) run() ([]results.Result, error) {
	if j.Engine == rawName {
		return j.raw()
	}
	stores, err := enginesOf(j.Engine)
	if err != nil {
		return nil, err
	}
	shape, err := bench.ShapeOf(j.Shape, j.Size)
	if err != nil {
		return nil, err
	}
	start, err := bench.ParseStart(j.Start)
	if err != nil {
		return nil, err
	}
	data, err := j.dataset(shape)
	if err != nil {
		return nil, err
	}
	r := &bench.Run{
		Store: stores[0], Data: data, Dir: j.Dir, Seed: j.Seed,
		CacheBytes: j.CacheMiB << 20, Evict: evict,
	}
	if j.Workload == "" {
		return nil, r.Prepare(context.Background(), start, j.Prepared)
	}
	if j.Prepared != "" {
		r.Prepared = map[bench.Start]string{start: j.Prepared}
	}
	w, err := workloadOf(j.Workload)
	if err != nil {
		return nil, err
	}
	ops := max(1, w.Ops(r.Data.Len())/max(1, j.Divide))
	if j.Profile != "" {
		return nil, profile(r, w, ops, j.Profile)
	}
	return j.measure(r, w, ops)
}

// dataset returns the entities from the file, or generates them and makes the file.
func (j *job) dataset(shape bench.Shape) (*bench.Dataset, error) {
	if j.Dataset == "" {
		return bench.NewDataset(shape, j.Seed), nil
	}
	f, err := os.Open(j.Dataset)
	if err == nil {
		data, err := bench.ReadDataset(f, shape)
		return data, errors.Join(err, f.Close())
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	data := bench.NewDataset(shape, j.Seed)
	unfinished := j.Dataset + ".tmp"
	if f, err = os.Create(unfinished); err != nil {
		return nil, err
	}
	if err := errors.Join(data.Save(f), f.Close()); err != nil {
		return nil, err
	}
	return data, os.Rename(unfinished, j.Dataset)
}

// workloadOf returns the workload with a name.
func workloadOf(name string) (bench.Workload, error) {
	for _, w := range bench.Workloads() {
		if w.Name == name {
			return w, nil
		}
	}
	return bench.Workload{}, fmt.Errorf("workload %q is not known", name)
}

// profile writes a CPU profile of the measured part of w to a file. It has no result,
// because a profile distorts it.
func profile(r *bench.Run, w bench.Workload, ops int, name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	var started error
	_, err = r.Do(context.Background(), w, ops, func() { started = pprof.StartCPUProfile(f) }, pprof.StopCPUProfile)
	return errors.Join(err, started, f.Close())
}

// merged is the ending of the names of results that include the background work.
const merged = "/until=merged"

// measure runs w and returns its cost: until the last operation, and of workloads that
// write also until everything is flushed and merged.
func (j *job) measure(r *bench.Run, w bench.Workload, ops int) ([]results.Result, error) {
	if err := r.Init(context.Background()); err != nil {
		return nil, err
	}
	m := newMemory()
	var begin, end usage
	var rss int64
	res, err := r.Do(context.Background(), w, ops, func() {
		begin = currentUsage()
		m.start()
	}, func() {
		end = currentUsage()
		rss = m.end()
	})
	if err != nil {
		return nil, err
	}
	micros := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
	out := results.Result{
		Workload: w.Name, Engine: r.Store.Name(), Size: j.Size, Shape: j.Shape, Rep: j.Rep,
		Ops: res.Ops, Seconds: res.Elapsed.Seconds(), OpsPerSec: res.OpsPerSecond(),
		CPUMicros: res.PerOp(res.CPU) / 1e3,
		P50:       micros(res.Quantile(0.5)), P99: micros(res.Quantile(0.99)), P999: micros(res.Quantile(0.999)),
		AllocsPerOp:     float64(res.Allocs) / float64(res.Ops),
		AllocBytesPerOp: float64(res.AllocBytes) / float64(res.Ops),
		DiskBytes:       res.DiskBytes, TableBytes: res.TableBytes, RSSBytes: rss, ForeignCores: end.foreign(begin),
	}
	if res.Logical == 0 {
		return []results.Result{out}, nil
	}
	out.WriteAmp = float64(res.Written) / float64(res.Logical)
	whole := out
	whole.Workload += merged
	whole.Seconds = (res.Elapsed + res.BackgroundElapsed).Seconds()
	whole.OpsPerSec = float64(res.Ops) / whole.Seconds
	whole.CPUMicros = res.PerOp(res.CPU+res.BackgroundCPU) / 1e3
	whole.WriteAmp = float64(res.Written+res.BackgroundWritten) / float64(res.Logical)
	return []results.Result{out, whole}, nil
}
