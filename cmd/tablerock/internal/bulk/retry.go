package bulk

import (
	"context"
	"errors"
	"time"

	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/remote"
)

// BatchBytes limits a transaction for a server, by edm.EntitySize, so that its request is below 4
// MiB. A key can have six times its size there, in a link and in JSON, and a property four times,
// but all keys of a transaction only 2.5 MB.
const BatchBytes = 800_000

// The repetitions of a Retrying store take about 16 s, and those of its first operation 0.75 s.
const (
	tries      = 7
	firstTries = 3
	firstDelay = 250 * time.Millisecond
)

// Retrying is a store that repeats operations whose outcome is not known, or which a server
// refused because it is busy. Its operations must have the same result if they are executed
// twice: upserts.
//
// Until a Table server has answered, an address is more likely wrong than its server busy. Then
// what reached no server is not repeated, and what may have reached one only a few times.
type Retrying struct{ store.Store }

// CreateTable is CreateTable of the store, repeated with growing delays. It returns
// ErrTableExists too if a try whose outcome was not known has created the table.
func (r *Retrying) CreateTable(ctx context.Context, table string) error {
	return r.repeat(ctx, func() error { return r.Store.CreateTable(ctx, table) })
}

// Apply is Apply of the store, repeated with growing delays.
func (r *Retrying) Apply(ctx context.Context, table string, ops ...store.Op) (results []store.Result, err error) {
	err = r.repeat(ctx, func() error {
		results, err = r.Store.Apply(ctx, table, ops...)
		return err
	})
	return results, err
}

// repeat calls try until it succeeds, fails for another reason, or has failed too often.
func (r *Retrying) repeat(ctx context.Context, try func() error) error {
	delay := firstDelay
	for n := 1; ; n++ {
		err := try()
		var wrong *remote.AddressError
		if n == tries || errors.As(err, &wrong) || !errors.Is(err, store.ErrOutcomeUnknown) && !errors.Is(err, store.ErrUnavailable) {
			return err
		}
		if s, ok := r.Store.(*remote.Store); ok && !s.Answered() && (n >= firstTries || errors.Is(err, store.ErrUnavailable)) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(delay):
			delay *= 2
		}
	}
}
