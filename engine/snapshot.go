package engine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// snapshots is the registry of sequence numbers that someone reads at. The
// applier asks it before it discards a version, under the same mutex (that of
// applyOrder) under which a snapshot takes its number and registers it: a
// version cannot go in between.
type snapshots struct {
	// mu is also taken by merges, which read the list without the apply mutex.
	mu sync.Mutex
	// +checklocks:mu
	seqs []uint64 // ascending, one for each registration
	// top is the last of seqs, 0 if there is none.
	top atomic.Uint64
}

// newest returns the newest registered sequence number, 0 if there is none.
func (r *snapshots) newest() uint64 { return r.top.Load() }

func (r *snapshots) add(seq uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, _ := slices.BinarySearch(r.seqs, seq)
	r.seqs = slices.Insert(r.seqs, i, seq)
	r.top.Store(r.seqs[len(r.seqs)-1])
}

func (r *snapshots) remove(seq uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i, ok := slices.BinarySearch(r.seqs, seq); ok {
		r.seqs = slices.Delete(r.seqs, i, i+1)
	}
	top := uint64(0)
	if n := len(r.seqs); n > 0 {
		top = r.seqs[n-1]
	}
	r.top.Store(top)
}

// list returns the registered sequence numbers, ascending, each once.
func (r *snapshots) list() []uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Compact(slices.Clone(r.seqs))
}

// moment is one state of the whole database, held until release.
type moment struct {
	db       *DB
	seq      uint64
	catalog  *catalog
	state    *readState
	released atomic.Bool
}

// takeMoment registers the current moment and pins what it reads, or returns
// nil if the database is closed.
func (db *DB) takeMoment() *moment {
	db.apply.mu.Lock()
	m := &moment{db: db, seq: db.apply.applied, catalog: db.catalog.Load()}
	db.snapshots.add(m.seq)
	db.apply.mu.Unlock()
	if m.state = db.pin(m.seq); m.state == nil {
		db.snapshots.remove(m.seq)
		return nil
	}
	return m
}

func (m *moment) release() {
	if m.released.CompareAndSwap(false, true) {
		m.state.unpin(m.seq)
		m.db.snapshots.remove(m.seq)
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
	return newCursor(ctx, s.m, nil, table, q)
}

// Tables lists the tables, as store.Store's Tables does.
func (s *Snapshot) Tables(_ context.Context, from string, limit int) ([]store.TableInfo, error) {
	return s.m.catalog.list(from, limit), nil
}

// Close releases what the snapshot holds. A second Close returns nil.
func (s *Snapshot) Close() error {
	s.m.release()
	return nil
}
