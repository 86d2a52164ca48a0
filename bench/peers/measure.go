package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/tablerock-db/tablerock/bench"
	"github.com/tablerock-db/tablerock/bench/peers/internal/results"
)

// measurement runs tasks.
type measurement struct {
	*settings
	dir      string
	prepared map[state]string
	writer   *results.Writer // nil without a file
	stdout   io.Writer
	progress *progress
}

// measure runs all tasks that the file of results lacks.
func (s *settings) measure(ctx context.Context, stdout, stderr io.Writer) (err error) {
	tasks, err := s.plan()
	if err != nil {
		return err
	}
	m := &measurement{settings: s, prepared: map[state]string{}, stdout: stdout, progress: newProgress(stderr)}
	if s.out != "" {
		if m.writer, err = results.Append(s.out, s.describe()); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, m.writer.Close()) }()
	}
	if m.dir, err = os.MkdirTemp(s.dir, "tablerock-peers-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(m.dir)) }()
	var left []task
	for i := range tasks {
		if m.writer == nil || !m.writer.Has(tasks[i].key()) {
			left = append(left, tasks[i])
		}
	}
	m.progress.begin(len(left), len(tasks)-len(left))
	defer m.progress.end()
	for i := range left {
		if err := m.task(ctx, &left[i], left[i+1:]); err != nil {
			if ctx.Err() != nil {
				return m.interrupted(i)
			}
			return err
		}
	}
	return nil
}

// interrupted returns the error of a run that ends with an interrupt after n tasks.
func (m *measurement) interrupted(n int) error {
	if m.out == "" {
		return fmt.Errorf("interrupted after %d results; with -out FILE the next run would continue", n)
	}
	return fmt.Errorf("interrupted after %d results; the same command continues", n)
}

// task runs one task, and removes its prepared database if no later task needs it.
func (m *measurement) task(ctx context.Context, t *task, later []task) error {
	if err := m.prepare(ctx, t); err != nil {
		return err
	}
	m.progress.step(fmt.Sprintf("%s, %s, %d %s, %d/%d", t.workload.Name, t.engine, t.size, t.shape, t.rep, m.reps))
	out, err := m.child(ctx, t, t.workload.Name)
	if err != nil {
		return err
	}
	if err := m.keep(out); err != nil {
		return err
	}
	for i := range later {
		if later[i].state() == t.state() {
			return nil
		}
	}
	dir := m.prepared[t.state()]
	delete(m.prepared, t.state())
	return os.RemoveAll(dir)
}

// keep writes the results of a task to the file and to the output.
func (m *measurement) keep(out []byte) error {
	if m.profile != "" {
		return nil
	}
	var list []results.Result
	if err := json.Unmarshal(out, &list); err != nil {
		return fmt.Errorf("results of a process: %w", err)
	}
	if m.writer != nil {
		if err := m.writer.Write(list); err != nil {
			return err
		}
	}
	m.progress.clear()
	for i := range list {
		if err := m.print(&list[i]); err != nil {
			return err
		}
	}
	return nil
}

func (m *measurement) print(r *results.Result) error {
	if m.json {
		return json.NewEncoder(m.stdout).Encode(r)
	}
	_, err := fmt.Fprintf(m.stdout, "%-34s %-18s %10d %-8s %12.0f ops/s %10.3f us of CPU  p99 %10.1f us  foreign %.2f\n",
		r.Workload, r.Engine, r.Size, r.Shape, r.OpsPerSec, r.CPUMicros, r.P99, r.ForeignCores)
	return err
}

// prepare makes the database that a task starts with, unless there is one.
func (m *measurement) prepare(ctx context.Context, t *task) error {
	s := t.state()
	if s.start == bench.Empty || t.engine == rawName || m.prepared[s] != "" {
		return nil
	}
	dir := filepath.Join(m.dir, fmt.Sprintf("%s-%d-%s-%v", s.engine, s.size, s.shape, s.start))
	m.prepared[s] = dir
	m.progress.show(fmt.Sprintf("prepare %v, %s, %d %s", s.start, s.engine, s.size, s.shape))
	_, err := m.child(ctx, t, "")
	return err
}

// child runs a task in a process of this program and returns its output. Without a
// workload, the process prepares the database.
func (m *measurement) child(ctx context.Context, t *task, workload string) ([]byte, error) {
	work := filepath.Join(m.dir, "work")
	if err := os.MkdirAll(work, 0o755); err != nil {
		return nil, err
	}
	j := job{
		Engine: t.engine, Workload: workload, Start: t.workload.Start.String(), Prepared: m.prepared[t.state()],
		Dir: work, Size: t.size, Shape: t.shape, Seed: m.seed, Rep: t.rep, Divide: m.divide, CacheMiB: m.cacheMiB,
		Dataset: filepath.Join(m.dir, fmt.Sprintf("dataset-%d-%s", t.size, t.shape)),
	}
	if m.profile != "" && workload != "" {
		name := strings.NewReplacer("/", "-", "=", "").Replace(workload)
		j.Profile = filepath.Join(m.profile, fmt.Sprintf("%s-%s-%d-%s.cpu", name, t.engine, t.size, t.shape))
	}
	input, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, childCommand)
	// An interrupt of the terminal goes to this process alone, which ends the child.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s, %s, %d %s: %w: %s", workload, t.engine, t.size, t.shape, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.Bytes(), os.RemoveAll(work)
}

// describe returns the description of this run.
func (s *settings) describe() results.Run {
	r := results.Run{
		Started: time.Now().UTC().Format(time.RFC3339), Commit: commit(), Command: s.command, Machine: machine(), Seed: s.seed,
		CacheMiB: s.cacheMiB, Divide: s.divide, Engines: map[string]string{},
	}
	for _, e := range engines {
		r.Engines[e.Name()] = e.Describe()
	}
	r.Engines[rawName] = "writes of 300 bytes, each followed by fdatasync, to a file that was written before; random reads of 16 KiB"
	return r
}
