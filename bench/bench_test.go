package bench_test

import (
	"flag"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/bench"
)

var (
	entities = flag.Int("bench.n", 100_000, "number of entities of a benchmark")
	seed     = flag.Uint64("bench.seed", 1, "seed of entities and orders")
	profiles = flag.String("bench.profiles", "", "directory for a CPU profile of each workload, without its preparation")
)

// BenchmarkStore runs every workload in every shape that it supports. Beside the wall
// time, it reports the CPU time of the process and the 99th percentile of the latencies.
func BenchmarkStore(b *testing.B) {
	for _, shapeName := range bench.ShapeNames() {
		shape, err := bench.ShapeOf(shapeName, *entities)
		if err != nil {
			b.Fatal(err)
		}
		var run *bench.Run
		for _, w := range bench.Workloads() {
			if !w.Fits(shapeName, shape.Len()) {
				continue
			}
			b.Run(caseName(w, shape), func(b *testing.B) {
				if run == nil {
					run = &bench.Run{Store: bench.Tablerock{}, Data: bench.NewDataset(shape, *seed), Dir: b.TempDir(), Seed: *seed}
				}
				run.Dir, run.Prepared = b.TempDir(), nil
				b.ReportAllocs()
				b.StopTimer()
				before, after := profiled(b, w.Name+"-"+shapeName)
				res, err := run.Do(b.Context(), w, b.N, before, after)
				if err != nil {
					b.Fatal(err)
				}
				report(b, w, run, res)
			})
		}
	}
}

// caseName returns the name of the case of a workload.
func caseName(w bench.Workload, shape bench.Shape) string {
	return "op=" + w.Name + "/shape=" + shape.String() + "/engine=tablerock"
}

// profiled returns functions that start and stop the timer and, with -bench.profiles, a
// CPU profile.
func profiled(b *testing.B, name string) (before, after func()) {
	if *profiles == "" || b.N == 1 {
		return b.StartTimer, b.StopTimer
	}
	name = strings.NewReplacer("/", "-", "=", "", "%", "").Replace(name)
	f, err := os.Create(filepath.Join(*profiles, name+".cpu"))
	if err != nil {
		b.Fatal(err)
	}
	before = func() {
		if err := pprof.StartCPUProfile(f); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	after = func() {
		b.StopTimer()
		pprof.StopCPUProfile()
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
	}
	return before, after
}

func report(b *testing.B, w bench.Workload, run *bench.Run, res bench.Result) {
	b.ReportMetric(res.PerOp(res.CPU), "cpu-ns/op")
	b.ReportMetric(float64(res.Quantile(0.99).Nanoseconds()), "p99-ns")
	if w.Durable {
		b.ReportMetric(float64(res.Syncs)/float64(b.N), "syncs/op")
	}
	if w.ReadOnly {
		b.ReportMetric(float64(res.Reads)/float64(b.N), "reads/op")
		b.ReportMetric(float64(res.ReadBytes)/float64(b.N), "read-B/op")
	}
	if strings.HasPrefix(w.Name, "load") {
		b.ReportMetric(float64(res.DiskBytes)/float64(min(b.N, run.Data.Len())), "bytes/entity")
	}
}
