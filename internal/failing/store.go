// Package failing has stores and servers that fail on demand, for tests.
package failing

import (
	"context"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// Store is a store of which one call fails. It counts CreateTable, Apply, View and the Next of its
// cursors.
type Store struct {
	store.Store
	At    int64  // the number of the call, from 1 on
	After bool   // a write fails after it is stored
	Err   error  // of the call; nil calls Wait and waits for the end of ctx
	Wait  func() // called once
	calls atomic.Int64
}

// Failed reports whether the call was made.
func (s *Store) Failed() bool { return s.calls.Load() >= s.At }

// call returns the error of a call.
func (s *Store) call(ctx context.Context) error {
	if s.calls.Add(1) != s.At {
		return ctx.Err()
	}
	if s.Err == nil {
		s.Wait()
		<-ctx.Done()
		return ctx.Err()
	}
	return s.Err
}

// CreateTable implements store.Store.
func (s *Store) CreateTable(ctx context.Context, table string) error {
	if err := s.call(ctx); err != nil {
		return err
	}
	return s.Store.CreateTable(ctx, table)
}

// Apply implements store.Store.
func (s *Store) Apply(ctx context.Context, table string, ops ...store.Op) ([]store.Result, error) {
	err := s.call(ctx)
	if err != nil && !s.After {
		return nil, err
	}
	results, other := s.Store.Apply(context.WithoutCancel(ctx), table, ops...)
	if err != nil {
		return nil, err // and perhaps nothing is stored
	}
	return results, other
}

// View implements store.Store.
func (s *Store) View(ctx context.Context, table string, key edm.Key, read func(edm.Row) error) error {
	if err := s.call(ctx); err != nil {
		return err
	}
	return s.Store.View(ctx, table, key, read)
}

// Query implements store.Store.
func (s *Store) Query(ctx context.Context, table string, q store.Query) store.Cursor {
	return &cursor{Cursor: s.Store.Query(ctx, table, q), s: s, ctx: ctx}
}

type cursor struct {
	store.Cursor
	s   *Store
	ctx context.Context
	err error
}

// Next implements store.Cursor.
func (c *cursor) Next() bool {
	if c.err == nil {
		c.err = c.s.call(c.ctx)
	}
	return c.err == nil && c.Cursor.Next()
}

// Err implements store.Cursor.
func (c *cursor) Err() error {
	if c.err != nil {
		return c.err
	}
	return c.Cursor.Err()
}
