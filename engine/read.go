package engine

import (
	"cmp"
	"context"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine/internal/catalog"
	"github.com/tablerock-db/tablerock/engine/internal/readstate"
	"github.com/tablerock-db/tablerock/store"
)

// Get returns a copy of the newest version of an entity, which the caller owns. The errors are store.ErrTableNotFound,
// store.ErrEntityNotFound, store.ErrCorrupt, store.ErrClosed, an error of the file system, the error of ctx, and an
// *edm.Error for an illegal table name.
func (db *DB) Get(ctx context.Context, table string, key edm.Key) (edm.Entity, error) {
	var e edm.Entity
	err := db.View(ctx, table, key, func(row edm.Row) error {
		e = edm.EntityOf(row)
		return nil
	})
	return e, err
}

// View calls read with the newest version of an entity, without a copy, and returns what read returns. The row is valid until
// read returns, and memory and files are kept as long. Other errors are those of Get. View allocates nothing.
func (db *DB) View(ctx context.Context, table string, key edm.Key, read func(edm.Row) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// Every applied entry is durable, so the newest one is the result and no
	// snapshot is needed.
	return db.viewAt(db.catalog.Load(), table, key, codec.MaxSeq, read)
}

// viewAt calls read with the newest version up to the sequence number snap, which is
// registered or codec.MaxSeq.
func (db *DB) viewAt(cat *catalog.Catalog, table string, key edm.Key, snap uint64, read func(edm.Row) error) error {
	if db.closed.Load() {
		return store.ErrClosed
	}
	info := cat.Lookup(table)
	if info == nil {
		return cmp.Or(edm.CheckTableName(table), store.ErrTableNotFound)
	}
	if edm.CheckKey(key) != nil {
		// No entity has such a key.
		return store.ErrEntityNotFound
	}
	return db.viewRow(cat, info.ID, key, snap, read)
}

// viewRow is viewAt of a legal key. A function with the returns of both has too many for the compiler to call its defers
// directly: gets need 2 % more CPU time (bench/peers, get/key=missing and get/key=present).
func (db *DB) viewRow(cat *catalog.Catalog, id uint32, key edm.Key, snap uint64, read func(edm.Row) error) error {
	v := readstate.TakeViewer()
	defer v.Put()
	v.Key = codec.AppendKey(v.Key[:0], id, key.Partition, key.Row)
	partHash, keyHash := codec.PartitionHash(v.Key), codec.KeyHash(v.Key)
	state := db.state.Pin(v.Shard)
	if state == nil {
		return store.ErrClosed
	}
	defer state.Unpin(v.Shard)
	// The rows of a dropped table are removed one file at a time, and an older version
	// may be there when the newest is not. A registered number keeps all of them.
	if now := db.catalog.Load(); snap == codec.MaxSeq && now != cat && !now.Live(id) {
		return store.ErrTableNotFound
	}
	row, err := state.Get(v.Key, partHash, keyHash, snap, &v.Mem, &v.Disk)
	defer v.Disk.Release()
	if err != nil {
		return err
	}
	if row == nil {
		return store.ErrEntityNotFound
	}
	return read(row)
}
