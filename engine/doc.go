// Package engine is the embedded storage engine: a log-structured merge tree of
// typed entities that implements store.Store over one directory.
//
//	db, err := engine.Open("data", engine.Options{})
//	if err != nil {
//		return err
//	}
//	defer db.Close()
//
// A DB is one storage account: a set of tables, whose entities are ordered by
// PartitionKey and RowKey. Package store describes the operations and their
// errors, package edm the entities, package filter the conditions of a query.
//
// # Durability
//
// When a write returns nil it is on stable storage, and no crash takes it back.
// Concurrent writers share one sync of the write-ahead log. Readers see a write
// only when it is durable. After a failed write or sync of the log the database
// refuses writes (store.ErrReadOnly) until it is opened again; reads continue.
// Options.NoSync gives durability up for speed.
//
// Every byte that is read from disk is verified by a checksum. Damage is an error
// (store.ErrCorrupt) that names file and offset.
//
// # Isolation
//
// Apply is atomic and serializable within its partition. Get and View return the
// newest durable version. A query, and everything read from one Snapshot, is of one
// instant across all tables and partitions.
//
// # Resources
//
// One process opens a directory for writing at a time; others can open it with
// Options.ReadOnly. A DB has a background goroutine for flushes and compactions, and one
// for Options.Archive. It takes Options.MemoryBytes of memory: up to five segments of
// Options.SegmentBytes, and the block cache, which databases of a process can share; an
// archive takes that of one more segment. Close cursors soon, which keep memory and files,
// and snapshots, which keep old versions on disk.
package engine
