//go:build linux

package failover

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/cluster"
	"github.com/tablerock-db/tablerock/cmd/torture/internal/rest"
)

// ErrNoVolume means that this process cannot mount the volumes that a fault needs.
var ErrNoVolume = errors.New("cannot mount a volume here")

// Options are the options of a run.
type Options struct {
	Programs *cluster.Programs
	Program  string // the tablerock program
	Dir      string // an empty folder
	Batches  int    // acknowledged batches of a trial, at least
	Writers  int
	Async    bool // the negative control
	// Phase is called with what happens now. It may be nil.
	Phase func(string)
}

// Run runs trials on a cluster, which it starts for the first trial and after a failed one.
type Run struct {
	o       Options
	c       *cluster.Cluster
	servers []*rest.Client
	starts  int
	trials  uint64
}

// New returns a run. Close ends its cluster.
func New(o Options) *Run { return &Run{o: o} }

// Control returns the fault of the negative control.
func Control() Fault { return control }

func (r *Run) phase(text string) {
	if r.o.Phase != nil {
		r.o.Phase(text)
	}
}

const (
	nodes   = 3
	servers = 3
)

// start starts the cluster if none runs.
func (r *Run) start(ctx context.Context, seed uint64) (err error) {
	if r.c != nil {
		return nil
	}
	r.starts++
	dir := filepath.Join(r.o.Dir, "cluster"+strconv.Itoa(r.starts))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	r.c, err = cluster.Start(ctx, cluster.Options{
		Programs: r.o.Programs, Program: r.o.Program, Dir: dir, Nodes: nodes, Servers: servers, Async: r.o.Async, Seed: seed, Phase: r.o.Phase,
	})
	if err != nil {
		return fmt.Errorf("start of a cluster: %w", err)
	}
	r.servers = nil
	for _, s := range r.c.Servers() {
		client, err := rest.NewClient(s.URL(), cluster.Account, cluster.Key, requestTimeout)
		if err != nil {
			return err
		}
		r.servers = append(r.servers, client)
	}
	return nil
}

// Trial runs a trial. If a promise is broken, the error is a *Violation and the result is
// not nil. Any error ends the cluster.
func (r *Run) Trial(ctx context.Context, seed uint64, fault Fault) (*Result, error) {
	if err := r.start(ctx, seed); err != nil {
		return nil, err
	}
	if fault.volume && !r.c.Nodes()[0].HasVolume() {
		return nil, ErrNoVolume
	}
	r.trials++
	t := &trial{r: r, c: r.c, fault: fault, rng: rand.New(rand.NewPCG(seed, 0))}
	t.l = newLoad(ctx, r.servers, r.trials, seed, r.o.Writers, 2*int64(r.o.Batches))
	result, err := t.run(ctx)
	t.l.stop()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return result, errors.Join(err, r.Close())
	}
	t.dropTables()
	for _, c := range r.servers {
		c.Close()
	}
	return result, nil
}

// Close ends the cluster, if one runs.
func (r *Run) Close() error {
	if r.c == nil {
		return nil
	}
	for _, c := range r.servers {
		c.Close()
	}
	err := r.c.Close()
	r.c = nil
	return err
}
