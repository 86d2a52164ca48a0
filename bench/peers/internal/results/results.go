// Package results reads and writes the results of bench/peers: a file of JSON objects,
// one on each line. The first line of each run describes the run, the others are results.
package results

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Result is the cost of one workload on one engine, in one process.
type Result struct {
	Workload string `json:"workload"`
	Engine   string `json:"engine"`
	Size     int    `json:"size"` // entities
	Shape    string `json:"shape"`
	Rep      int    `json:"rep"`

	Ops       int64   `json:"ops"`
	Seconds   float64 `json:"seconds"`
	OpsPerSec float64 `json:"ops_per_s"`
	// CPUMicros is the CPU time of the process, background work included.
	CPUMicros float64 `json:"cpu_us_per_op"`
	// P50, P99 and P999 are of the workload's steps, 0 if no step was timed.
	P50  float64 `json:"p50_us"`
	P99  float64 `json:"p99_us"`
	P999 float64 `json:"p999_us"`

	AllocsPerOp     float64 `json:"allocs_per_op"`
	AllocBytesPerOp float64 `json:"alloc_bytes_per_op"`
	// DiskBytes is the space of the database's files, at the end.
	DiskBytes int64 `json:"disk_bytes"`
	// TableBytes is the space of the sorted tables alone, 0 in results of older builds.
	TableBytes int64 `json:"table_bytes"`
	// WriteAmp is the bytes written to files for each byte of the entities written, 0
	// of workloads that write none.
	WriteAmp float64 `json:"write_amp"`
	// RSSBytes is the greatest resident memory during the measurement, less that
	// before the database was opened. It includes the resident pages of mapped files.
	RSSBytes int64 `json:"rss_bytes"`
	// ForeignCores is the number of processors that other processes kept busy, -1 if
	// it is not known.
	ForeignCores float64 `json:"foreign_cores"`
}

// Key identifies a Result in a file.
type Key struct {
	Workload, Engine string
	Size             int
	Shape            string
	Rep              int
}

// Key returns the key of r.
func (r *Result) Key() Key { return Key{r.Workload, r.Engine, r.Size, r.Shape, r.Rep} }

// Run describes the results that follow it in a file.
type Run struct {
	Started string `json:"started"`
	Commit  string `json:"commit"`
	Command string `json:"command"`
	Machine string `json:"machine"`
	Seed    uint64 `json:"seed"`
	// CacheMiB is the size of the block cache of workloads that set none. Operations are divided
	// by Divide. Both are 0 in results of older builds.
	CacheMiB int64             `json:"cache_mib"`
	Divide   int               `json:"divide"`
	Engines  map[string]string `json:"engines"` // options of each
}

// File has the results of a file, in its order.
type File struct {
	Runs    []Run
	Results []Result
}

// line is one line of a file: a run or a result.
type line struct {
	Run *Run `json:"run"`
	Result
}

// Read reads a file. A line without its end, which a run leaves that was killed while it
// wrote the line, does not count.
func Read(name string) (*File, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	f := &File{}
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	lines := bufio.NewScanner(bytes.NewReader(data))
	const longest = 1 << 20
	lines.Buffer(nil, longest)
	for n := 1; lines.Scan(); n++ {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", name, n, err)
		}
		switch {
		case l.Run != nil:
			f.Runs = append(f.Runs, *l.Run)
		case l.Workload == "" || len(f.Runs) == 0:
			return nil, fmt.Errorf("%s, line %d: no result of a run", name, n)
		default:
			f.Results = append(f.Results, l.Result)
		}
	}
	return f, lines.Err()
}

// Writer appends results to a file.
type Writer struct {
	file *os.File
	run  Run
	done map[Key]bool
	told bool // the description of the run is in the file
}

// sameWork reports whether r and o have the same work on the same machine.
func (r *Run) sameWork(o *Run) bool {
	return r.Commit == o.Commit && r.Machine == o.Machine && r.Seed == o.Seed && r.CacheMiB == o.CacheMiB && r.Divide == o.Divide
}

// ErrRun is the error of results of another commit, machine or kind of run.
var ErrRun = errors.New("the file has results of another commit, machine, seed or cache, or of -quick: name another file")

// Append opens a file to append the results of a run. It creates the file if there is
// none, and removes a line without its end.
func Append(name string, run Run) (*Writer, error) {
	w := &Writer{run: run, done: map[Key]bool{}}
	old, err := Read(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if old != nil {
		for i := range old.Runs {
			if !old.Runs[i].sameWork(&run) {
				return nil, fmt.Errorf("%s: %w", name, ErrRun)
			}
		}
		for i := range old.Results {
			w.done[old.Results[i].Key()] = true
		}
	}
	if w.file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644); err != nil {
		return nil, err
	}
	if err := w.trim(); err != nil {
		return nil, errors.Join(err, w.file.Close())
	}
	return w, nil
}

// trim moves to the end of the last complete line and cuts what follows.
func (w *Writer) trim() error {
	data, err := io.ReadAll(w.file)
	if err != nil {
		return err
	}
	end := int64(bytes.LastIndexByte(data, '\n') + 1)
	if err := w.file.Truncate(end); err != nil {
		return err
	}
	_, err = w.file.Seek(end, io.SeekStart)
	return err
}

// Has reports whether the file has a result.
func (w *Writer) Has(k Key) bool { return w.done[k] }

// Write appends results, after the description of the run before the first one.
func (w *Writer) Write(results []Result) error {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	if !w.told {
		if err := e.Encode(map[string]Run{"run": w.run}); err != nil {
			return err
		}
	}
	for i := range results {
		if err := e.Encode(results[i]); err != nil {
			return err
		}
	}
	if _, err := w.file.Write(buf.Bytes()); err != nil {
		return err
	}
	w.told = true
	for i := range results {
		w.done[results[i].Key()] = true
	}
	return nil
}

// Close closes the file.
func (w *Writer) Close() error { return w.file.Close() }
