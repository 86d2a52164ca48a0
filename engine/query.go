package engine

import (
	"context"
	"iter"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine/internal/scan"
	"github.com/tablerock-db/tablerock/internal/lsm"
	"github.com/tablerock-db/tablerock/internal/memtable"
	"github.com/tablerock-db/tablerock/internal/merge"
	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/store"
)

// Query returns a cursor over the entities that q selects. The cursor reads the
// database as it is at the call of Query, across all partitions, and keeps memory
// and files until it is closed: close it soon, and from one goroutine. Query never
// returns nil; an error, such as store.ErrTableNotFound, store.ErrInvalid or
// store.ErrClosed, is in the cursor's Err. When ctx ends, Next returns false, Err
// returns the error of ctx, and Resume says where to continue.
func (db *DB) Query(ctx context.Context, table string, q store.Query) store.Cursor {
	s := db.newSnapshot()
	if s == nil {
		return scan.Failed(store.ErrClosed)
	}
	c, err := s.query(ctx, table, q, s.release)
	if err != nil {
		s.release()
		return scan.Failed(err)
	}
	return c
}

// Entities returns a sequence of copies of the entities that q selects. It calls
// Query when it is ranged over, each time anew; before that it keeps nothing. If
// the query fails, the last pair has the error and a zero Entity.
func (db *DB) Entities(ctx context.Context, table string, q store.Query) iter.Seq2[edm.Entity, error] {
	return func(yield func(edm.Entity, error) bool) { store.Entities(db.Query(ctx, table, q))(yield) }
}

// query returns a cursor over s that calls release when it is closed.
func (s *snapshot) query(ctx context.Context, table string, q store.Query, release func()) (store.Cursor, error) {
	if err := edm.CheckTableName(table); err != nil {
		return nil, err
	}
	if err := store.CheckQuery(q); err != nil {
		return nil, err
	}
	info := s.catalog.Lookup(table)
	if info == nil {
		return nil, store.ErrTableNotFound
	}
	return scan.New(ctx, scan.Input{Table: info.ID, Sources: s.sources, Close: release}, q), nil
}

// sources returns one source for every memtable that has rows, newest first, and the
// sources of the sstables that can have keys in [lower, upper). Prune is for the latter.
func (s *snapshot) sources(lower, upper []byte, prune *predicate.Program) (mems []merge.Source, files []*lsm.Source) {
	for _, seg := range s.state.mems {
		if !seg.Empty() {
			o := memtable.IterOptions{Lower: lower, Upper: upper, Snapshot: s.seq}
			mems = append(mems, seg.Table.NewIterator(o))
		}
	}
	return mems, s.state.version.Sources(lsm.IterOptions{Lower: lower, Upper: upper, Snapshot: s.seq, Fill: true, Prune: prune})
}
