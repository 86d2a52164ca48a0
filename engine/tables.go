package engine

import (
	"cmp"
	"context"
	"slices"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine/internal/catalog"
	"github.com/tablerock-db/tablerock/engine/internal/commitlog"
	"github.com/tablerock-db/tablerock/engine/internal/space"
	"github.com/tablerock-db/tablerock/store"
)

// CreateTable creates a table, as durably as Apply writes. The errors are
// store.ErrTableExists, an *edm.Error for an illegal name, and those of Apply.
func (db *DB) CreateTable(ctx context.Context, table string) error {
	return db.changeCatalog(ctx, space.Write, edm.CheckTableName(table), func(c *catalog.Catalog) (catalog.Change, error) {
		return c.Create(table, max(edm.MinTicks, edm.TicksOf(db.opts.Testing.Clock.Now())))
	})
}

// DeleteTable deletes a table and its metadata, as durably as Apply writes. It writes one
// record, however large the table is. The space is freed in the background and by Close,
// except that of files with rows of other tables, which wait for compactions. The errors
// are store.ErrTableNotFound, an *edm.Error for an illegal name, and those of Apply.
func (db *DB) DeleteTable(ctx context.Context, table string) error {
	err := db.changeCatalog(ctx, space.Drop, edm.CheckTableName(table), func(c *catalog.Catalog) (catalog.Change, error) {
		return c.Drop(table)
	})
	if err == nil {
		db.worker.Wake() // which removes the files
	}
	return err
}

// Tables lists at most limit tables, 0 for all, in the order of their folded names
// and beginning with from. The errors are store.ErrClosed and the error of ctx.
func (db *DB) Tables(ctx context.Context, from string, limit int) ([]store.TableInfo, error) {
	if err := db.checkRead(ctx); err != nil {
		return nil, err
	}
	return db.catalog.Load().List(from, limit), nil
}

// checkRead returns store.ErrClosed or the error of ctx.
func (db *DB) checkRead(ctx context.Context) error {
	if db.closed.Load() && ctx.Err() == nil {
		return store.ErrClosed
	}
	return ctx.Err()
}

// TableMeta returns a copy of the metadata of a table, nil if none was set. The
// errors are store.ErrTableNotFound, store.ErrClosed, the error of ctx, and an
// *edm.Error for an illegal name.
func (db *DB) TableMeta(ctx context.Context, table string) ([]byte, error) {
	if err := db.checkRead(ctx); err != nil {
		return nil, err
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

// SetTableMeta replaces the metadata of a table by a copy of meta, at most 64 KiB,
// as durably as Apply writes. The errors are store.ErrTableNotFound, an *edm.Error for an
// illegal name or too much metadata, and those of Apply.
func (db *DB) SetTableMeta(ctx context.Context, table string, meta []byte) error {
	refusal := cmp.Or(edm.CheckTableName(table), store.CheckMeta(table, len(meta)))
	return db.changeCatalog(ctx, space.Write, refusal, func(c *catalog.Catalog) (catalog.Change, error) { return c.SetMeta(table, meta) })
}

// AccountMeta returns a copy of the metadata of the account, nil if none was set.
// The errors are store.ErrClosed and the error of ctx.
func (db *DB) AccountMeta(ctx context.Context) ([]byte, error) {
	if err := db.checkRead(ctx); err != nil {
		return nil, err
	}
	return slices.Clone(db.catalog.Load().Account()), nil
}

// SetAccountMeta replaces the metadata of the account by a copy of meta, at most 64
// KiB, as durably as Apply writes. The errors are an *edm.Error for too much metadata, and
// those of Apply.
func (db *DB) SetAccountMeta(ctx context.Context, meta []byte) error {
	return db.changeCatalog(ctx, space.Write, store.CheckMeta("", len(meta)), func(c *catalog.Catalog) (catalog.Change, error) {
		return c.SetAccount(meta), nil
	})
}

// changeCatalog logs a change of the newest catalog and publishes the new catalog
// once the change is durable. use is that of the record. refusal is the error of the
// arguments, which comes after that of the state of the database.
func (db *DB) changeCatalog(ctx context.Context, use space.Use, refusal error, change func(*catalog.Catalog) (catalog.Change, error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := db.beginWrite(); err != nil {
		return err
	}
	defer db.endWrite()
	if refusal != nil {
		return refusal
	}
	if err := db.throttle(ctx, use); err != nil {
		return err
	}
	c := commitlog.NewCommit()
	var pending uint64
	err := db.withSpace(ctx, use, func() (err error) {
		c.Reset()
		c.Use = use
		pending, err = db.logCatalog(c, change)
		return err
	})
	if err != nil {
		return db.refuse(pending, err)
	}
	if err := db.waitCommit(c); err != nil {
		return err
	}
	db.gate.Committed(use)
	return nil
}

// logCatalog appends the change to the log, under catalogMu. A refusal comes with
// the sequence number it must wait for, 0 if it depends on durable state only.
func (db *DB) logCatalog(c *commitlog.Commit, change func(*catalog.Catalog) (catalog.Change, error)) (pending uint64, err error) {
	db.catalogMu.Lock()
	defer db.catalogMu.Unlock()
	before := db.logged.Load()
	pending = before.Pending(db.log.Published())
	ch, err := change(before.Catalog)
	if err != nil {
		return pending, err
	}
	for _, e := range ch.Put {
		key := codec.AppendKey(nil, catalog.TableID, e.Key.Partition, e.Key.Row)
		c.Put(key, codec.KeyHash(key), db.shapes.Of(e.Properties), e.Properties)
	}
	for _, k := range ch.Delete {
		key := codec.AppendKey(nil, catalog.TableID, k.Partition, k.Row)
		c.Delete(key, codec.KeyHash(key))
	}
	c.OnAppend = func(seq uint64) { db.logged.Store(&catalog.Logged{Catalog: ch.After, Seq: seq}) }
	// Snapshots see the catalog and the sequence number change together.
	c.OnApply = func(seq uint64) {
		db.drops.Add(ch.Dropped, seq, db.log.FinalSeq())
		db.catalog.Store(ch.After)
	}
	return pending, db.log.Append(c)
}

// isDropped reports whether no reader can see the rows of a table: it is not in the
// catalog, and no snapshot is older than its drop. Once true it stays true.
func (db *DB) isDropped(table uint32) bool {
	cat := db.catalog.Load()
	if table < catalog.FirstTableID || table >= cat.Next() || cat.Live(table) {
		return false
	}
	return db.drops.Seq(table) <= db.log.FinalSeq()
}
