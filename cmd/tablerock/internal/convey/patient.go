package convey

import (
	"context"
	"errors"
	"time"

	"github.com/tablerock-db/tablerock/store"
)

// BatchBytes limits a transaction for a server, by edm.EntitySize. Its JSON has at
// most three times as many bytes, and a request 4 MiB.
const BatchBytes = 1_300_000

// The repetitions of a Patient store take about 30 s.
const (
	patientTries = 7
	patientDelay = 250 * time.Millisecond
)

// Patient is a store that repeats operations whose outcome is not known, or which a server
// refused because it is busy. Its operations must have the same result if they are executed
// twice: upserts.
type Patient struct{ store.Store }

// Apply is Apply of the store, repeated with growing delays.
func (p *Patient) Apply(ctx context.Context, table string, ops ...store.Op) (results []store.Result, err error) {
	delay := patientDelay
	for try := 1; ; try++ {
		results, err = p.Store.Apply(ctx, table, ops...)
		if try == patientTries || !errors.Is(err, store.ErrOutcomeUnknown) && !errors.Is(err, store.ErrUnavailable) {
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
