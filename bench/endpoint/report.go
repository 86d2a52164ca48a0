package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// report is the output of the command.
type report struct {
	Host     string         `json:"host"`
	Seed     uint64         `json:"seed"`
	Entities int            `json:"entities"`
	Conns    int            `json:"conns"`
	Reps     int            `json:"reps"`
	Results  []result       `json:"results"`
	Restart  *restartResult `json:"restart,omitempty"`
}

// result is the cost of one workload. The CPU time and the memory of the service are zero
// if they are not known. The latencies of a scan are those of its pages.
type result struct {
	Workload string        `json:"workload"`
	Unit     string        `json:"unit"` // of the rates
	Calls    int           `json:"calls"`
	Entities int           `json:"entities"`
	Wall     time.Duration `json:"wall_ns"`
	CPU      time.Duration `json:"service_cpu_ns"`
	// Processes has the parts of CPU of the processes of -pid.
	Processes []time.Duration `json:"process_cpu_ns"`
	Own       time.Duration   `json:"client_cpu_ns"`
	Foreign   float64         `json:"foreign_cores"` // that other processes used
	P50       time.Duration   `json:"p50_ns"`
	P99       time.Duration   `json:"p99_ns"`
	Max       time.Duration   `json:"max_ns"`
	Resident  int64           `json:"resident_bytes"`
	Peak      int64           `json:"peak_resident_bytes"` // since the service started

	PerSecond    float64 `json:"per_second"`
	PerCPUSecond float64 `json:"per_service_cpu_second"`
	CPUPerCall   float64 `json:"service_cpu_ns_per_call"`

	// The minimum and maximum of PerCPUSecond in all repetitions.
	Least    float64 `json:"least_per_service_cpu_second"`
	Greatest float64 `json:"greatest_per_service_cpu_second"`
}

// median returns the run with the median cost, or with the median speed if the cost is
// not known.
func median(runs []result) result {
	slices.SortFunc(runs, func(a, b result) int {
		return cmp.Or(cmp.Compare(a.PerCPUSecond, b.PerCPUSecond), cmp.Compare(a.PerSecond, b.PerSecond))
	})
	res := runs[len(runs)/2]
	res.Least, res.Greatest = runs[0].PerCPUSecond, runs[len(runs)-1].PerCPUSecond
	return res
}

// restartResult is the cost of a restart of the service.
type restartResult struct {
	FirstResponse time.Duration `json:"first_response_ns"`
	CPU           time.Duration `json:"service_cpu_ns"`
	Resident      int64         `json:"resident_bytes"`
	Signal        string        `json:"signal"`
}

func summarize(w workload, lanes []*lane, wall time.Duration, before, after usage) (result, error) {
	res := result{Workload: w.name, Unit: w.unit, Wall: wall, Own: after.own - before.own}
	var all []time.Duration
	for _, l := range lanes {
		if l.err != nil {
			return res, l.err
		}
		all = append(all, l.latencies...)
		res.Entities += l.entities
		res.Calls += l.calls
	}
	slices.Sort(all)
	res.P50, res.P99, res.Max = quantile(all, 0.5), quantile(all, 0.99), quantile(all, 1)
	n := float64(res.Entities)
	if w.unit != "entities" {
		n = float64(res.Calls)
	}
	res.PerSecond = n / wall.Seconds()
	if before.known && after.known {
		for i := range after.service {
			res.Processes = append(res.Processes, after.service[i]-before.service[i])
			res.CPU += res.Processes[i]
		}
		res.Resident, res.Peak = after.resident, after.peak
		res.CPUPerCall = float64(res.CPU) / float64(max(1, res.Calls))
		if res.CPU > 0 {
			res.PerCPUSecond = n / res.CPU.Seconds()
		}
		if after.machine > 0 {
			others := (after.machine - before.machine) - res.CPU - res.Own
			res.Foreign = max(0, others.Seconds()/wall.Seconds())
		}
	}
	return res, nil
}

// quantile returns the smallest value that at least the fraction q of the sorted values do
// not exceed.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	i := int(q*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

func (r *report) print(w io.Writer, s settings) error {
	if s.json {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	rows := [][]string{{
		"workload", "rate unit", "per second", "per CPU second", "least", "greatest", "CPU a call",
		"p50", "p99", "resident", "peak", "client CPU", "foreign",
	}}
	for _, res := range r.Results {
		rows = append(rows, res.row())
	}
	var err error
	if s.markdown {
		printMarkdown(w, rows)
	} else {
		err = printAligned(w, rows)
	}
	if err == nil && r.Restart != nil {
		_, err = fmt.Fprintf(w, "\nrestart after SIG%s: first response %s, CPU until then %s, resident %s\n", r.Restart.Signal,
			r.Restart.FirstResponse.Round(time.Millisecond), r.Restart.CPU.Round(time.Millisecond), mib(r.Restart.Resident))
	}
	return err
}

func (res *result) row() []string {
	known := func(text string) string {
		if res.CPU == 0 {
			return "-"
		}
		return text
	}
	return []string{
		res.Workload, res.Unit,
		fmt.Sprintf("%.0f", res.PerSecond),
		known(fmt.Sprintf("%.0f", res.PerCPUSecond)), known(fmt.Sprintf("%.0f", res.Least)), known(fmt.Sprintf("%.0f", res.Greatest)),
		known(time.Duration(res.CPUPerCall).Round(100 * time.Nanosecond).String()),
		res.P50.Round(time.Microsecond).String(), res.P99.Round(time.Microsecond).String(),
		known(mib(res.Resident)), known(mib(res.Peak)), res.Own.Round(time.Millisecond).String(),
		known(fmt.Sprintf("%.2f", res.Foreign)),
	}
}

func mib(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

func printAligned(w io.Writer, rows [][]string) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for _, cell := range row {
			fmt.Fprintf(tw, "%s\t", cell)
		}
		fmt.Fprintln(tw)
	}
	return tw.Flush()
}

func printMarkdown(w io.Writer, rows [][]string) {
	for i, row := range rows {
		for _, cell := range row {
			fmt.Fprintf(w, "| %s ", cell)
		}
		fmt.Fprintln(w, "|")
		if i == 0 {
			for range row {
				fmt.Fprint(w, "|---")
			}
			fmt.Fprintln(w, "|")
		}
	}
}
