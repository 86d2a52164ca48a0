// Package closing ends calls that take long when the database closes.
package closing

import (
	"context"

	"github.com/tablerock-db/tablerock/store"
)

// Signal says that Close has begun. Make one with New.
type Signal struct {
	ctx   context.Context
	begin context.CancelFunc
}

// New returns a Signal of a database that is open.
func New() Signal {
	var s Signal
	s.ctx, s.begin = context.WithCancel(context.Background())
	return s
}

// Begin says that Close has begun.
func (s *Signal) Begin() { s.begin() }

// Begun reports whether Close has begun.
func (s *Signal) Begun() bool { return s.ctx.Err() != nil }

// Until returns a copy of ctx that also ends when Close begins, then with the cause
// store.ErrClosed. Call stop at the end, with the error of the call: if Close ended the call,
// it returns store.ErrClosed instead.
func (s *Signal) Until(ctx context.Context) (_ context.Context, stop func(error) error) {
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(s.ctx, func() { cancel(store.ErrClosed) })
	return ctx, func(err error) error {
		unhook()
		if err != nil && s.Begun() && context.Cause(ctx) == store.ErrClosed {
			err = store.ErrClosed
		}
		cancel(nil)
		return err
	}
}
