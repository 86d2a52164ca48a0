// Package retry waits before something that failed is tried again.
package retry

import (
	"context"
	"time"
)

// Pause waits, twice as long after each failure. Set the exported fields before the first call. It belongs to one goroutine.
type Pause struct {
	Least, Most time.Duration
	// After calls f after d, unless stop is called first.
	After func(d time.Duration, f func()) (stop func() bool)
	// End ends a wait.
	End <-chan struct{}

	next time.Duration // 0 for Least
}

// Reset notes a success: the next wait takes Least.
func (p *Pause) Reset() { p.next = 0 }

// Wait returns after the time of this failure, when ctx ends, when End is signalled, or when work,
// which it calls when woken is signalled, returns an error.
func (p *Pause) Wait(ctx context.Context, woken <-chan struct{}, work func() error) {
	d := max(p.Least, p.next)
	p.next = min(2*d, p.Most)
	p.wait(ctx, d, woken, work)
}

// WaitLeast is Wait for a failure of something else, and takes Least.
func (p *Pause) WaitLeast(ctx context.Context) { p.wait(ctx, p.Least, nil, nil) }

func (p *Pause) wait(ctx context.Context, d time.Duration, woken <-chan struct{}, work func() error) {
	fired := make(chan struct{})
	stop := p.After(d, func() { close(fired) })
	defer stop()
	for {
		select {
		case <-woken:
			if work() != nil {
				return
			}
		case <-fired:
			return
		case <-p.End:
			return
		case <-ctx.Done():
			return
		}
	}
}
