//go:build linux

package failover

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/cluster"
	"github.com/tablerock-db/tablerock/cmd/torture/internal/history"
	"github.com/tablerock-db/tablerock/cmd/torture/internal/rest"
)

// trial is one run of the load with one fault.
type trial struct {
	r     *Run
	c     *cluster.Cluster
	l     *load
	fault Fault
	rng   *rand.Rand

	// deposed is the leader that does not know that it is deposed, nil if there is none.
	deposed      *cluster.Node
	deposedFrom  int64
	deposedUntil atomic.Int64 // 0 while it does not know
}

// Result is the result of a trial.
type Result struct {
	Seed    uint64
	Fault   string
	Report  *history.Report
	ReadGap time.Duration // the longest time without an answered read
	Time    time.Duration
}

// depose makes a leader a deposed one by freeze.
func (t *trial) depose(n *cluster.Node, freeze func() error) error {
	t.deposed, t.deposedFrom = n, cluster.Now()
	return freeze()
}

// excuse reports whether a read may be old, because its server had a connection to the
// deposed leader.
func (t *trial) excuse(server int, call, end int64) bool {
	if t.deposed == nil || end < t.deposedFrom {
		return false
	}
	until := t.deposedUntil.Load()
	return (until == 0 || call <= until) && t.deposed.OpenIn(server, call, end)
}

// upTo returns a random time.
func (t *trial) upTo(d time.Duration) time.Duration { return time.Duration(t.rng.Int64N(int64(d))) }

func (t *trial) sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// await waits until ready returns true.
func (t *trial) await(ctx context.Context, limit time.Duration, what string, ready func() bool) error {
	deadline := time.Now().Add(limit)
	for !ready() {
		if time.Now().After(deadline) {
			return fmt.Errorf("waited %v for %s", limit, what)
		}
		if err := t.sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// run runs the trial. The error is that of the cluster, and the violations, if there are any.
func (t *trial) run(ctx context.Context) (*Result, error) {
	begin := time.Now()
	t.r.phase("making tables")
	if err := t.createTables(ctx); err != nil {
		return nil, err
	}
	t.l.start(t.fault.drops)
	failed := t.hit(ctx)
	t.l.stop()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	t.r.phase("checking")
	result := &Result{Seed: t.l.seed, Fault: t.fault.Name, ReadGap: t.l.gap}
	var err error
	result.Report, err = t.check(ctx)
	result.Time = time.Since(begin)
	if result.Report == nil {
		result = nil
	}
	return result, errors.Join(failed, err)
}

// hit makes the fault happen in the middle of the load and waits for its end.
func (t *trial) hit(ctx context.Context) error {
	if err := t.await(ctx, recovery, "the first batches", func() bool { return t.l.acked.Load() >= int64(t.r.o.Batches/5) }); err != nil {
		return err
	}
	if err := t.sleep(ctx, t.upTo(2*time.Second)); err != nil {
		return err
	}
	t.r.phase(t.fault.Text)
	if err := t.fault.hit(ctx, t); err != nil {
		return fmt.Errorf("fault: %w", err)
	}
	t.r.phase("waiting until all nodes replicate")
	if err := t.c.AwaitHealthy(ctx, recovery); err != nil {
		return err
	}
	if err := t.awaitServers(ctx); err != nil {
		return err
	}
	t.r.phase("writing more batches")
	return t.await(ctx, recovery, "the last batches", func() bool { return t.l.acked.Load() >= int64(t.r.o.Batches) })
}

// createTables creates the tables and the keys that are never deleted.
func (t *trial) createTables(ctx context.Context) error {
	c := t.l.client(ownClient)
	names := t.l.names
	for _, table := range []string{names.batches, names.keys, names.dropped} {
		err := t.await(ctx, recovery, "table "+table, func() bool {
			r := c.send(func(ctx context.Context, s *rest.Client) (*rest.Response, error) {
				return s.Do(ctx, createRequest(table))
			})
			return r.answer == history.OK || r.answer == history.Exists
		})
		if err != nil {
			return err
		}
	}
	var keys []key
	for i := range counters {
		keys = append(keys, names.counter(i))
	}
	for i := range pairs {
		keys = append(keys, names.pair(i, 0), names.pair(i, 1))
	}
	for _, k := range keys {
		err := t.await(ctx, recovery, "key "+k.String(), func() bool {
			o := c.write(k, write{kind: history.Put, value: c.l.value()})
			return o.Answer == history.OK
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// dropTables drops the tables, whose rows the servers then delete. A table that cannot be
// dropped remains until the end of the run.
func (t *trial) dropTables() {
	for _, table := range []string{t.l.names.batches, t.l.names.keys, t.l.names.dropped} {
		t.l.client(ownClient).send(func(ctx context.Context, s *rest.Client) (*rest.Response, error) {
			return s.Do(ctx, rest.Request{Method: http.MethodDelete, Path: "Tables('" + table + "')"})
		})
	}
}

// awaitServers waits until each server accepts writes and reads again, by itself.
func (t *trial) awaitServers(ctx context.Context) error {
	for i, s := range t.c.Servers() {
		if !s.Running() {
			return fmt.Errorf("server %d has ended by itself", i)
		}
		c := t.l.client(ownClient + 1 + i)
		c.servers = c.servers[i : i+1]
		c.server = 0
		k := key{t.l.names.keys, "server", fmt.Sprint(i)}
		err := t.await(ctx, recovery, fmt.Sprintf("server %d to accept writes and reads", i), func() bool {
			o := c.write(k, write{kind: history.Put, value: c.l.value()})
			if o.Answer != history.OK {
				return false
			}
			_, answer := c.read(k)
			return answer == history.OK
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// check checks the history. Its error is a *Violation if a promise is broken.
func (t *trial) check(ctx context.Context) (*history.Report, error) {
	report, err := t.report(ctx)
	if err != nil {
		return nil, err
	}
	if n := t.c.Cancels(); n > 0 {
		report.Violations = append(report.Violations, fmt.Sprintf("the servers sent %d CancelRequests, which show commits that no standby has", n))
	}
	if len(report.Violations) > 0 {
		return report, &Violation{report.Violations}
	}
	return report, nil
}

// report reads what is there and compares it with the history.
func (t *trial) report(ctx context.Context) (*history.Report, error) {
	final, err := t.final(ctx)
	if err != nil {
		return nil, err
	}
	report := t.l.log.Check(final, t.excuse)
	report.Violations = append(report.Violations, t.checkPairs(ctx)...)
	for problem, n := range t.l.strange {
		report.Violations = append(report.Violations, fmt.Sprintf("%d times the response was %s", n, problem))
	}
	return report, nil
}

// final reads all keys and batches when all clients have stopped.
func (t *trial) final(ctx context.Context) (pages []history.Page, err error) {
	c := t.l.client(ownClient)
	keys := []key{}
	for i := range otherKeys {
		keys = append(keys, t.l.names.other(i), t.l.names.inDropped(i))
	}
	for i := range counters {
		keys = append(keys, t.l.names.counter(i))
	}
	for _, k := range keys {
		err := t.await(ctx, recovery, "a read of key "+k.String(), func() bool {
			_, answer := c.read(k)
			return answer != history.Unknown && answer != history.Refused
		})
		if err != nil {
			return nil, err
		}
	}
	for i := range t.l.writers {
		next := c.pages(writerPartition(i), 1000)
		for more := true; more; {
			var p history.Page
			err := t.await(ctx, recovery, "the last read of a partition", func() bool {
				var err error
				p, more, err = next()
				return err == nil
			})
			if err != nil {
				return nil, err
			}
			t.l.log.AddPage(p)
			pages = append(pages, p)
		}
	}
	return pages, nil
}

// checkPairs checks that the last batch of each pair is there as a whole.
func (t *trial) checkPairs(ctx context.Context) (violations []string) {
	c := t.l.client(ownClient)
	for i := range pairs {
		var sides [2]*entity
		for side := range sides {
			err := t.await(ctx, recovery, "a pair", func() bool {
				e, answer := c.read(t.l.names.pair(i, side))
				sides[side] = e
				return answer != history.Unknown && answer != history.Refused
			})
			if err != nil {
				return []string{err.Error()}
			}
		}
		// The first values are not written by batches.
		if sides[0] == nil || sides[1] == nil || sides[0].Value != sides[1].Value && max(sides[0].Value, sides[1].Value) > counters+2*pairs {
			violations = append(violations, fmt.Sprintf("half of a batch is there: the entities of pair %d are %+v and %+v", i, sides[0], sides[1]))
		}
	}
	return violations
}

// Violation is a promise that was broken.
type Violation struct{ Violations []string }

// maxShown is the number of violations of which the text is printed.
const maxShown = 8

func (v *Violation) Error() string {
	shown := v.Violations[:min(len(v.Violations), maxShown)]
	text := strings.Join(shown, "\n")
	if n := len(v.Violations) - len(shown); n > 0 {
		text += fmt.Sprintf("\nand %d more", n)
	}
	return text
}
