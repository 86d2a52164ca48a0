package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine/internal/catalog"
	"github.com/tablerock-db/tablerock/engine/internal/commitlog"
	"github.com/tablerock-db/tablerock/store"
)

// catalogView is the catalog with every change that is in the log, durable or
// not: what writers go by. It changes under the log mutex.
type catalogView struct {
	catalog *catalog.Catalog
	seq     uint64 // the last change in the log
}

// pending returns the sequence number that an answer computed from v must wait
// for, 0 if all of v is durable.
func (v *catalogView) pending(db *DB) uint64 {
	if v.seq > db.log.Published() {
		return v.seq
	}
	return 0
}

// CreateTable implements store.Store.
func (db *DB) CreateTable(ctx context.Context, table string) error {
	if err := edm.CheckTableName(table); err != nil {
		return err
	}
	return db.changeCatalog(ctx, func(cat *catalog.Catalog, c *commitlog.Commit) (*catalog.Catalog, error) {
		if cat.Lookup(table) != nil {
			return nil, store.ErrTableExists
		}
		if cat.Next() > catalog.MaxTableID {
			return nil, fmt.Errorf("%w: no id is left for another table", store.ErrReadOnly)
		}
		t := &catalog.Table{
			ID:      cat.Next(),
			Name:    table,
			Folded:  edm.FoldTableName(table),
			Created: edm.TicksOf(db.opts.Testing.Clock.Now()),
		}
		db.putCatalog(c, catalog.NextEntity(t.ID+1))
		db.putCatalog(c, t.Entity())
		return cat.With(t), nil
	})
}

// DeleteTable implements store.Store. It writes one record, however large the
// table is; merges drop the rows later.
func (db *DB) DeleteTable(ctx context.Context, table string) error {
	if err := edm.CheckTableName(table); err != nil {
		return err
	}
	return db.changeCatalog(ctx, func(cat *catalog.Catalog, c *commitlog.Commit) (*catalog.Catalog, error) {
		t := cat.Lookup(table)
		if t == nil {
			return nil, store.ErrTableNotFound
		}
		key := catalogKey(t.Row())
		c.Delete(key, codec.KeyHash(key))
		return cat.Without(t), nil
	})
}

// Tables implements store.Store.
func (db *DB) Tables(ctx context.Context, from string, limit int) ([]store.TableInfo, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if db.closed.Load() {
		return nil, store.ErrClosed
	}
	return db.catalog.Load().List(from, limit), nil
}

// TableMeta implements store.Store.
func (db *DB) TableMeta(ctx context.Context, table string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if db.closed.Load() {
		return nil, store.ErrClosed
	}
	if err := edm.CheckTableName(table); err != nil {
		return nil, err
	}
	t := db.catalog.Load().Lookup(table)
	if t == nil {
		return nil, store.ErrTableNotFound
	}
	return slices.Clone(t.Meta), nil
}

// SetTableMeta implements store.Store.
func (db *DB) SetTableMeta(ctx context.Context, table string, meta []byte) error {
	if err := edm.CheckTableName(table); err != nil {
		return err
	}
	if err := edm.CheckMeta(table, len(meta)); err != nil {
		return err
	}
	return db.changeCatalog(ctx, func(cat *catalog.Catalog, c *commitlog.Commit) (*catalog.Catalog, error) {
		old := cat.Lookup(table)
		if old == nil {
			return nil, store.ErrTableNotFound
		}
		t := *old
		t.Meta = cloneMeta(meta)
		db.putCatalog(c, t.Entity())
		return cat.With(&t), nil
	})
}

// AccountMeta implements store.Store.
func (db *DB) AccountMeta(ctx context.Context) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if db.closed.Load() {
		return nil, store.ErrClosed
	}
	return slices.Clone(db.catalog.Load().Account()), nil
}

// SetAccountMeta implements store.Store.
func (db *DB) SetAccountMeta(ctx context.Context, meta []byte) error {
	if err := edm.CheckMeta("", len(meta)); err != nil {
		return err
	}
	return db.changeCatalog(ctx, func(cat *catalog.Catalog, c *commitlog.Commit) (*catalog.Catalog, error) {
		meta := cloneMeta(meta)
		db.putCatalog(c, catalog.AccountEntity(meta))
		return cat.WithAccount(meta), nil
	})
}

// cloneMeta copies metadata; none is nil.
func cloneMeta(meta []byte) []byte {
	if len(meta) == 0 {
		return nil
	}
	return slices.Clone(meta)
}

// catalogChange adds the rows of a change to a commit and returns the catalog
// that they make.
type catalogChange = func(*catalog.Catalog, *commitlog.Commit) (*catalog.Catalog, error)

// changeCatalog runs change on the latest catalog, logs the rows it adds to the
// commit, and reveals the new catalog once they are durable.
func (db *DB) changeCatalog(ctx context.Context, change catalogChange) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := db.beginWrite(); err != nil {
		return err
	}
	defer db.writers.RUnlock()
	if err := db.throttle(ctx); err != nil {
		return err
	}
	c := commitlog.NewCommit()
	pending, err := db.logCatalog(c, change)
	if err != nil {
		return db.log.Settle(pending, err)
	}
	return db.complete(c)
}

// logCatalog appends the change in the catalog's turn. A refusal comes with the
// sequence number it must wait for, 0 if it looked only at durable state.
func (db *DB) logCatalog(c *commitlog.Commit, change catalogChange) (pending uint64, err error) {
	db.catalogTurn.Lock()
	defer db.catalogTurn.Unlock()
	view := db.tables.Load()
	pending = view.pending(db)
	after, err := change(view.catalog, c)
	if err != nil {
		return pending, err
	}
	c.OnPlace = func(seq uint64) { db.tables.Store(&catalogView{catalog: after, seq: seq}) }
	c.OnApply = func(seq uint64) { db.revealCatalog(view.catalog, after, seq) }
	return pending, db.log.Append(c)
}

// revealCatalog runs when the change is applied, so that snapshots see the
// catalog and the sequence number change together.
func (db *DB) revealCatalog(before, after *catalog.Catalog, seq uint64) {
	for _, id := range before.Gone(after) {
		db.dropped.add(id, seq)
	}
	db.catalog.Store(after)
}

func (db *DB) putCatalog(c *commitlog.Commit, e edm.Entity) {
	key := catalogKey(e.Key)
	c.Put(key, codec.KeyHash(key), db.shapes.of(e.Properties), e.Properties)
}

func catalogKey(key edm.Key) []byte {
	return codec.AppendKey(nil, catalog.TableID, key.Partition, key.Row)
}

// droppedTables knows which tables of this process's life were dropped when.
type droppedTables struct {
	mu sync.Mutex
	// +checklocks:mu
	at map[uint32]uint64
}

func (d *droppedTables) add(id uint32, seq uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at == nil {
		d.at = make(map[uint32]uint64)
	}
	d.at[id] = seq
}

// isDropped reports whether nobody can read the rows of a table any more: it is
// not in the catalog, and no snapshot is older than its end. Once true it stays
// true.
func (db *DB) isDropped(table uint32) bool {
	cat := db.catalog.Load()
	if table < catalog.FirstTableID || table >= cat.Next() || cat.Live(table) {
		return false
	}
	db.dropped.mu.Lock()
	seq := db.dropped.at[table]
	db.dropped.mu.Unlock()
	if db.opts.NoSync && seq > db.logSynced.Load() {
		// A crash could still bring the table back, and its rows must be there.
		return false
	}
	readers := db.log.Registered()
	return len(readers) == 0 || readers[0] >= seq
}
