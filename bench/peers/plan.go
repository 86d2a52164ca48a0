package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tablerock-db/tablerock/bench"
	"github.com/tablerock-db/tablerock/bench/peers/internal/results"
)

// sets are names of sets of workloads for -workloads.
var sets = map[string][]string{
	"growth": {"load/order=random", "insert/writers=64", "get/key=present/readers=1"},
	"caches": {
		"get/key=present/cache=8MiB/readers=1", "get/key=present/cache=32MiB/readers=1", "get/key=present/cache=128MiB/readers=1",
		"get/key=present/readers=1",
	},
}

// resolve sets what the lists of names mean.
func (s *settings) resolve(sizes, shapes, names, workloads string) error {
	for text := range strings.SplitSeq(sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("size %q: want a number of entities", text)
		}
		s.sizes = append(s.sizes, n)
	}
	s.shapes, s.engines = strings.Split(shapes, ","), strings.Split(names, ",")
	var stores []string
	for _, name := range s.engines {
		if name != rawName {
			stores = append(stores, name)
		}
	}
	if len(stores) > 0 {
		if _, err := enginesOf(strings.Join(stores, ",")); err != nil {
			return err
		}
	}
	for _, shape := range s.shapes {
		if _, err := bench.ShapeOf(shape, s.sizes[0]); err != nil {
			return err
		}
	}
	var prefixes []string
	for name := range strings.SplitSeq(workloads, ",") {
		if set := sets[name]; set != nil {
			prefixes = append(prefixes, set...)
		} else {
			prefixes = append(prefixes, name)
		}
	}
	found := map[string]bool{}
	for _, w := range bench.Workloads() {
		chosen := false
		for _, prefix := range prefixes {
			if prefix == "all" || w.Name == prefix || strings.HasPrefix(w.Name, prefix+"/") {
				chosen, found[prefix] = true, true
			}
		}
		if chosen {
			s.workloads = append(s.workloads, w)
		}
	}
	for _, prefix := range prefixes {
		if !found[prefix] {
			return fmt.Errorf("no workload starts with %q", prefix)
		}
	}
	return nil
}

// task is one process that measures.
type task struct {
	workload bench.Workload
	engine   string
	size     int
	shape    string
	rep      int
}

func (t *task) key() results.Key {
	return results.Key{Workload: t.workload.Name, Engine: t.engine, Size: t.size, Shape: t.shape, Rep: t.rep}
}

// state identifies a prepared database.
type state struct {
	engine string
	size   int
	shape  string
	start  bench.Start
}

func (t *task) state() state { return state{t.engine, t.size, t.shape, t.workload.Start} }

// plan returns the tasks in the order of their runs: the engines alternate within a
// repetition, each repetition begins with another engine, and the workloads that start
// with the same state follow each other.
func (s *settings) plan() ([]task, error) {
	workloads := slices.Clone(s.workloads)
	slices.SortStableFunc(workloads, func(a, b bench.Workload) int { return int(a.Start) - int(b.Start) })
	var tasks []task
	for _, size := range s.sizes {
		for _, shape := range s.shapes {
			for _, w := range workloads {
				if !w.Fits(shape, size) {
					continue
				}
				for rep := 1; rep <= s.reps; rep++ {
					for i := range s.engines {
						t := task{w, s.engines[(i+rep-1)%len(s.engines)], size, shape, rep}
						if supported(t) {
							tasks = append(tasks, t)
						}
					}
				}
			}
		}
	}
	if len(tasks) == 0 {
		return nil, errors.New("no workload fits these engines, shapes and sizes")
	}
	return tasks, nil
}

func supported(t task) bool {
	if t.engine == rawName {
		return rawSupports(t.workload)
	}
	i := slices.IndexFunc(engines, func(s bench.Store) bool { return s.Name() == t.engine })
	return t.workload.Supports(engines[i])
}
