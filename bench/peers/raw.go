//go:build linux

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tablerock-db/tablerock/bench"
	"github.com/tablerock-db/tablerock/bench/peers/internal/results"
)

// The raw engine measures the disk: writes of the size of an entity, each followed by
// fdatasync, to a file that was written before, and reads of one block at random
// offsets of a file of the size of a database, with nothing of it in the page cache.
const (
	rawName = "raw"

	rawEntity = 300      // bytes of a write
	rawBlock  = 16 << 10 // bytes of a read
	rawLog    = 16 << 20 // bytes of the file for writes
	rawRow    = 233      // bytes of the file for reads, for each entity
)

// rawSupports reports whether the raw engine has something to measure for w.
func rawSupports(w bench.Workload) bool {
	return w.Name == "insert/writers=1" || w.Cold && w.Op == "get"
}

func (j *job) raw() ([]results.Result, error) {
	w, err := workloadOf(j.Workload)
	if err != nil {
		return nil, err
	}
	ops := max(1, w.Ops(j.Size)/max(1, j.Divide))
	name := filepath.Join(j.Dir, "raw")
	size := int64(rawLog)
	if w.Cold {
		size = int64(max(j.Size*rawRow, 4*rawBlock))
	}
	if err := fillFile(name, size); err != nil {
		return nil, err
	}
	if w.Cold {
		if err := evict(j.Dir); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_RANDOM); err != nil {
		return nil, err
	}
	step := func(_ *rand.Rand, i int, buf []byte) error {
		at := int64(i) * rawEntity % (size - rawEntity)
		if _, err := f.WriteAt(buf[:rawEntity], at); err != nil {
			return err
		}
		return unix.Fdatasync(int(f.Fd()))
	}
	if w.Cold {
		step = func(rnd *rand.Rand, _ int, buf []byte) error {
			_, err := f.ReadAt(buf, rnd.Int64N(size/rawBlock)*rawBlock)
			return err
		}
	}
	r, err := timeRaw(w.Parallel, ops, step)
	if err != nil {
		return nil, err
	}
	r.Workload, r.Engine, r.Size, r.Shape, r.Rep, r.DiskBytes, r.TableBytes = w.Name, rawName, j.Size, j.Shape, j.Rep, size, size
	return []results.Result{r}, nil
}

// fillFile writes a file of random bytes to stable storage.
func fillFile(name string, size int64) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	block := make([]byte, 1<<20)
	rnd := rand.NewChaCha8([32]byte{})
	for at := int64(0); at < size; at += int64(len(block)) {
		n := min(int64(len(block)), size-at)
		if _, err := rnd.Read(block[:n]); err != nil {
			return err
		}
		if _, err := f.Write(block[:n]); err != nil {
			return err
		}
	}
	return f.Sync()
}

// timeRaw divides ops steps among goroutines and measures them.
func timeRaw(parallel, ops int, step func(rnd *rand.Rand, i int, buf []byte) error) (results.Result, error) {
	took := make([]time.Duration, ops)
	errs := make([]error, parallel)
	var wg sync.WaitGroup
	begin := currentUsage()
	for g := range parallel {
		wg.Go(func() {
			rnd, buf := rand.New(rand.NewPCG(1, uint64(g))), make([]byte, rawBlock)
			for i := ops * g / parallel; i < ops*(g+1)/parallel && errs[g] == nil; i++ {
				start := time.Now()
				errs[g] = step(rnd, i, buf)
				took[i] = time.Since(start)
			}
		})
	}
	wg.Wait()
	end := currentUsage()
	if err := errors.Join(errs...); err != nil {
		return results.Result{}, fmt.Errorf("raw: %w", err)
	}
	slices.Sort(took)
	micros := func(q float64) float64 { return float64(took[int(q*float64(ops-1))].Nanoseconds()) / 1e3 }
	seconds := end.at.Sub(begin.at).Seconds()
	return results.Result{
		Ops: int64(ops), Seconds: seconds, OpsPerSec: float64(ops) / seconds,
		CPUMicros: float64((end.own - begin.own).Nanoseconds()) / 1e3 / float64(ops),
		P50:       micros(0.5), P99: micros(0.99), P999: micros(0.999), ForeignCores: end.foreign(begin),
	}, nil
}
