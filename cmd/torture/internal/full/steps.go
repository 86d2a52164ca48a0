package full

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// reliefLimit is the longest time that a deletion may be refused, and the longest time
	// until writes are accepted after the deletions.
	reliefLimit = 30 * time.Second
	// half is the size of the rows that are written before another file takes the rest of
	// the volume, as a share of its size.
	half = 0.45
	// minAgain is the share of the deleted bytes that must fit again.
	minAgain = 0.5
)

// steps fills the volume, ends and starts the server, makes room and fills it again.
func (r *run) steps(ctx context.Context) error {
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"creating", r.create},
		{"filling", r.fill},
		{"stopping when full", r.endFull},
		{"starting when full", r.startFull},
		{"deleting", r.relieve},
		{"filling again", r.refill},
		{"checking", r.finish},
	} {
		r.phase(step.name)
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

// create creates the database and its tables.
func (r *run) create(ctx context.Context) error {
	if err := r.start(ctx); err != nil {
		return err
	}
	for _, name := range append(tableNames[:], smallTable) {
		if a, err := r.srv.createTable(name); err != nil || a.Status >= 300 {
			return fmt.Errorf("create table %s: %v, %v", name, a, err)
		}
	}
	var err error
	r.f.Reserve, err = r.vol.reserve()
	return err
}

// fill fills the volume.
func (r *run) fill(ctx context.Context) (err error) {
	switch r.c.Fill {
	case fillServe:
	case fillImport:
		r.end(syscall.SIGTERM)
		if err := r.importTables(ctx); err != nil {
			return err
		}
		if err := r.start(ctx); err != nil {
			return err
		}
	case fillFile, fillBare:
		l := r.startLoad(ctx, 0, 1)
		err = l.wait(func() bool { return float64(l.bytes.Load()) > half*float64(r.vol.fresh) || l.refused.Load() })
		l.stop()
		if err != nil || r.c.Fill == fillBare {
			return err
		}
	}
	l := r.startLoad(ctx, 0, 1)
	if r.c.Fill == fillFile {
		err = r.vol.fill(ctx)
	}
	if err == nil {
		err = l.untilFull()
	}
	r.f.Usage = r.measure()
	l.stop()
	if err != nil {
		return err
	}
	r.mu.Lock()
	first := r.first
	r.mu.Unlock()
	r.checkUsage("the first write is refused too early", first, minFirst)
	r.checkUsage("writes are refused too early", r.f.Usage, minUsage)
	return r.scan(false)
}

func (r *run) checkUsage(what string, usage, least float64) {
	if usage < least {
		r.violate(what, fmt.Sprintf("%.1f %% of the volume are in use, want %.0f %%", 100*usage, 100*least))
	}
}

// endFull ends the server while clients write, and lets nothing be free.
func (r *run) endFull(ctx context.Context) error {
	for table := range tables {
		r.f.Rows += len(r.m.rowsIn(table))
	}
	l := r.startLoad(ctx, 0, 1)
	time.Sleep(200 * time.Millisecond) // requests of all clients are under way
	r.end(r.c.Signal)
	l.stop()
	if r.c.Fill == fillBare {
		if err := r.vol.removeReserve(); err != nil {
			return err
		}
	}
	if r.c.Fill == fillBare || r.c.Fill == fillFile {
		return r.vol.fill(ctx)
	}
	return nil
}

// startFull starts the server on the full volume. It serves reads, and refuses writes or
// has room for some.
func (r *run) startFull(ctx context.Context) error {
	if r.c.Relief == reliefTools {
		if err := r.tools(ctx); err != nil {
			return err
		}
	}
	if err := r.start(ctx); err != nil {
		return err
	}
	if err := r.scan(true); err != nil {
		return err
	}
	if r.c.Relief == reliefTools {
		return nil
	}
	l := r.startLoad(ctx, 0, 1)
	err := l.wait(func() bool { return l.refused.Load() || r.c.Fill == fillBare && time.Since(l.begin) > settle })
	l.stop()
	return err
}

// relieve makes room.
func (r *run) relieve(ctx context.Context) error {
	if r.c.Fill == fillBare {
		return r.relieveBare(ctx)
	}
	switch r.c.Relief {
	case reliefDelete:
		return r.deleteHalf(ctx)
	case reliefDrop:
		return r.dropTable(ctx)
	}
	return nil
}

// relieveBare frees 1 MiB, as an operator does, and drops a table. If the signal of the
// case is SIGKILL, the server is started again before the drop.
func (r *run) relieveBare(ctx context.Context) error {
	if r.c.Signal == syscall.SIGKILL {
		r.end(syscall.SIGKILL)
	}
	if err := r.vol.free(1 << 20); err != nil {
		return err
	}
	if r.srv == nil {
		if err := r.start(ctx); err != nil {
			return err
		}
		if err := r.scan(true); err != nil {
			return err
		}
	}
	return r.dropTable(ctx)
}

// dropTable drops the first table.
func (r *run) dropTable(ctx context.Context) error {
	freed := r.m.bytesIn(0)
	err := r.persist(ctx, "drop of a table", func() (*response, error) { return r.srv.dropTable(tableNames[0]) })
	if err != nil {
		return err
	}
	r.m.drop(0)
	r.freed = freed
	return nil
}

// deleteHalf deletes half of the rows of each table. Half of these deletions are single,
// the others are transactions.
func (r *run) deleteHalf(ctx context.Context) error {
	var units [][]int
	for table := range tables {
		units = append(units, r.m.victims(table)...)
	}
	var next, freed atomic.Int64
	deleting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for n := next.Add(1) - 1; n < int64(len(units)) && deleting.Err() == nil; n = next.Add(1) - 1 {
				if err := r.deleteRows(deleting, units[n]); err != nil {
					stop(fmt.Errorf("%w, after %d of %d requests", err, n, len(units)))
					return
				}
				for _, row := range units[n] {
					freed.Add(int64(valueBytes(row)))
				}
			}
		})
	}
	wg.Wait()
	r.freed = freed.Load()
	return context.Cause(deleting)
}

// deleteRows deletes rows of a partition in one request.
func (r *run) deleteRows(ctx context.Context, rows []int) error {
	r.m.set(rows, unknown)
	err := r.persist(ctx, "deletion", func() (*response, error) {
		if len(rows) == 1 {
			return r.srv.deleteRow(rows[0])
		}
		return r.srv.deleteBatch(rows)
	})
	if err == nil {
		r.m.set(rows, deleted)
	}
	return err
}

// persist repeats a deletion while it is refused.
func (r *run) persist(ctx context.Context, what string, send func() (*response, error)) error {
	begin := time.Now()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		a, err := send()
		switch r.judge(r.srv, what, a, err) {
		case done:
			return nil
		case broken:
			return fmt.Errorf("the outcome of a %s is unknown", what)
		case refused:
			if time.Since(begin) > reliefLimit {
				return fmt.Errorf("a %s is refused for %s: %s", what, reliefLimit, r.srv.tail())
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// refill measures when writes are accepted again, and how much fits.
func (r *run) refill(ctx context.Context) error {
	l := r.startLoad(ctx, r.m.remaining()...)
	defer l.stop()
	err := l.wait(func() bool {
		if l.bytes.Load() >= r.freed {
			return true
		}
		if float64(l.bytes.Load()) < minAgain*float64(r.freed) {
			return l.idle() > reliefLimit
		}
		return l.idle() > settle
	})
	r.f.Back = time.Duration(l.accepted.Load())
	r.f.Again = float64(l.bytes.Load()) / float64(max(r.freed, 1))
	switch {
	case err != nil:
		return err
	case l.accepted.Load() == 0:
		return fmt.Errorf("writes are still refused %s after the deletions: %s", reliefLimit, r.srv.tail())
	case r.f.Back > reliefLimit:
		r.violate("writes come back too late", r.f.Back.String())
	}
	if r.f.Again < minAgain {
		r.violate("too little fits after the deletions", fmt.Sprintf("%.0f %% of the %d bytes that were deleted: %s", 100*r.f.Again, r.freed, r.srv.tail()))
	}
	return nil
}

// finish kills the server, and compares all rows once more.
func (r *run) finish(ctx context.Context) error {
	l := r.startLoad(ctx, r.m.remaining()...)
	time.Sleep(200 * time.Millisecond) // requests of all clients are under way
	r.end(syscall.SIGKILL)
	l.stop()
	if err := r.start(ctx); err != nil {
		return err
	}
	if err := r.scan(true); err != nil {
		return err
	}
	r.end(syscall.SIGTERM)
	return r.tool(ctx, "verify")
}
