package engine

import (
	"context"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine/internal/catalog"
	"github.com/tablerock-db/tablerock/engine/internal/scan"
	"github.com/tablerock-db/tablerock/store"
)

// moment is one state of the whole database, held until release.
type moment struct {
	db       *DB
	seq      uint64
	catalog  *catalog.Catalog
	state    *readState
	released atomic.Bool
}

// takeMoment registers the current moment and pins what it reads, or returns
// nil if the database is closed.
func (db *DB) takeMoment() *moment {
	m := &moment{db: db}
	db.log.Register(func(seq uint64) { m.seq, m.catalog = seq, db.catalog.Load() })
	if m.state = db.state.pin(m.seq); m.state == nil {
		db.log.Unregister(m.seq)
		return nil
	}
	return m
}

func (m *moment) release() {
	if m.released.CompareAndSwap(false, true) {
		m.state.unpin(m.seq)
		m.db.log.Unregister(m.seq)
	}
}

// Snapshot is the database as it was at one moment. It pins memory and files:
// close it soon. All methods may be called concurrently; none may be called
// after Close, and cursors must be closed before it.
type Snapshot struct{ m *moment }

// Snapshot returns the current moment, in which everything acknowledged so far
// is visible.
func (db *DB) Snapshot() (*Snapshot, error) {
	m := db.takeMoment()
	if m == nil {
		return nil, store.ErrClosed
	}
	return &Snapshot{m}, nil
}

// Get returns a copy of the entity, as store.Store's Get does.
func (s *Snapshot) Get(ctx context.Context, table string, key edm.Key) (edm.Entity, error) {
	var e edm.Entity
	err := s.View(ctx, table, key, func(row edm.Row) error {
		e = edm.EntityOf(row)
		return nil
	})
	return e, err
}

// View calls read with the entity in place, as store.Store's View does.
func (s *Snapshot) View(ctx context.Context, table string, key edm.Key, read func(edm.Row) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.m.db.viewAt(s.m.catalog, table, key, s.m.seq, s.m.state, read)
}

// Query walks entities, as store.Store's Query does.
func (s *Snapshot) Query(ctx context.Context, table string, q store.Query) store.Cursor {
	c, err := s.m.query(ctx, table, q, func() {})
	if err != nil {
		return scan.Failed(err)
	}
	return c
}

// Tables lists the tables, as store.Store's Tables does.
func (s *Snapshot) Tables(_ context.Context, from string, limit int) ([]store.TableInfo, error) {
	return s.m.catalog.List(from, limit), nil
}

// Close releases what the snapshot holds. A second Close returns nil.
func (s *Snapshot) Close() error {
	s.m.release()
	return nil
}
