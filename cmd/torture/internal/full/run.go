package full

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Options configures Run.
type Options struct {
	// Program is the tablerock program. It has no default.
	Program string
	// Dir is the directory for images and mount points. It has no default.
	Dir string
	// Seed determines the rows. The default is seed 0.
	Seed uint64
	// Phase is called when a case enters a phase. The default does nothing.
	Phase func(c Case, phase string)
}

const (
	// minUsage is the share of a volume that is used when it counts as full.
	minUsage = 0.8
	// minFirst is the share that is used at the first refusal. A refusal counts a file for each run,
	// and clients that write faster than compactions merge make runs. Merged runs need less.
	minFirst = 0.7
)

// run is one run of a case.
type run struct {
	o    Options
	c    Case
	dir  string // on another disk than the volume
	vol  *volume
	srv  *server // nil if none runs
	m    *model
	f    Figures
	stop func() // stops the reads
	// freed is the number of bytes of the deleted rows.
	freed int64

	mu sync.Mutex
	// violations has an example of each kind of violation, and their number.
	// +checklocks:mu
	violations map[string]*violation
	// first is the share of the volume that was used at the first refusal.
	// +checklocks:mu
	first float64
}

type violation struct {
	example string
	n       int
}

// Run runs a case on a new volume, which it removes again. The error lists the violations.
func Run(ctx context.Context, o Options, c Case) (f Figures, err error) {
	begin := time.Now()
	r := &run{o: o, c: c, m: newModel(o.Seed), violations: map[string]*violation{}}
	if r.o.Phase == nil {
		r.o.Phase = func(Case, string) {}
	}
	if err := CheckSystem(); err != nil {
		return f, err
	}
	if r.dir, err = os.MkdirTemp(o.Dir, "case-"); err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.dir)) }()
	if r.vol, err = mountVolume(ctx, c.FileSystem, c.Bytes, r.dir); err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, r.vol.unmount()) }()
	err = r.steps(ctx)
	if r.srv != nil {
		r.end(syscall.SIGKILL)
	}
	r.f.Elapsed = time.Since(begin)
	if ctx.Err() != nil {
		return r.f, ctx.Err()
	}
	return r.f, errors.Join(r.violated(), err)
}

// violate records a violation. What names its kind.
func (r *run) violate(what, example string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.violations[what]
	if v == nil {
		v = &violation{example: example}
		r.violations[what] = v
	}
	v.n++
}

// violated returns an error that lists the violations, or nil.
func (r *run) violated() (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, what := range slices.Sorted(maps.Keys(r.violations)) {
		v := r.violations[what]
		err = errors.Join(err, fmt.Errorf("%s (%d times): %s", what, v.n, v.example))
	}
	return err
}

// measure returns the share of the volume that is used.
func (r *run) measure() float64 {
	usage, err := r.vol.usage()
	if err != nil {
		r.violate("the volume cannot be measured", err.Error())
	}
	return usage
}

// firstRefusal measures the volume when a load gets its first refusal. before is what was used
// when the request was sent: until the answer has arrived, a compaction may have freed space.
func (r *run) firstRefusal(before float64) {
	usage := max(before, r.measure())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.first = max(r.first, usage)
}

func (r *run) phase(name string) { r.o.Phase(r.c, name) }

// start starts the server, and clients that read rows which must exist.
func (r *run) start(ctx context.Context) (err error) {
	if r.srv, err = startServer(ctx, r.o.Program, r.vol.data(), r.c.Segment, r.dir); err != nil {
		return err
	}
	reading, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	s := r.srv
	wg.Go(func() { r.read(reading, s) })
	// The requests of an interrupted run fail at once.
	interrupted := context.AfterFunc(ctx, func() { s.end(syscall.SIGKILL) })
	r.stop = func() {
		cancel()
		interrupted()
		wg.Wait()
	}
	return nil
}

// end ends the server with a signal and checks its log.
func (r *run) end(sig syscall.Signal) {
	code := r.srv.end(sig)
	r.stop()
	if sig == syscall.SIGTERM && code != 0 {
		r.violate("the server fails after SIGTERM", fmt.Sprintf("exit code %d: %s", code, r.srv.tail()))
	}
	if line := r.srv.failure(); line != "" {
		r.violate("the server's log has an error", line)
	}
	r.srv = nil
}

// read reads one row after another by key.
func (r *run) read(ctx context.Context, s *server) {
	rng := rand.New(rand.NewPCG(r.o.Seed, 0x72656164))
	for ctx.Err() == nil && !s.ending.Load() {
		if row, ok := r.m.readable(rng); ok {
			r.readRow(s, row)
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (r *run) readRow(s *server, row int) {
	a, err := s.get(row)
	var e entity
	switch {
	case err != nil:
		if !s.ending.Load() {
			r.violate("a read has no response", err.Error())
		}
	case a.Status != http.StatusOK:
		if !s.ending.Load() || a.Status != http.StatusServiceUnavailable {
			r.violate("a read does not answer 200", fmt.Sprintf("row %d: %s", row, a.Problem()))
		}
	case json.Unmarshal(a.Body, &e) != nil || string(e.V) != string(value(r.o.Seed, row)):
		r.violate("a read returns another content", fmt.Sprintf("row %d: %.200s", row, a.Body))
	}
}

// scan compares all rows with the model. No write may run. The flag is set if the database
// was opened since the last write of unknown outcome.
func (r *run) scan(reopened bool) error {
	for table, name := range tableNames {
		s := r.m.scan(table)
		err := r.srv.query(name, s.row)
		if err != nil && r.m.isDropped(table) && strings.Contains(err.Error(), "TableNotFound") {
			err = nil
		}
		if err != nil {
			return err
		}
		if wrong := s.end(reopened); wrong != "" {
			r.violate("a scan differs", wrong)
		}
	}
	return nil
}
