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
	"strconv"
	"strings"

	"github.com/tablerock-db/tablerock/bench"
)

// compare runs all workloads on all stores and prints the report.
func (s *settings) compare(ctx context.Context, stdout, stderr io.Writer) (err error) {
	stores, err := s.stores()
	if err != nil {
		return err
	}
	workloads, err := s.selected()
	if err != nil {
		return err
	}
	if s.reps < 1 {
		return fmt.Errorf("%d repetitions: at least one is needed", s.reps)
	}
	dir, err := os.MkdirTemp(s.dir, "tablerock-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	c := &comparison{settings: s, stores: stores, workloads: workloads, dir: dir, progress: stderr}
	rep := newReport(s, stores)
	for shape := range strings.SplitSeq(s.shapes, ",") {
		if _, err := bench.ShapeOf(shape, s.n); err != nil {
			return err
		}
		outcomes, err := c.shape(ctx, shape)
		if err != nil {
			return err
		}
		rep.outcomes = append(rep.outcomes, outcomes...)
	}
	if err := rep.write(stdout, s.markdown); err != nil {
		return err
	}
	if s.json != "" {
		if err := rep.save(s.json); err != nil {
			return err
		}
	}
	return rep.check()
}

// comparison starts the processes.
type comparison struct {
	*settings
	stores    []bench.Store
	workloads []bench.Workload
	dir       string
	progress  io.Writer
}

// shape runs all workloads on all stores in one shape.
func (c *comparison) shape(ctx context.Context, shape string) ([]outcome, error) {
	base := filepath.Join(c.dir, shape)
	for _, store := range c.stores {
		if !c.reads() {
			break
		}
		fmt.Fprintf(c.progress, "prepare %s, %s\n", shape, store.Name())
		if _, err := c.start(ctx, "prepare", shape, store); err != nil {
			return nil, err
		}
	}
	var out []outcome
	for _, w := range c.workloads {
		if !w.Fits(shape) {
			continue
		}
		for rep := range c.reps {
			for i := range c.stores {
				store := c.stores[(i+rep)%len(c.stores)]
				fmt.Fprintf(c.progress, "%s, %s, %s, %d/%d\n", w.Name, shape, store.Name(), rep+1, c.reps)
				line, err := c.start(ctx, w.Name, shape, store)
				if err != nil {
					return nil, err
				}
				var o outcome
				if err := json.Unmarshal(line, &o); err != nil {
					return nil, fmt.Errorf("result of %s on %s: %w", w.Name, store.Name(), err)
				}
				o.Rep = rep + 1
				out = append(out, o)
			}
		}
	}
	return out, os.RemoveAll(base)
}

// reads reports whether any workload needs a loaded database.
func (c *comparison) reads() bool {
	for _, w := range c.workloads {
		if w.ReadOnly {
			return true
		}
	}
	return false
}

// start runs this program as a child process and returns its output.
func (c *comparison) start(ctx context.Context, what, shape string, store bench.Store) ([]byte, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(c.dir, shape, store.Name())
	work := filepath.Join(dir, "work")
	if err := os.MkdirAll(work, 0o755); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self,
		"-child", what, "-n", strconv.Itoa(c.n), "-seed", strconv.FormatUint(c.seed, 10), "-engines", store.Name(), "-shapes", shape,
		"-dir", work, "-loaded", filepath.Join(dir, "loaded"), "-cache-mib", strconv.FormatInt(c.cacheMiB, 10))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s, %s, %s: %w: %s", what, shape, store.Name(), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.Bytes(), os.RemoveAll(work)
}
