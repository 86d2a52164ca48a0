package worker

import (
	"context"
	"time"
)

// RetryAfter is how long the goroutine pauses after a step that failed. After each compaction that
// fails, as it always does because of damage, it pauses twice as long, up to maxRetryAfter.
const (
	RetryAfter    = time.Second
	maxRetryAfter = time.Minute
)

// pause is a wait before a step that failed is tried again. It belongs to one goroutine.
type pause struct {
	// after calls f after d, unless stop is called first.
	after func(d time.Duration, f func()) (stop func() bool)
	// end ends a wait.
	end <-chan struct{}

	next time.Duration // 0 for RetryAfter
}

// reset notes a success: the next wait takes RetryAfter.
func (p *pause) reset() { p.next = 0 }

// longer returns after the time of this failure, when ctx ends, when end is signalled, or when
// work, which it calls when woken is signalled, returns an error.
func (p *pause) longer(ctx context.Context, woken <-chan struct{}, work func() error) {
	d := max(RetryAfter, p.next)
	p.next = min(2*d, maxRetryAfter)
	p.wait(ctx, d, woken, work)
}

// least is longer for a failure of something else, and takes RetryAfter.
func (p *pause) least(ctx context.Context) { p.wait(ctx, RetryAfter, nil, nil) }

func (p *pause) wait(ctx context.Context, d time.Duration, woken <-chan struct{}, work func() error) {
	fired := make(chan struct{})
	stop := p.after(d, func() { close(fired) })
	defer stop()
	for {
		select {
		case <-woken:
			if work() != nil {
				return
			}
		case <-fired:
			return
		case <-p.end:
			return
		case <-ctx.Done():
			return
		}
	}
}
