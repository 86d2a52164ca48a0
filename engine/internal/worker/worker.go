// Package worker runs the steps of a database's background work in a goroutine, and lets writers
// wait for what they do.
package worker

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Options configure a Worker.
type Options struct {
	// Step does one bounded step of work, and reports whether there was any. It calls Succeeded or
	// Failed at its end.
	Step func(ctx context.Context) (worked bool, err error)
	// StepInPause is a step that is useful although a compaction has failed.
	StepInPause func(ctx context.Context) error
	Now         func() time.Time
	// AfterFunc calls f after d, unless stop is called first.
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
	Logger    *slog.Logger
}

// Status says how the last steps ended.
type Status struct {
	// Err is the error of the last step, nil after one that succeeded. With Compaction it is that of
	// the last compaction, and flushes go on.
	Err        error
	Compaction bool
	// Failures counts the steps that set Err to an error.
	Failures uint64
}

// Worker does background work. Its methods may be called concurrently.
type Worker struct {
	o Options
	// retry ends the pause after a failure. woken is signalled when there may be work.
	retry, woken chan struct{}
	done         chan struct{} // closed at the end of the goroutine, nil without one

	mu sync.Mutex
	// cond, on mu, is signalled when there may be work, after a step that did something or failed,
	// and at the end.
	cond *sync.Cond
	// wakes counts the calls of Wake.
	// +checklocks:mu
	wakes uint64
	// +checklocks:mu
	status Status
}

// New returns a Worker without a goroutine.
func New(o Options) *Worker {
	w := &Worker{o: o, retry: make(chan struct{}, 1), woken: make(chan struct{}, 1)}
	w.cond = sync.NewCond(&w.mu)
	return w
}

// Start starts the goroutine, which ends when ctx ends. Call it at most once.
func (w *Worker) Start(ctx context.Context) {
	w.done = make(chan struct{})
	go func() {
		defer close(w.done)
		defer w.signalAfter(ctx)()
		w.run(ctx)
	}()
}

// Join waits for the end of the goroutine, if there is one.
func (w *Worker) Join() {
	if w.done != nil {
		<-w.done
	}
}

func (w *Worker) run(ctx context.Context) {
	seen := uint64(0)
	p := pause{after: w.o.AfterFunc, end: w.retry}
	var log failureLog
	for {
		worked, err := w.o.Step(ctx)
		w.mu.Lock()
		for ctx.Err() == nil && !worked && err == nil && w.wakes == seen {
			w.cond.Wait()
		}
		seen = w.wakes
		compaction := w.status.Compaction
		w.mu.Unlock()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			log.add(err, compaction, w.o.Now(), w.o.Logger)
		}
		switch {
		case err == nil && !worked:
			p.reset()
			log = failureLog{}
		case err != nil && compaction:
			p.longer(ctx, w.woken, func() error { return w.o.StepInPause(ctx) })
		case err != nil:
			p.least(ctx)
		}
	}
}

// logEvery is the least time between two messages about failures of a kind, most of which follow each other.
const logEvery = time.Minute

// failureLog logs failures of steps.
type failureLog struct {
	failures   int // since all was done
	compaction bool
	last       time.Time // when a failure was logged
}

// add logs the first failure, the first one of another kind, and one each logEvery.
func (l *failureLog) add(err error, compaction bool, now time.Time, log *slog.Logger) {
	l.failures++
	if l.failures > 1 && compaction == l.compaction && now.Sub(l.last) < logEvery {
		return
	}
	l.compaction, l.last = compaction, now
	log.Error("background work failed", "cause", err, "failures", l.failures)
}

// signalAfter signals cond when ctx ends, unless stop is called first.
func (w *Worker) signalAfter(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		w.mu.Lock()
		w.cond.Broadcast()
		w.mu.Unlock()
	})
}

// Wake says that there may be work, and that those in Wait should look for the end of it.
func (w *Worker) Wake() {
	w.mu.Lock()
	w.wakes++
	w.cond.Broadcast()
	w.mu.Unlock()
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// Retry ends the pause after a failure.
func (w *Worker) Retry() {
	select {
	case w.retry <- struct{}{}:
	default:
	}
}

// Succeeded notes a step without an error, and whether it was one of a compaction.
func (w *Worker) Succeeded(compaction bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if compaction || !w.status.Compaction {
		w.status.Err, w.status.Compaction = nil, false
	}
	w.cond.Broadcast()
}

// Failed notes the error of a step. With compaction, it is one after which flushes go on.
func (w *Worker) Failed(err error, compaction bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status = Status{Err: err, Compaction: compaction, Failures: w.status.Failures + 1}
	w.cond.Broadcast()
}

// Status returns how the last steps ended.
func (w *Worker) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status
}

// Wait calls until at once, after each step and after each Wake, until it returns true or an error,
// which Wait returns. It returns the error of ctx if that ends first. The call of until must not
// call methods of w.
func (w *Worker) Wait(ctx context.Context, until func(s Status) (bool, error)) error {
	defer w.signalAfter(ctx)()
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		if done, err := until(w.status); done || err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		w.cond.Wait()
	}
}
