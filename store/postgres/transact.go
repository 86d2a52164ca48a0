package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres/internal/wire"
)

// transact calls f with a connection, until it fails for good. f runs a transaction. It
// returns the error of conn.commit as it is, so that f is repeated only if nothing happened.
// transact ends the transaction of an f that fails.
func (d *Database) transact(ctx context.Context, f func(c *wire.Conn) error) error {
	for try, lost := 1, 0; ; try++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		c, err := d.acquire(ctx)
		if err != nil {
			return err
		}
		err = f(c)
		c.Rollback(ctx)
		d.pool.Release(c)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, store.ErrOutcomeUnknown):
			d.unknowns.Add(1)
			d.demoted(err)
			return err
		case errors.Is(err, wire.ErrLostRace):
			d.retries.Add(1)
		case !d.again(err):
			return failure(err, false)
		case !wire.Transient(err):
			if lost++; lost == readTries {
				return failure(err, false)
			}
		}
		if try == maxTries {
			return fmt.Errorf("%w: %d other transactions on the same entities were faster: %w", store.ErrUnavailable, try, err)
		}
		if err := d.backOff(ctx, try); err != nil {
			return err
		}
	}
}

// backOff waits before the next try of a transaction.
func (d *Database) backOff(ctx context.Context, try int) error {
	if try < 3 {
		return nil
	}
	// Different for each call, so that two that collide do so once.
	spread := d.retries.Load() * 0x9E3779B97F4A7C15 >> 54
	t := time.NewTimer(time.Duration(min(try, 20)) * time.Duration(1+spread) * 4 * time.Microsecond)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
