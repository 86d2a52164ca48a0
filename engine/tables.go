package engine

import (
	"context"
	"slices"
	"sync"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// catalogView is the catalog with every change that is in the log, durable or
// not: what writers go by. It changes under the log mutex.
type catalogView struct {
	catalog *catalog
	seq     uint64 // the last change in the log
}

// pending returns the sequence number that an answer computed from v must wait
// for, 0 if all of v is durable.
func (v *catalogView) pending(db *DB) uint64 {
	if v.seq > db.published.Load() {
		return v.seq
	}
	return 0
}

func (v *catalogView) has(table uint32) bool {
	_, ok := v.catalog.live[table]
	return ok
}

// CreateTable implements store.Store.
func (db *DB) CreateTable(ctx context.Context, table string) error {
	if err := edm.CheckTableName(table); err != nil {
		return err
	}
	return db.changeCatalog(ctx, func(cat *catalog, c *commit) (*catalog, error) {
		if cat.lookup(table) != nil {
			return nil, store.ErrTableExists
		}
		t := &tableEntry{
			id:      cat.next,
			name:    table,
			folded:  edm.FoldTableName(table),
			created: edm.TicksOf(db.opts.Clock.Now()),
		}
		db.addCatalogRow(c, nextIDEntity(t.id+1))
		db.addCatalogRow(c, t.entity())
		return cat.with(t), nil
	})
}

// DeleteTable implements store.Store. It writes one record, however large the
// table is; merges drop the rows later.
func (db *DB) DeleteTable(ctx context.Context, table string) error {
	if err := edm.CheckTableName(table); err != nil {
		return err
	}
	return db.changeCatalog(ctx, func(cat *catalog, c *commit) (*catalog, error) {
		t := cat.lookup(table)
		if t == nil {
			return nil, store.ErrTableNotFound
		}
		key := catalogKey(catalogTables, t.folded)
		c.addDelete(key, codec.KeyHash(key))
		return cat.without(t), nil
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
	return db.catalog.Load().list(from, limit), nil
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
	t := db.catalog.Load().lookup(table)
	if t == nil {
		return nil, store.ErrTableNotFound
	}
	return slices.Clone(t.meta), nil
}

// SetTableMeta implements store.Store.
func (db *DB) SetTableMeta(ctx context.Context, table string, meta []byte) error {
	if err := edm.CheckTableName(table); err != nil {
		return err
	}
	if err := checkMeta(table, meta); err != nil {
		return err
	}
	return db.changeCatalog(ctx, func(cat *catalog, c *commit) (*catalog, error) {
		old := cat.lookup(table)
		if old == nil {
			return nil, store.ErrTableNotFound
		}
		t := *old
		t.meta = cloneMeta(meta)
		db.addCatalogRow(c, t.entity())
		return cat.with(&t), nil
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
	return slices.Clone(db.catalog.Load().account), nil
}

// SetAccountMeta implements store.Store.
func (db *DB) SetAccountMeta(ctx context.Context, meta []byte) error {
	if err := checkMeta("account", meta); err != nil {
		return err
	}
	return db.changeCatalog(ctx, func(cat *catalog, c *commit) (*catalog, error) {
		meta := cloneMeta(meta)
		db.addCatalogRow(c, accountEntity(meta))
		return cat.withAccount(meta), nil
	})
}

// cloneMeta copies metadata; none is nil.
func cloneMeta(meta []byte) []byte {
	if len(meta) == 0 {
		return nil
	}
	return slices.Clone(meta)
}

// changeCatalog runs change on the latest catalog, logs the rows it adds to the
// commit, and reveals the new catalog once they are durable.
func (db *DB) changeCatalog(ctx context.Context, change func(*catalog, *commit) (*catalog, error)) error {
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
	c := newCommit()
	pending, err := db.logCatalog(c, change)
	if err != nil {
		return db.settle(pending, err)
	}
	return db.complete(c)
}

// logCatalog appends the change in the catalog's turn. A refusal comes with the
// sequence number it must wait for, 0 if it looked only at durable state.
func (db *DB) logCatalog(c *commit, change func(*catalog, *commit) (*catalog, error)) (pending uint64, err error) {
	db.catalogTurn.Lock()
	defer db.catalogTurn.Unlock()
	view := db.tables.Load()
	pending = view.pending(db)
	after, err := change(view.catalog, c)
	if err != nil {
		return pending, err
	}
	c.catalog = after
	c.onApply = func() { db.revealCatalog(view.catalog, after, c.firstSeq) }
	return pending, db.append(c)
}

// revealCatalog runs under the apply mutex, so the catalog and the published
// sequence number change together.
func (db *DB) revealCatalog(before, after *catalog, seq uint64) {
	for id := range before.live {
		if _, ok := after.live[id]; !ok {
			db.dropped.add(id, seq)
		}
	}
	db.catalog.Store(after)
}

func (db *DB) addCatalogRow(c *commit, e edm.Entity) {
	key := catalogKey(e.Key.Partition, e.Key.Row)
	props, shape := db.shapes.add(e.Properties)
	c.addPut(key, codec.KeyHash(key), shape, props, nil)
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
	if table < firstTableID {
		return false
	}
	cat := db.catalog.Load()
	if _, live := cat.live[table]; live || table >= cat.next {
		return false
	}
	db.dropped.mu.Lock()
	seq := db.dropped.at[table]
	db.dropped.mu.Unlock()
	snaps := db.snapshots.list()
	return len(snaps) == 0 || snaps[0] >= seq
}
