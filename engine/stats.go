package engine

import (
	"context"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine/internal/tablestats"
	"github.com/tablerock-db/tablerock/store"
)

// Stats describes a database at one time, and what it has done since Open.
type Stats struct {
	Tables int
	// Entities is exact if nothing was overwritten or deleted since the last
	// Compact and no compaction is under way, and an estimate otherwise.
	Entities      int64
	SSTables      int
	SSTableBytes  int64
	WALBytes      int64 // records in the log that are not flushed
	MemtableBytes int64 // memory of the memtables and of the log
	// Memtables has the parts of MemtableBytes and WALBytes by segment of the log, oldest first.
	Memtables    []struct{ Segment, Rows, Bytes, LogBytes int64 }
	LastSequence uint64 // sequence number of the newest visible write
	// Epoch counts the histories of the database: 0 until it is restored or another
	// owner takes it over.
	Epoch uint64
	// RunsMax is the read amplification: the most runs that can have one key.
	RunsMax int
	// SpaceAmp is the space amplification: the size of the sstables divided by an
	// estimate of their size after Compact; 1 without sstables.
	SpaceAmp float64

	// ReserveBytes is the disk space that is kept for a full disk. DiskFull reports that
	// only deletes and drops of tables are accepted, because the disk is full.
	ReserveBytes int64
	DiskFull     bool

	// ArchiveWaiting chunks of ArchiveWaitingBytes are not archived yet. ArchiveFailures
	// counts failed attempts since Open. Archived is the Timestamp of the last write archived
	// since Open, 0 if there was none.
	ArchiveWaiting      int
	ArchiveWaitingBytes int64
	ArchiveFailures     uint64
	Archived            edm.Ticks

	// LogBytesWritten and LogSyncs count the bytes written to the log since Open
	// and the syncs of its files.
	LogBytesWritten int64
	LogSyncs        uint64
	// Flushes and Compactions count those since Open that wrote files, and the
	// bytes of these files. An install of Load is a flush. CompactionBytesRead is an estimate.
	Flushes, Compactions                                           uint64
	FlushBytesWritten, CompactionBytesRead, CompactionBytesWritten int64
	// Stalls counts the times since Open in which writers waited for flushes or
	// compactions, one however many writers waited. StallTime is how long they
	// took, with the one under way.
	Stalls    uint64
	StallTime time.Duration
	// CacheHits and CacheMisses count look-ups in the block cache since it was
	// made. Databases that share a cache have the same counts.
	CacheHits, CacheMisses uint64
}

// Stats returns the current figures. It takes time in proportion to the number of
// sstables, and does not wait for a write or sync under way. The only error is
// store.ErrClosed.
func (db *DB) Stats() (Stats, error) {
	snap := db.newSnapshot()
	if snap == nil {
		return Stats{}, store.ErrClosed
	}
	defer snap.release()
	t := snap.state.Version.Stats()
	s := Stats{
		Tables:       snap.catalog.Len(),
		SSTables:     t.Files,
		SSTableBytes: t.Bytes,
		LastSequence: snap.seq,
		Epoch:        t.Epoch,
		RunsMax:      t.RunsMax,
		SpaceAmp:     t.SpaceAmp,
		Entities:     int64(t.Entries) - 2*int64(t.Tombstones),
	}
	m := snap.state.MemStats()
	s.MemtableBytes, s.WALBytes, s.Memtables, s.Entities = m.Bytes, m.LogBytes, m.Each, s.Entities+m.Rows
	s.ReserveBytes, s.DiskFull = db.gate.Reserve.Bytes(), db.gate.Full()
	// Without those of the catalog.
	s.Entities = max(0, s.Entities-int64(snap.catalog.Entities()))
	c := db.tree.Counters()
	s.Flushes, s.FlushBytesWritten = c.Flushes, c.FlushedBytes
	s.Compactions, s.CompactionBytesRead, s.CompactionBytesWritten = c.Compactions, c.ReadBytes, c.CompactedBytes
	s.LogBytesWritten, s.LogSyncs = db.log.Counters()
	a := db.archive.Stats()
	s.ArchiveWaiting, s.ArchiveWaitingBytes, s.ArchiveFailures, s.Archived = a.Chunks, a.Bytes, a.Failures, a.Archived
	s.Stalls, s.StallTime = db.stalls.Read(db.opts.Testing.Clock.Now())
	cache := db.cache.Stats()
	s.CacheHits, s.CacheMisses = cache.Hits, cache.Misses
	return s, nil
}

// TableStats returns the figures of all tables, sorted by their folded names. It reads the
// indexes of sstables, the rows of memtables, and the blocks at the ends of a table.
func (db *DB) TableStats(ctx context.Context) ([]store.TableStats, error) {
	if snap := db.newSnapshot(); snap != nil {
		defer snap.release()
		return tablestats.Of(ctx, snap.state, snap.seq, snap.catalog)
	}
	return nil, store.ErrClosed
}
