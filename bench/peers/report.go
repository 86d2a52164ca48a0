package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/tablerock-db/tablerock/bench"
)

// report is the result of a comparison.
type report struct {
	machine  []string
	outcomes []outcome
}

// newReport returns a report with the command, the commit, the machine and the options.
func newReport(s *settings, stores []bench.Store) *report {
	lines := []string{
		"command: go run . -n " + fmt.Sprint(s.n) + " -reps " + fmt.Sprint(s.reps) + " -workloads " + s.workloads +
			" -engines " + s.engines + " -shapes " + s.shapes + " -seed " + fmt.Sprint(s.seed) + " -cache-mib " + fmt.Sprint(s.cacheMiB),
		"commit: " + commit(),
		fmt.Sprintf("machine: %s, %d processors, %s/%s, %s", processor(), runtime.NumCPU(), runtime.GOOS, kernel(), runtime.Version()),
	}
	for _, store := range stores {
		lines = append(lines, store.Name()+": "+store.Describe())
	}
	return &report{machine: lines}
}

// commit returns the commit of the working tree, marked if it has changes.
func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=12").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

func processor() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func kernel() string {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return runtime.GOARCH
	}
	return strings.TrimSpace(string(release)) + "/" + runtime.GOARCH
}

// line is one row of a table: the medians of one store.
type line struct {
	engine string
	o      outcome
	reps   int
}

// group is one table: a workload in a shape.
type group struct {
	workload, shape string
	lines           []line
}

// groups returns the tables in the order of the outcomes.
func (r *report) groups() []group {
	var out []group
	for _, o := range r.outcomes {
		g := slices.IndexFunc(out, func(g group) bool { return g.workload == o.Workload && g.shape == o.Shape })
		if g < 0 {
			g = len(out)
			out = append(out, group{workload: o.Workload, shape: o.Shape})
		}
		if !slices.ContainsFunc(out[g].lines, func(l line) bool { return l.engine == o.Engine }) {
			out[g].lines = append(out[g].lines, r.line(o.Workload, o.Shape, o.Engine))
		}
	}
	return out
}

// line returns the median of each figure over all repetitions.
func (r *report) line(workload, shape, engine string) line {
	var all []outcome
	for _, o := range r.outcomes {
		if o.Workload == workload && o.Shape == shape && o.Engine == engine {
			all = append(all, o)
		}
	}
	median := func(of func(o *outcome) float64) float64 {
		values := make([]float64, len(all))
		for i := range all {
			values[i] = of(&all[i])
		}
		slices.Sort(values)
		n := len(values)
		return (values[(n-1)/2] + values[n/2]) / 2
	}
	o := all[0]
	o.OpsPerSecond = median(func(o *outcome) float64 { return o.OpsPerSecond })
	o.TotalPerSecond = median(func(o *outcome) float64 { return o.TotalPerSecond })
	o.CPUMicros = median(func(o *outcome) float64 { return o.CPUMicros })
	o.TotalCPUMicros = median(func(o *outcome) float64 { return o.TotalCPUMicros })
	o.P50Micros = median(func(o *outcome) float64 { return o.P50Micros })
	o.P99Micros = median(func(o *outcome) float64 { return o.P99Micros })
	o.P999Micros = median(func(o *outcome) float64 { return o.P999Micros })
	o.AllocsPerOp = median(func(o *outcome) float64 { return o.AllocsPerOp })
	o.AllocBytesPerOp = median(func(o *outcome) float64 { return o.AllocBytesPerOp })
	o.DiskBytes = int64(median(func(o *outcome) float64 { return float64(o.DiskBytes) }))
	o.ForeignCores = median(func(o *outcome) float64 { return o.ForeignCores })
	return line{engine: engine, o: o, reps: len(all)}
}

// isOurs reports whether an engine is Tablerock.
func isOurs(engine string) bool { return strings.HasPrefix(engine, "tablerock") }

// ratios compares l with the best peer by operations per second and by CPU time. A ratio
// above one means that l is better. ok is false if there is no peer or l is one.
func (g *group) ratios(l *line) (ops, cpu float64, ok bool) {
	bestOps, bestCPU := 0.0, 0.0
	for i := range g.lines {
		p := &g.lines[i]
		if isOurs(p.engine) {
			continue
		}
		bestOps = max(bestOps, p.o.OpsPerSecond)
		if bestCPU == 0 || p.o.CPUMicros < bestCPU {
			bestCPU = p.o.CPUMicros
		}
	}
	if !isOurs(l.engine) || bestOps == 0 {
		return 0, 0, false
	}
	return l.o.OpsPerSecond / bestOps, bestCPU / max(l.o.CPUMicros, 1e-9), true
}

var columns = []string{
	"workload", "shape", "engine", "ops/s", "total/s", "cpu us/op", "total cpu", "p50 us", "p99 us", "p99.9 us",
	"allocs/op", "B/op", "disk MB", "foreign", "ops ratio", "cpu ratio",
}

// rate formats operations per second with three digits or more.
func rate(n float64) string {
	if n < 100 {
		return fmt.Sprintf("%.3g", n)
	}
	return fmt.Sprintf("%.0f", n)
}

func (g *group) cells(l *line) []string {
	o := &l.o
	cells := []string{
		g.workload, g.shape, l.engine,
		rate(o.OpsPerSecond), "", fmt.Sprintf("%.3f", o.CPUMicros), "",
		fmt.Sprintf("%.1f", o.P50Micros), fmt.Sprintf("%.1f", o.P99Micros), fmt.Sprintf("%.1f", o.P999Micros),
		fmt.Sprintf("%.2f", o.AllocsPerOp), fmt.Sprintf("%.0f", o.AllocBytesPerOp), fmt.Sprintf("%.1f", float64(o.DiskBytes)/1e6),
		"", "", "",
	}
	if o.TotalPerSecond > 0 {
		cells[4], cells[6] = rate(o.TotalPerSecond), fmt.Sprintf("%.3f", o.TotalCPUMicros)
	}
	if o.ForeignCores >= 0 {
		cells[13] = fmt.Sprintf("%.2f", o.ForeignCores)
	}
	if ops, cpu, ok := g.ratios(l); ok {
		cells[14], cells[15] = fmt.Sprintf("%.2f", ops), fmt.Sprintf("%.2f", cpu)
	}
	return cells
}

// write prints a table of medians. The ratios compare Tablerock with the better peer;
// above one, Tablerock is better.
func (r *report) write(out io.Writer, markdown bool) error {
	w := io.Writer(out)
	var tabs *tabwriter.Writer
	row := func(cells []string) { fmt.Fprintln(w, "| "+strings.Join(cells, " | ")+" |") }
	if !markdown {
		tabs = tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
		w = tabs
		row = func(cells []string) { fmt.Fprintln(w, strings.Join(cells, "\t")+"\t") }
	}
	for _, l := range r.machine {
		if markdown {
			l = "- " + l
		}
		fmt.Fprintln(out, l)
	}
	fmt.Fprintln(out)
	row(columns)
	if markdown {
		row(slices.Repeat([]string{"---"}, len(columns)))
	}
	for _, g := range r.groups() {
		for i := range g.lines {
			row(g.cells(&g.lines[i]))
		}
	}
	if tabs != nil {
		return tabs.Flush()
	}
	return nil
}

// save writes the results of all runs.
func (r *report) save(name string) error {
	data, err := json.MarshalIndent(struct {
		Machine []string  `json:"machine"`
		Results []outcome `json:"results"`
	}{r.machine, r.outcomes}, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(data, '\n'), 0o644)
}

// check returns an error if the stores read different rows.
func (r *report) check() error {
	var errs []error
	for i, a := range r.outcomes {
		for _, b := range r.outcomes[:i] {
			if a.Workload == b.Workload && a.Shape == b.Shape && (a.Sum != b.Sum || a.Rows != b.Rows) {
				errs = append(errs, fmt.Errorf("%s, %s: %s read %d rows with sum %016x, %s read %d with %016x",
					a.Workload, a.Shape, a.Engine, a.Rows, a.Sum, b.Engine, b.Rows, b.Sum))
				break
			}
		}
	}
	return errors.Join(errs...)
}
