// Package wal is the write-ahead log: checksummed records in numbered segments.
//
// A Segment is written by many goroutines that append to memory under the
// caller's log mutex, and by one leader at a time that writes and syncs for all
// of them. Records carry how far the file was known to be durable when they
// were made. Replay uses that to tell a torn tail, which is the end of the log,
// from damage to bytes that a sync had covered, which is a *corrupt.Error and
// never a shorter history.
//
// Rules that keep this true, and that the caller must follow:
//
//   - A segment number is never used twice in a database, not even when the
//     creation of a segment was cut short.
//   - The directory is synced after Create and before a record of the segment
//     counts as durable.
//   - Nothing is written to a segment before the previous one is synced to its
//     end, so that a record of the next segment proves the previous one complete.
//   - Nothing is appended to a segment that was replayed. Its unproven tail is
//     repaired, its end goes into the manifest, and a next segment is opened.
package wal
