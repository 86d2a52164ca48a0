// Package wal implements segments of a write-ahead log: numbered files of
// checksummed records. It serves Tablerock's engine; its API is not stable.
//
// Many goroutines append to the memory of a Segment under the caller's log mutex.
// One goroutine at a time, the leader, writes and syncs the file for all of them.
// Each record states up to which offset the file was durable when the record was
// appended. Replay uses that to tell a torn tail, which is the end of the log, from
// damage to synced bytes, which is a *corrupt.Error and never a shorter log.
//
// The caller must follow these rules:
//
//   - Never use a segment number twice in a database, not even if the creation of
//     its segment was interrupted.
//   - Sync the directory after Open and before you treat a record of the segment as
//     durable.
//   - Sync a segment to its end before you write to the next one, so that a record
//     of the next segment proves this one complete. If you do not, let PrevEnd of the next
//     header be PrevUnknown, sync no segment before those before it are complete and synced,
//     and set ReplayOptions.NextSeq only if something proves that this segment was.
//   - Do not append to a replayed segment. Repair its unproven tail, record its end
//     in the manifest, and open the next segment.
package wal
