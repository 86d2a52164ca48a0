package main

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tablerock-db/tablerock/bench"
)

// usage is the CPU time that this process and the whole machine have used so far.
type usage struct {
	at      time.Time
	own     time.Duration
	machine time.Duration
	known   bool
}

// currentUsage returns the current usage. That of the machine is known on Linux only.
func currentUsage() usage {
	u := usage{at: time.Now(), own: bench.CPUTime()}
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return u
	}
	line, _, _ := strings.Cut(string(stat), "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return u
	}
	const tick = 10 * time.Millisecond // unit of /proc/stat
	u.known = true
	// user nice system idle iowait irq softirq steal
	for i, f := range fields[1:9] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			u.known = false
		}
		if i != 3 && i != 4 {
			u.machine += time.Duration(n) * tick
		}
	}
	return u
}

// foreign returns the number of processors that other processes used since an earlier
// usage, or -1 if it is not known.
func (u usage) foreign(since usage) float64 {
	span := u.at.Sub(since.at)
	if !u.known || !since.known || span < 50*time.Millisecond {
		return -1
	}
	others := (u.machine - since.machine) - (u.own - since.own)
	return max(0, others.Seconds()/span.Seconds())
}
