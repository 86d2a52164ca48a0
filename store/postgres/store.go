package postgres

import (
	"context"
	"sync"

	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres/internal/scan"
	"github.com/tablerock-db/tablerock/store/postgres/internal/wire"
)

// Store is the store of one account. It implements store.Store. Its methods are safe for
// concurrent use.
type Store struct {
	db      *Database
	account []byte

	mu sync.RWMutex
	// +checklocks:mu
	closed bool
	calls  sync.WaitGroup // that run; Add with mu held for reading
}

// begin registers a call, unless the store is closed or ctx has ended. Call s.calls.Done
// after it has returned nil.
func (s *Store) begin(ctx context.Context) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return store.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.calls.Add(1)
	return nil
}

// read is Database.read as a call of the store.
func (s *Store) read(ctx context.Context, f func(c *wire.Conn) error) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	return s.db.read(ctx, f)
}

// usable returns store.ErrClosed if the store is closed.
func (s *Store) usable() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return store.ErrClosed
	}
	return nil
}

// Query implements store.Store. The rows that one round trip reads are of one time.
func (s *Store) Query(ctx context.Context, table string, q store.Query) store.Cursor {
	return scan.Query(ctx, &scan.Account{Name: s.account, Shapes: &s.db.shapes, Read: s.read, Usable: s.usable}, table, q)
}

// Ping returns nil if the server is ready; see Database.Ping.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	return s.db.Ping(ctx)
}

// Close implements store.Store. It waits for the calls that run. The Database remains open.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.calls.Wait()
	return nil
}
