package engine

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine/internal/catalog"
	"github.com/tablerock-db/tablerock/engine/internal/emptyrange"
	"github.com/tablerock-db/tablerock/engine/internal/readstate"
	"github.com/tablerock-db/tablerock/engine/internal/scan"
	"github.com/tablerock-db/tablerock/store"
)

// snapshot is the whole database at one instant: a registered sequence number, the catalog,
// a pinned read state, and ranges of keys without entities. It is held until release. That of a Snapshot has no read state,
// because all later ones have the versions of a registered number.
type snapshot struct {
	db      *DB
	seq     uint64
	catalog *catalog.Catalog
	state   *readstate.State
	empty   emptyrange.List
}

var snapshots = sync.Pool{New: func() any { return new(snapshot) }}

// newSnapshot returns a snapshot of the present, or nil if the database is closed.
func (db *DB) newSnapshot() *snapshot {
	s := snapshots.Get().(*snapshot)
	s.db = db
	db.log.Register(func(seq uint64, empty emptyrange.List) { s.seq, s.catalog, s.empty = seq, db.catalog.Load(), empty })
	if s.state = db.state.Pin(s.seq); s.state == nil {
		db.unregister(s.seq)
		return nil
	}
	return s
}

func (s *snapshot) release() {
	s.state.Unpin(s.seq)
	s.db.unregister(s.seq)
}

// unregister ends the registration of seq. It wakes the worker if compactions may have kept entries
// for it: files have entries that it does not see, or tables were dropped since. A later flush would
// wake the worker too, but there may be none for long.
func (db *DB) unregister(seq uint64) {
	if !db.log.Unregister(seq) {
		return
	}
	if s := db.state.Load(); s != nil && seq < max(s.Version.MaxSeq(), db.drops.Last()) {
		db.worker.Wake()
	}
}

// Snapshot is the database at one instant. It keeps old versions and dropped tables on disk,
// so close it soon. All methods may be called concurrently; those that read entities return
// store.ErrClosed after DB.Close. Close the cursors of a Snapshot before the Snapshot, and call
// no method but Close after Close.
type Snapshot struct {
	s      *snapshot
	closed atomic.Bool
}

// Snapshot returns the database as it is now, with everything acknowledged so far. The only
// error is store.ErrClosed.
func (db *DB) Snapshot() (*Snapshot, error) {
	s := db.newSnapshot()
	if s == nil {
		return nil, store.ErrClosed
	}
	s.state.Unpin(s.seq)
	s.state = nil
	return &Snapshot{s: s}, nil
}

// Get returns a copy of an entity. The errors are those of DB.Get.
func (s *Snapshot) Get(ctx context.Context, table string, key edm.Key) (edm.Entity, error) {
	var e edm.Entity
	err := s.View(ctx, table, key, func(row edm.Row) error {
		e = edm.EntityOf(row)
		return nil
	})
	return e, err
}

// View calls read with an entity, as DB.View does.
func (s *Snapshot) View(ctx context.Context, table string, key edm.Key, read func(edm.Row) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.s.db.viewAt(s.s.catalog, table, key, s.s.seq, read)
}

// Query returns a cursor over the entities that q selects, as DB.Query does.
func (s *Snapshot) Query(ctx context.Context, table string, q store.Query) store.Cursor {
	now := &snapshot{db: s.s.db, seq: s.s.seq, catalog: s.s.catalog, state: s.s.db.state.Pin(s.s.seq), empty: s.s.empty}
	if now.state == nil {
		return scan.Failed(store.ErrClosed)
	}
	return now.query(ctx, table, q, sharedData{now})
}

// Entities returns the entities that q selects, as DB.Entities does.
func (s *Snapshot) Entities(ctx context.Context, table string, q store.Query) iter.Seq2[edm.Entity, error] {
	return func(yield func(edm.Entity, error) bool) { store.Entities(s.Query(ctx, table, q))(yield) }
}

// Tables lists tables, as DB.Tables does. The only error is that of ctx.
func (s *Snapshot) Tables(ctx context.Context, from string, limit int) ([]store.TableInfo, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.s.catalog.List(from, limit), nil
}

// Close releases what the snapshot keeps. It returns nil, also when it is called again.
func (s *Snapshot) Close() error {
	if s.closed.CompareAndSwap(false, true) {
		s.s.db.unregister(s.s.seq)
	}
	return nil
}
