package engine

import (
	"context"
	"iter"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine/internal/emptyrange"
	"github.com/tablerock-db/tablerock/engine/internal/scan"
	"github.com/tablerock-db/tablerock/internal/memtable"
	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/sstable"
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
	return s.query(ctx, table, q, ownedData{s})
}

// Entities returns a sequence of copies of the entities that q selects. It calls
// Query when it is ranged over, each time anew; before that it keeps nothing. If
// the query fails, the last pair has the error and a zero Entity.
func (db *DB) Entities(ctx context.Context, table string, q store.Query) iter.Seq2[edm.Entity, error] {
	return func(yield func(edm.Entity, error) bool) { store.Entities(db.Query(ctx, table, q))(yield) }
}

// query returns a cursor over s that closes data, which is s.
func (s *snapshot) query(ctx context.Context, table string, q store.Query, data scan.Data) store.Cursor {
	err := edm.CheckTableName(table)
	if err == nil {
		err = store.CheckQuery(q)
	}
	if err == nil {
		if info := s.catalog.Lookup(table); info != nil {
			return scan.New(ctx, info.ID, data, q)
		}
		err = store.ErrTableNotFound
	}
	data.Close()
	return scan.Failed(err)
}

// ownedData is the snapshot of one cursor.
type ownedData struct{ *snapshot }

// Close implements scan.Data.
func (d ownedData) Close() {
	d.db.afterQuery(d.state)
	d.release()
	*d.snapshot = snapshot{}
	snapshots.Put(d.snapshot)
}

// sharedData is that of a cursor of a Snapshot, which has registered the number.
type sharedData struct{ *snapshot }

// Close implements scan.Data.
func (d sharedData) Close() {
	d.db.afterQuery(d.state)
	d.state.Unpin(d.seq)
}

// FoundDeleted implements scan.Data.
func (s *snapshot) FoundDeleted(lower, upper []byte, n int) {
	if s.db.tree.FoundDeleted(lower, upper, n) {
		s.db.worker.Wake()
	}
}

// Merged implements scan.Data.
func (s *snapshot) Merged(runs, entities int) {
	if s.db.tree.Merged(runs, entities) {
		s.db.worker.Wake()
	}
}

// FoundEmpty implements scan.Data.
func (s *snapshot) FoundEmpty(lower, upper []byte) { s.db.log.FoundEmpty(lower, upper, s.seq) }

// Empty implements scan.Data.
func (s *snapshot) Empty() emptyrange.List { return s.empty }

// AddSources implements scan.Data: it adds one source for every memtable that has rows, and
// the sources of the sstables that can have keys in [lower, upper). Prune is for the latter.
func (s *snapshot) AddSources(to *scan.Sources, lower, upper []byte, prune *predicate.Program) {
	for _, seg := range s.state.Mems {
		if !seg.Empty() {
			to.AddMemtable(seg.Table, memtable.IterOptions{Lower: lower, Upper: upper, Snapshot: s.seq})
		}
	}
	to.SetFiles(s.state.Version, sstable.IterOptions{Lower: lower, Upper: upper, Snapshot: s.seq, Fill: true, Prune: prune})
}
