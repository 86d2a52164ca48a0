// Package commitlog is the commit pipeline: it appends records to the
// write-ahead log, syncs the log for groups of writers, and applies the records
// to the memtables in log order.
//
// A Segment is one file of the log, the memory that mirrors the file byte for
// byte, and the memtable that indexes this memory.
//
// # A commit
//
// The writer encodes its entries into a Commit without a lock of this package. Then:
//
//	Append:                                   // the writer
//	  lock Log.mu
//	    Commit.Guard                          // may refuse
//	    assign sequence numbers and Timestamps, copy the record into the
//	      active segment's memory             // assigned = Log.lastSeq
//	    add the commit to the overlay, for other writers
//	    add the commit to the queue
//	    if no goroutine leads, and Commit.Deferred is not set: make this one the leader
//	  unlock Log.mu
//
//	Wait:                                     // the same writer
//	  if Commit.Deferred: unset it, and if the commit is in the queue and no goroutine
//	    leads: make this one the leader
//	  loop
//	    receive from Commit.wake
//	    if the commit is finished: return Commit.err
//	    leadGroup
//
//	leadGroup:                                // the leader
//	  Gosched
//	  lock Log.mu; group = queue; queue = empty; unlock Log.mu
//	  write and sync the segments of the group, oldest first   // synced
//	  lock Log.mu
//	    if that failed: fail the log, add the queue to the group
//	    if the queue has a commit that is not deferred: wake the first one as the leader
//	    else: nobody leads
//	  unlock Log.mu
//	  lock Log.applyMu
//	    for each commit of the group:
//	      wait until all earlier records are applied
//	      insert its entries into the memtable                 // applied
//	      publish the sequence number                          // published
//	    remove the group from the overlay
//	  unlock Log.applyMu
//	  wake every commit of the group, finished
//
// # Invariants
//
// published <= applied <= synced <= assigned, where
//   - assigned is Log.lastSeq. Append raises it under Log.mu.
//   - synced is the last sequence number of the groups whose sync succeeded.
//     Only the leader syncs, so groups become durable in log order.
//   - applied is Log.applied. Former leaders raise it under Log.applyMu, one
//     record at a time in log order, each for its own group.
//     Install raises assigned, applied and published at once.
//   - published is Log.published, stored right after applied, for readers that
//     do not hold Log.applyMu.
//
// So readers never see an entry that a crash could take back. Writers must see
// such entries, because a condition depends on the newest version: the overlay
// has the records that are assigned and not applied, except changes of the catalog,
// which writers see in DB.logged. A refusal that was computed from it is held back
// until the record is durable (WaitDurable).
//
// Log.empty are ranges of keys that have no entity at applied. A query adds a range under
// Log.applyMu if nothing was applied since it registered. A put or an install ends it before
// it is published, and a reader gets those of the moment in which it registers.
//
// A group syncs a segment as a whole before it writes to the next one, because
// the header of a segment states that the segment before it is complete, unless
// the log is in NoSync mode.
//
// After the first failed write or sync the log accepts no record. The outcome of
// every record that waits is unknown: it may be on disk.
//
// # Leadership
//
// At most one goroutine leads. It passes the leadership on after its sync and
// before it applies its group, so that the next sync overlaps with applying. Log
// order is kept nevertheless: applyGroup waits on applyCond for the group before.
//
// The leader calls Gosched before it takes the queue, so that writers that are
// ready to run append first and share its sync. Without it groups are small when
// there are fewer processors than writers.
//
// A goroutine that appends several commits before it waits defers them: it may be blocked
// by another that waits for the log, and must not be the leader then. Every other commit
// and barrier that comes meanwhile leads, with the deferred ones in its group.
//
// Commit.wake has space for one signal and never needs more. A signal is sent
// only to a commit in the queue, to make it the leader, or to a commit of a
// group, because it is finished. Only the leader takes commits out of the queue,
// and a commit that was told to lead has received that signal before it takes
// its own group. So senders never block, also not under Log.mu.
//
// # NoSync
//
// In NoSync mode Append applies and publishes the record before it returns, and
// nobody leads or waits: published = applied = assigned, and synced is behind.
// The overlay is empty. WriteBehind writes what has gathered, in order and without a sync, and
// the header of a segment does not state that the one before is complete. A crash can tear any
// segment that is not flushed; recovery then ends the log there, so that it loses a suffix only.
// SyncSegments syncs whole segments in order, for a checkpoint and for the archive. Because a
// Timestamp must never be given out twice, also not after a crash that loses its record, the
// manifest states in advance which Timestamps may have been given out (Options.Reserve).
//
// The order of locks is in docs/design.md.
package commitlog
