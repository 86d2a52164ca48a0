package engine

// Locks of the engine and of the packages below it, outermost first. While a
// goroutine holds a lock it may take only locks further down. The packages do not
// repeat this list.
//
//	DB.writers               (shared) a call that writes; (exclusive) Close
//	worker.compactSem        one Compact
//	worker.stepMu            one step of background work; files are written
//	DB.catalogMu             one change of the catalog is logged
//	DB.partitionLocks        the ops of a batch are resolved and logged; files may
//	                         be read. A batch takes one, several upserts of ApplyBatches
//	                         theirs, an install of Load all.
//	noSync.reserveMu           NoSync: raising the reserved time stamps; the manifest
//	                         is written
//	Log.fileMu               writing or dropping a segment without a group
//	Tree.jobsMu              choosing a flush or compaction; files may be read; calls
//	                         lsm.Options.Snapshots and Dropped, which the steps call
//	                         without it
//	Tree.mu                  the manifest is written; calls
//	                         lsm.Options.ProvenLogs
//	Log.mu                   appending to the log: memory, and at times the free space of
//	                         the volume (Options.Admit) and new memory of a segment
//	Log.applyMu              applying records, registering a reader; memory only
//	readstate.Current.mu     replacing the read state; memory only
//	memtable directory.mu    finding and adding partitions of a memtable
//	memtable shard.mu        the rows of partitions
//	lsm file.openMu          reading footer and index of an sstable at its first use
//
// The rest are leaves, held for a few instructions but for those of package arena, under
// which the system maps memory or makes it resident, and space.Reserve.mu and
// trash.Trash.mu, under which files are created and removed: overlayShard.mu, registry.mu,
// spareMemory.mu with arena.Memory.mu below it, catalog.Drops.mu, stall.Counter.mu, worker.mu, Archiver.mu and, taken without
// another lock, Archiver.stepMu above it, Tree.countersMu,
// codec.ShapeList.mu, the shards of the cache with slabs.mu and the free slabs of package
// arena below them, the locks of vfs.Mem and those of vfs/internal/disk.
//
// Leading a group and applying groups in order are waits, not locks: do not wait
// while holding Log.mu or a lock below it. Readers take no lock of this package: a
// point read takes a memtable shard and a cache shard, one after the other, and a
// query takes Log.applyMu once to register, and once more to note an empty range.
