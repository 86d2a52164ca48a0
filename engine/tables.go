package engine

import (
	"context"
	"slices"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine/internal/catalog"
	"github.com/tablerock-db/tablerock/engine/internal/commitlog"
	"github.com/tablerock-db/tablerock/store"
)

// CreateTable implements store.Store.
func (db *DB) CreateTable(ctx context.Context, table string) error {
	if err := edm.CheckTableName(table); err != nil {
		return err
	}
	return db.changeCatalog(ctx, func(c *catalog.Catalog) (catalog.Change, error) {
		return c.Create(table, edm.TicksOf(db.opts.Testing.Clock.Now()))
	})
}

// DeleteTable implements store.Store. It writes one record, however large the
// table is; merges drop the rows later.
func (db *DB) DeleteTable(ctx context.Context, table string) error {
	if err := edm.CheckTableName(table); err != nil {
		return err
	}
	return db.changeCatalog(ctx, func(c *catalog.Catalog) (catalog.Change, error) { return c.Drop(table) })
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
	if err := store.CheckMeta(table, len(meta)); err != nil {
		return err
	}
	return db.changeCatalog(ctx, func(c *catalog.Catalog) (catalog.Change, error) { return c.SetMeta(table, meta) })
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
	if err := store.CheckMeta("", len(meta)); err != nil {
		return err
	}
	return db.changeCatalog(ctx, func(c *catalog.Catalog) (catalog.Change, error) { return c.SetAccount(meta), nil })
}

// catalogChange returns a change of a catalog, or refuses it.
type catalogChange = func(*catalog.Catalog) (catalog.Change, error)

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

// logCatalog appends the change to the log, under catalogMu. A refusal comes with
// the sequence number it must wait for, 0 if it depends on durable state only.
func (db *DB) logCatalog(c *commitlog.Commit, change catalogChange) (pending uint64, err error) {
	db.catalogMu.Lock()
	defer db.catalogMu.Unlock()
	before := db.logged.Load()
	pending = before.Pending(db.log.Published())
	ch, err := change(before.Catalog)
	if err != nil {
		return pending, err
	}
	for _, e := range ch.Put {
		key := catalogKey(e.Key)
		c.Put(key, codec.KeyHash(key), db.shapes.of(e.Properties), e.Properties)
	}
	for _, k := range ch.Delete {
		key := catalogKey(k)
		c.Delete(key, codec.KeyHash(key))
	}
	c.OnPlace = func(seq uint64) { db.logged.Store(&catalog.Logged{Catalog: ch.After, Seq: seq}) }
	// Snapshots see the catalog and the sequence number change together.
	c.OnApply = func(seq uint64) {
		db.drops.Add(before.Catalog, ch.After, seq)
		db.catalog.Store(ch.After)
	}
	return pending, db.log.Append(c)
}

func catalogKey(key edm.Key) []byte {
	return codec.AppendKey(nil, catalog.TableID, key.Partition, key.Row)
}

// isDropped reports whether nobody can read the rows of a table any more: it is
// not in the catalog, and no snapshot is older than its end. Once true it stays
// true.
func (db *DB) isDropped(table uint32) bool {
	cat := db.catalog.Load()
	if table < catalog.FirstTableID || table >= cat.Next() || cat.Live(table) {
		return false
	}
	seq := db.drops.Seq(table)
	if db.opts.NoSync && seq > db.logSynced.Load() {
		// A crash could still bring the table back, and its rows must be there.
		return false
	}
	readers := db.log.Registered()
	return len(readers) == 0 || readers[0] >= seq
}
