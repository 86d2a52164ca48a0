package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tick is the unit of CPU time in /proc.
const tick = 10 * time.Millisecond

// processTime returns the CPU time of each of some processes with its descendants, all threads
// included, and false if it does not know that of one of them.
func processTime(pids []int) ([]time.Duration, bool) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, false
	}
	all := make(map[int]stat)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the process has ended
		}
		if pid, s, ok := parseStat(string(text)); ok {
			all[pid] = s
		}
	}
	return treeTime(all, pids)
}

// treeTime is processTime of the processes of all.
func treeTime(all map[int]stat, pids []int) (times []time.Duration, ok bool) {
	times = make([]time.Duration, len(pids))
	for pid, s := range all {
		for hops := 0; pid != 0 && hops < len(all); hops++ {
			if i := slices.Index(pids, pid); i >= 0 {
				times[i] += s.time
				break
			}
			pid = all[pid].parent
		}
	}
	for _, pid := range pids {
		if _, known := all[pid]; !known {
			return nil, false
		}
	}
	return times, len(pids) > 0
}

// stat is what /proc/PID/stat says of a process.
type stat struct {
	parent int
	time   time.Duration // with that of the children that have ended
}

// parseStat parses a line of /proc/PID/stat. The program's name is in parentheses and may
// contain any character.
func parseStat(text string) (pid int, s stat, ok bool) {
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	first, _, _ := strings.Cut(text, " ")
	pid, err := strconv.Atoi(first)
	if err != nil || len(fields) < 15 {
		return 0, s, false
	}
	if s.parent, err = strconv.Atoi(fields[1]); err != nil {
		return 0, s, false
	}
	for _, field := range fields[11:15] { // user, system, and both of children
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, s, false
		}
		s.time += time.Duration(n) * tick
	}
	return pid, s, true
}

// threadTime returns the CPU time of the current threads of a process in nanoseconds. The
// ticks of processTime are too coarse for a process that has just started.
func threadTime(pid int) time.Duration {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0
	}
	var sum time.Duration
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		field, _, _ := strings.Cut(string(text), " ")
		if n, err := strconv.ParseInt(field, 10, 64); err == nil {
			sum += time.Duration(n)
		}
	}
	return sum
}

// memory returns the resident memory of a process and its maximum, or 0 if they are not
// known.
func memory(pid int) (resident, peak int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0
	}
	return statusField(string(text), "VmRSS"), statusField(string(text), "VmHWM")
}

// statusField returns the number of bytes in the line "name:  n kB" of text.
func statusField(text, name string) int64 {
	_, rest, _ := strings.Cut("\n"+text, "\n"+name+":")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	n, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}

// machineTime returns the processor time of all processes, 0 if it is not known.
func machineTime() time.Duration {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0
	}
	var sum int64
	for i, f := range fields[1:9] { // user nice system idle iowait irq softirq steal
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0
		}
		if i != 3 && i != 4 {
			sum += n
		}
	}
	return time.Duration(sum) * tick
}

// service is a process that this program has started.
type service struct {
	cmd  *exec.Cmd
	done chan error
}

func (p *service) pid() int { return p.cmd.Process.Pid }

// startService starts a command and waits until a GET of path returns 200. It returns the
// time that this took.
func startService(ctx context.Context, command string, t *target, path string, wait time.Duration) (*service, time.Duration, error) {
	args := strings.Fields(command)
	if len(args) == 0 {
		return nil, 0, errors.New("-exec is blank")
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, 0, err
	}
	p := &service{cmd: cmd, done: make(chan error, 1)}
	go func() { p.done <- cmd.Wait() }()
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for {
		err := ask(t, path)
		if err == nil {
			return p, time.Since(begin), nil
		}
		select {
		case end := <-p.done:
			p.done <- end
			return nil, 0, fmt.Errorf("the service ended before it responded: %w", errors.Join(end, err))
		case <-ctx.Done():
			p.end(os.Kill)
			return nil, 0, fmt.Errorf("the service did not respond: %w", errors.Join(ctx.Err(), err))
		case <-again.C:
		}
	}
}

// ask makes one GET on a new connection and returns an error unless the status is 200.
func ask(t *target, path string) error {
	c, err := dial(t)
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.do(request{method: "GET", path: path}); err != nil {
		return err
	}
	return c.response.want(200)
}

// end sends the process a signal and waits until it ends.
func (p *service) end(sig os.Signal) {
	// The error is that of a process that has already ended.
	_ = p.cmd.Process.Signal(sig)
	end := <-p.done
	p.done <- end
}

// restart ends the service, starts it again, and measures the time until it returns the
// entity at path.
func (p *service) restart(ctx context.Context, s settings, t *target, path string) (*restartResult, error) {
	var sig os.Signal = syscall.SIGTERM
	if s.signal == "KILL" {
		sig = syscall.SIGKILL
	}
	p.end(sig)
	again, took, err := startService(ctx, s.exec, t, path, s.wait)
	if err != nil {
		return nil, err
	}
	res := &restartResult{FirstResponse: took, CPU: threadTime(again.pid()), Signal: s.signal}
	res.Resident, _ = memory(again.pid())
	*p = *again
	return res, nil
}
