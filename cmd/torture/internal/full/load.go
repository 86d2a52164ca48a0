package full

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	clients = 4
	// settle is the time without an accepted write after which a volume counts as full.
	settle = 2 * time.Second
	// loadLimit is the longest time that clients may write until a volume is full.
	loadLimit = 5 * time.Minute
	// firstPause and lastPause are the pauses of a client that was refused.
	firstPause = 10 * time.Millisecond
	lastPause  = 200 * time.Millisecond
)

// load is a set of clients that write rows to a server until they are stopped. A client
// that is refused repeats the same write after a pause.
type load struct {
	r      *run
	s      *server
	tables []int
	begin  time.Time
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	bytes    atomic.Int64 // of acknowledged rows
	accepted atomic.Int64 // time of the first acknowledgement since begin, 0 before it
	latest   atomic.Int64 // time of the last acknowledgement since begin
	refused  atomic.Bool  // whether a write was refused
}

// startLoad starts clients that write to the tables.
func (r *run) startLoad(ctx context.Context, tables ...int) *load {
	l := &load{r: r, s: r.srv, tables: tables, begin: time.Now()}
	l.ctx, l.cancel = context.WithCancel(ctx)
	for i := range clients {
		l.wg.Go(func() { l.client(i) })
	}
	return l
}

// stop ends the clients after their present requests.
func (l *load) stop() {
	l.cancel()
	l.wg.Wait()
}

func (l *load) client(i int) {
	for ; l.ctx.Err() == nil && !l.s.ending.Load(); i++ {
		rows := l.r.m.take(l.tables[i%len(l.tables)])
		size := 1
		if partitionOf(rows[0])%3 == 0 {
			size = rowsPerBatch
		}
		for ; len(rows) > 0; rows = rows[size:] {
			l.write(rows[:size])
		}
	}
}

// write writes rows in one request, and again while it is refused.
func (l *load) write(rows []int) {
	pause := firstPause
	for l.ctx.Err() == nil && !l.s.ending.Load() {
		l.r.m.set(rows, unknown)
		before := 0.0
		if !l.refused.Load() {
			before = l.r.measure()
		}
		a, err := l.send(rows)
		switch l.r.judge(l.s, "write", a, err) {
		case done:
			l.r.m.set(rows, present)
			l.count(rows)
			return
		case refused:
			l.r.m.set(rows, absent)
			if !l.refused.Swap(true) {
				l.r.firstRefusal(before)
			}
		case broken:
			return
		}
		select {
		case <-l.ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, lastPause)
	}
}

// send writes rows by a transaction, an upsert or an insert.
func (l *load) send(rows []int) (*response, error) {
	switch partitionOf(rows[0]) % 3 {
	case 0:
		return l.s.insertBatch(l.r.m.seed, rows)
	case 1:
		return l.s.upsert(l.r.m.seed, rows[0])
	default:
		return l.s.insert(l.r.m.seed, rows[0])
	}
}

func (l *load) count(rows []int) {
	for _, row := range rows {
		l.bytes.Add(int64(valueBytes(row)))
	}
	now := int64(time.Since(l.begin))
	l.accepted.CompareAndSwap(0, now)
	l.latest.Store(now)
}

// idle returns the time since the last acknowledgement.
func (l *load) idle() time.Duration {
	return time.Since(l.begin) - time.Duration(l.latest.Load())
}

// wait waits until enough returns true.
func (l *load) wait(enough func() bool) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !enough() {
		select {
		case <-l.ctx.Done():
			return l.ctx.Err()
		case <-l.s.ended:
			return errors.New("the server ended by itself: " + l.s.tail())
		case <-tick.C:
		}
		if time.Since(l.begin) > loadLimit {
			return errors.New("the clients still write after " + loadLimit.String())
		}
	}
	return nil
}

// untilFull waits until writes are refused and none is accepted for some time.
func (l *load) untilFull() error {
	return l.wait(func() bool { return l.refused.Load() && l.idle() > settle })
}

// outcome is the outcome of a write.
type outcome uint8

const (
	done    outcome = iota
	refused         // nothing happened
	broken          // unknown
)

// judge returns the outcome of a write. Only success and 503 are allowed, and a broken
// connection after the server got a signal.
func (r *run) judge(s *server, what string, a *response, err error) outcome {
	switch {
	case err != nil:
		if !s.ending.Load() {
			r.violate("a "+what+" has no response", err.Error())
		}
		return broken
	case a.Status < 300:
		return done
	case a.Status == http.StatusServiceUnavailable:
		return refused
	}
	r.violate("a "+what+" is neither accepted nor refused with 503", a.Problem())
	return broken
}
