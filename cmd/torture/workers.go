package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"
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

// least has the least values of flags that are numbers or times, by name. Where it is 0, 0 means no limit, all, or the
// default.
var least = map[string]int64{
	"all": 0, "batches": 1, "budget": 0, "choices": 0, "cycles": 1, "depth": 0, "duration": 0, "entities": 1, "interval": 1, "longest": 1,
	"point": 0, "states": 0, "steps": 0, "stride": 1, "trials": 1, "workers": 1,
}

// checkLeast returns a usageError for a flag below its least value.
func checkLeast(flags *pflag.FlagSet) (err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		bound, ok := least[f.Name]
		if !ok || err != nil {
			return
		}
		n, parseErr := strconv.ParseInt(f.Value.String(), 10, 64)
		if parseErr != nil {
			d, _ := time.ParseDuration(f.Value.String()) // package pflag has parsed it
			n = int64(d)
		}
		switch {
		case n >= bound:
		case f.Value.Type() == "duration" && bound > 0:
			err = usageError{fmt.Errorf("--%s %s: must be more than 0", f.Name, f.Value)}
		default:
			err = usageError{fmt.Errorf("--%s %s: must be at least %d", f.Name, f.Value, bound)}
		}
	})
	return err
}

// didNothing returns a usageError if a run has checked nothing, which must not look like a run
// without a violation.
func didNothing(n int64, what string) error {
	if n > 0 {
		return nil
	}
	return usageError{fmt.Errorf("no %s: these flags check nothing, or end before", what)}
}
