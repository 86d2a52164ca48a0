package bulk

import (
	"context"
	"errors"
	"time"

	"github.com/tablerock-db/tablerock/store"
)

// BatchBytes limits a transaction for a server, by edm.EntitySize. Its JSON has at
// most three times as many bytes, and a request 4 MiB.
const BatchBytes = 1_300_000

// The repetitions of a Retrying store take about 30 s.
const (
	tries      = 7
	firstDelay = 250 * time.Millisecond
)

// Retrying is a store that repeats operations whose outcome is not known, or which a server
// refused because it is busy. Its operations must have the same result if they are executed
// twice: upserts.
type Retrying struct{ store.Store }

// Apply is Apply of the store, repeated with growing delays.
func (r *Retrying) Apply(ctx context.Context, table string, ops ...store.Op) (results []store.Result, err error) {
	delay := firstDelay
	for try := 1; ; try++ {
		results, err = r.Store.Apply(ctx, table, ops...)
		if try == tries || !errors.Is(err, store.ErrOutcomeUnknown) && !errors.Is(err, store.ErrUnavailable) {
			return results, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(delay):
			delay *= 2
		}
	}
}
