package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tick is the unit of CPU time in /proc.
const tick = 10 * time.Millisecond

// processTime returns the CPU time of a process, all its threads included.
func processTime(pid int) (time.Duration, bool) {
	if pid == 0 {
		return 0, false
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	return parseStat(string(text))
}

// parseStat parses the user and system time in a line of /proc/PID/stat. The program's
// name precedes them in parentheses and may contain any character.
func parseStat(text string) (time.Duration, bool) {
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 13 {
		return 0, false
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * tick, err == nil && err2 == nil
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
