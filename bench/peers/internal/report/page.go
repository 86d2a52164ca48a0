package report

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tablerock-db/tablerock/bench/peers/internal/results"
)

//go:embed server.md
var server string

//go:embed intro.md
var intro string

// Write writes the page and its pictures. The page refers to the pictures by the path
// from its folder.
func Write(f *results.File, page, pictures string) error {
	if len(f.Results) == 0 {
		return errors.New("the file has no results")
	}
	if err := os.MkdirAll(pictures, 0o755); err != nil {
		return err
	}
	drawn, err := drawAll(f, pictures)
	if err != nil {
		return err
	}
	rel, err := filepath.Rel(filepath.Dir(page), pictures)
	if err != nil {
		return err
	}
	var text strings.Builder
	p := &pageWriter{out: &text, file: f, medians: mediansOf(f), size: mainSize(f), folder: filepath.ToSlash(rel), pictures: drawn}
	if err := p.write(); err != nil {
		return err
	}
	return os.WriteFile(page, []byte(text.String()), 0o644)
}

type pageWriter struct {
	out      io.Writer
	file     *results.File
	medians  medians
	size     int
	folder   string
	pictures []picture
}

func (p *pageWriter) printf(format string, args ...any) { fmt.Fprintf(p.out, format, args...) }

func (p *pageWriter) write() error {
	p.printf("%s\n", strings.TrimSpace(intro))
	p.runs()
	p.picture("ratios.svg")
	p.shape(grid, "1,000 entities in each partition")
	if err := p.losses(grid); err != nil {
		return err
	}
	p.latencies()
	p.picture("latencies.svg")
	p.resources()
	p.picture("write-amplification.svg")
	p.picture("caches.svg")
	p.picture("growth.svg")
	for _, s := range []struct{ name, title string }{{singles, "one entity in each partition"}, {"whole", "one partition"}} {
		if len(order(p.file, p.size, s.name)) > 0 {
			p.shape(s.name, s.title)
			if err := p.losses(s.name); err != nil {
				return err
			}
		}
	}
	p.printf("\n### Goals\n\nRatios are those of the best peer in Go to Tablerock, by operations per second and by CPU time.\n\n")
	Gates(p.out, p.file)
	p.printf("\n%s", server)
	return nil
}

// runs prints the machine, the commands and the options.
func (p *pageWriter) runs() {
	row := func(format string, args ...any) { p.printf(format+"\n", args...) }
	last := p.file.Runs[len(p.file.Runs)-1]
	p.printf("\n## Engines\n\n")
	table := tableOf(p.out, "", "")
	table("machine", last.Machine)
	table("commit", strings.Join(p.commits(), ", then "))
	table("first and last run", p.file.Runs[0].Started+", "+last.Started)
	table("repetitions", reps(p.file)+", medians")
	table("processors that other processes used", p.foreign())
	row("\n```console\n$ cd bench/peers")
	var seen []string
	for _, r := range p.file.Runs {
		if !slices.Contains(seen, r.Command) {
			seen = append(seen, r.Command)
			row("$ %s", wrap(r.Command, " \\\n    "))
		}
	}
	row("```\n")
	measured := map[string]bool{}
	for _, r := range p.file.Results {
		measured[r.Engine] = true
	}
	for _, name := range slices.Sorted(maps.Keys(last.Engines)) {
		if measured[name] {
			row("- %s", wrap(name+": "+last.Engines[name], "\n  "))
		}
	}
}

// commits returns the commits of all runs in their order.
func (p *pageWriter) commits() []string {
	var list []string
	for _, r := range p.file.Runs {
		if !slices.Contains(list, r.Commit) {
			list = append(list, r.Commit)
		}
	}
	return list
}

// foreign describes the load of the machine.
func (p *pageWriter) foreign() string {
	var all []float64
	for _, r := range p.file.Results {
		if r.ForeignCores >= 0 {
			all = append(all, r.ForeignCores)
		}
	}
	if len(all) == 0 {
		return "not known"
	}
	slices.Sort(all)
	at := func(q float64) float64 { return all[int(q*float64(len(all)-1))] }
	return fmt.Sprintf("median %.2f, a tenth of the runs below %.2f and a tenth above %.2f", at(0.5), at(0.1), at(0.9))
}

func (p *pageWriter) picture(name string) {
	i := slices.IndexFunc(p.pictures, func(pic picture) bool { return pic.name == name })
	if i >= 0 {
		p.printf("\n![%s](%s/%s)\n", p.pictures[i].caption, p.folder, name)
	}
}

// shape prints the CPU times and the rates of all engines, and the ratios.
func (p *pageWriter) shape(shape, title string) {
	p.printf("\n### %s entities, %s\n", number(float64(p.size)), title)
	workloads := order(p.file, p.size, shape)
	engines := p.medians.enginesOf(workloads, p.size, shape)
	for _, t := range []struct {
		title string
		value func(r results.Result) float64
		least bool
	}{
		{"Microseconds of CPU for an operation, background work included. The best is bold.", func(r results.Result) float64 { return r.CPUMicros }, true},
		{"Operations per second.", func(r results.Result) float64 { return r.OpsPerSec }, false},
	} {
		p.printf("\n%s\n\n", t.title)
		row := tableOf(p.out, append(append([]string{"workload"}, engines...), "ratio", "foreign cores")...)
		for _, w := range workloads {
			row(p.cells(w, shape, engines, t.value, t.least)...)
		}
	}
}

// cells returns a row of a table: the figure of each engine, the ratio of the best peer
// in Go, above 1 if Tablerock is better, and the load of the machine.
func (p *pageWriter) cells(workload, shape string, engines []string, value func(results.Result) float64, least bool) []string {
	better := func(a, b float64) bool { return (a < b) == least }
	best, bestPeer, us, foreign := 0.0, 0.0, 0.0, 0.0
	for _, e := range engines {
		r, ok := p.medians.of(workload, e, p.size, shape)
		if !ok {
			continue
		}
		v := value(r)
		if best == 0 || better(v, best) {
			best = v
		}
		if slices.Contains(goPeers, e) && (bestPeer == 0 || better(v, bestPeer)) {
			bestPeer = v
		}
		if e == ours {
			us = v
		}
		foreign = max(foreign, r.ForeignCores)
	}
	cells := []string{workload}
	for _, e := range engines {
		r, ok := p.medians.of(workload, e, p.size, shape)
		switch {
		case !ok:
			cells = append(cells, "")
		case value(r) == best:
			cells = append(cells, "**"+number(best)+"**")
		default:
			cells = append(cells, number(value(r)))
		}
	}
	ratio := ""
	if us > 0 && bestPeer > 0 {
		if least {
			ratio = fmt.Sprintf("%.2f", bestPeer/us)
		} else {
			ratio = fmt.Sprintf("%.2f", us/bestPeer)
		}
	}
	return append(cells, ratio, fmt.Sprintf("%.1f", foreign))
}

// losses prints where a peer in Go needs less CPU time, and why.
func (p *pageWriter) losses(shape string) error {
	var lines []string
	for _, w := range order(p.file, p.size, shape) {
		peer, ratio, loss := p.medians.isLoss(w, p.size, shape)
		if !loss {
			continue
		}
		why, ok := reasonOf(w, peer)
		if !ok {
			return fmt.Errorf("%s wins at %s, and no reason is written down: add it to reasons.go", peer, w)
		}
		lines = append(lines, "- "+wrap(fmt.Sprintf("`%s`: %s, %.2f times. %s", w, peer, ratio, why), "\n  "))
	}
	if len(lines) == 0 {
		p.printf("\nNo peer in Go needs less CPU time at any workload.\n")
		return nil
	}
	p.printf("\nWhere a peer in Go needs less CPU time:\n\n%s\n", strings.Join(lines, "\n"))
	return nil
}

// latencies prints the percentiles of all engines.
func (p *pageWriter) latencies() {
	p.printf("\n### Latencies\n\nMicroseconds: median / 99th percentile of a step, which is 100 entities of a load, else one operation, " +
		"partition or table.\n\n")
	workloads := order(p.file, p.size, grid)
	engines := p.medians.enginesOf(workloads, p.size, grid)
	row := tableOf(p.out, append([]string{"workload"}, engines...)...)
	for _, w := range workloads {
		if strings.HasSuffix(w, merged) {
			continue
		}
		cells := []string{w}
		for _, e := range engines {
			r, ok := p.medians.of(w, e, p.size, grid)
			if !ok || r.P50 == 0 {
				cells = append(cells, "")
				continue
			}
			cells = append(cells, number(r.P50)+" / "+number(r.P99))
		}
		row(cells...)
	}
}

// resources prints allocations, memory and space.
func (p *pageWriter) resources() {
	p.printf("\n### Memory and space\n\nResident: the greatest memory of the process above that before the database was opened, with the pages\n" +
		"of mapped files. Allocations: on the Go heap, where RocksDB and LMDB have none of theirs. Files: their space after the workload, logs included.\n\n")
	acknowledged := func(w string) bool { return !strings.HasSuffix(w, merged) }
	workloads := order(p.file, p.size, grid)
	engines := p.medians.enginesOf(workloads, p.size, grid)
	for _, t := range []struct {
		title string
		of    func(r results.Result) string
		only  func(w string) bool
	}{
		{"resident MB", func(r results.Result) string { return number(float64(r.RSSBytes) / 1e6) }, acknowledged},
		{"allocations for an operation", allocations, acknowledged},
		{"MB of files", func(r results.Result) string { return number(float64(r.DiskBytes) / 1e6) }, isSpace},
		{"write amplification", func(r results.Result) string { return number(r.WriteAmp) }, func(w string) bool { return !acknowledged(w) }},
	} {
		row := tableOf(p.out, append([]string{t.title}, engines...)...)
		for _, w := range workloads {
			if !t.only(w) {
				continue
			}
			cells := []string{w}
			for _, e := range engines {
				r, ok := p.medians.of(w, e, p.size, grid)
				if !ok {
					cells = append(cells, "")
					continue
				}
				cells = append(cells, t.of(r))
			}
			row(cells...)
		}
		p.printf("\n")
	}
}

// allocations returns the allocations for an operation. Results of older builds have none of a
// reopen, which allocates.
func allocations(r results.Result) string {
	if r.AllocsPerOp == 0 && strings.HasPrefix(r.Workload, "reopen/") {
		return ""
	}
	return number(r.AllocsPerOp)
}

// isSpace reports whether the files of a workload are worth a row: after loads and
// overwrites, and compacted as for gets.
func isSpace(w string) bool {
	return strings.HasPrefix(w, "load") && !strings.HasSuffix(w, merged) || w == "overwrite/passes=3" || w == "get/key=present/readers=1"
}

// wrap breaks a text between words, so that no line is longer than the pages of the
// repository allow. It inserts sep at the breaks.
func wrap(text, sep string) string {
	const longest = 140
	var out strings.Builder
	line := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case line+1+len(word) > longest:
			out.WriteString(sep)
			line = 0
		default:
			out.WriteByte(' ')
			line++
		}
		out.WriteString(word)
		line += len(word)
	}
	return out.String()
}
