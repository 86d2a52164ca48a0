package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// limits ends a run after a number of jobs or a time.
type limits struct {
	workers  int
	count    uint64 // 0: no limit
	duration time.Duration
}

// each runs job for 0, 1, 2, ... on several workers until a limit is reached, enough
// returns true, or a job fails. The end of the duration is no error.
func (l limits) each(ctx context.Context, enough func() bool, job func(ctx context.Context, i uint64) error) error {
	parent := ctx
	if l.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.duration)
		defer cancel()
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var next atomic.Uint64
	var wg sync.WaitGroup
	for range max(l.workers, 1) {
		wg.Go(func() {
			for ctx.Err() == nil && !enough() {
				i := next.Add(1) - 1
				if l.count > 0 && i >= l.count {
					return
				}
				if err := job(ctx, i); err != nil {
					stop(err)
				}
			}
		})
	}
	wg.Wait()
	switch cause := context.Cause(ctx); {
	case parent.Err() != nil:
		return parent.Err()
	case errors.Is(cause, context.DeadlineExceeded):
		return nil
	default:
		return cause
	}
}
