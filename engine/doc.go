// Package engine is the storage engine: an append-only, log-structured store of
// typed entities that implements store.Store over one directory.
//
// # The life of a write
//
// Apply checks the operations and encodes them outside all locks. In the turn of
// their partition, conditions are looked up and merges resolved; then, under the
// log mutex, the record gets its sequence numbers and time stamps and is copied
// into the memory that mirrors the log. The first waiter becomes the leader: it
// writes and syncs for everyone who has come by then. What is durable is applied
// to the memtable in the order of the log, and only then revealed. Nothing that
// a crash could take back is ever read: writers find it in the overlay, readers
// do not look there.
//
// A full log segment is frozen together with its memtable. The background work
// writes frozen memtables into sorted files (package lsm) and drops the segment
// once the manifest lists the files.
//
// # Locks
//
// Outermost first; a lock is taken only while holding locks above it.
//
//	DB.writers        held for reading by every writing call, for writing by Close
//	worker.compacting one Compact
//	worker.stepping   one step of background work; files are written under it
//	DB.catalogTurn    the turn of the catalog
//	DB.turns          the turn of a partition; a batch holds one
//	commitlog.Log     the order of the log, then that of applying; memory only
//	currentState   replacing the read state
//	droppedTables.mu, worker.mu   leaves
//
// A reader takes no lock of this package for a point read, and for a query that
// of applying once.
package engine
