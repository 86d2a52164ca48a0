//go:build linux

package failover

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Header is the line above the lines of trials.
const Header = "  seed fault          acked  lost  unknown (there half)  longest gap  gap of reads  stale reads    time"

// Line returns the line of a trial.
func (r *Result) Line() string {
	p := r.Report
	stale := "-"
	if p.StaleReads > 0 {
		stale = fmt.Sprintf("%d, %s", p.StaleReads, seconds(p.StaleTime))
	}
	return fmt.Sprintf("%6d %-12s %7d %5d %8d (%5d %4d)  %11s %13s %12s %7s",
		r.Seed, r.Fault, p.Acked, p.Lost, p.Unknown, p.There, p.Half, seconds(p.LongestGap), seconds(r.ReadGap), stale, seconds(r.Time))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// Table returns the longest gaps of each fault.
func Table(results []*Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| fault | trials | acked | unknown | longest gap | median | reads: longest gap | stale by up to |\n|---|---|---|---|---|---|---|---|\n")
	for _, f := range append(Faults(), control) {
		var gaps []time.Duration
		var reads, stale time.Duration
		acked, unknown := 0, 0
		for _, r := range results {
			if r.Fault == f.Name {
				gaps = append(gaps, r.Report.LongestGap)
				reads, stale = max(reads, r.ReadGap), max(stale, r.Report.StaleTime)
				acked += r.Report.Acked
				unknown += r.Report.Unknown
			}
		}
		if len(gaps) == 0 {
			continue
		}
		slices.Sort(gaps)
		late := "-"
		if stale > 0 {
			late = seconds(stale)
		}
		fmt.Fprintf(&b, "| %s (`%s`) | %d | %d | %d | %s | %s | %s | %s |\n",
			f.Text, f.Name, len(gaps), acked, unknown, seconds(gaps[len(gaps)-1]), seconds(gaps[len(gaps)/2]), seconds(reads), late)
	}
	return b.String()
}
