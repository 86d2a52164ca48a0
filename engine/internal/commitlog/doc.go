// Package commitlog is the order of all commits: it takes encoded entries, gives
// them their place in the write-ahead log, makes them durable for whole groups
// of writers at a time, and then applies them to the memtables in the order of
// the log.
//
// A Segment is a segment of the log, the memory that mirrors it byte for byte,
// and the memtable that indexes that memory; the three are born, frozen and
// dropped together.
//
// Nothing is revealed before it is durable. What is in the log and not yet
// durable is in the overlay, which only writers ask (Pending); a refusal
// computed from it waits (Settle). After the first failed write or sync the log
// takes nothing more, and what was waiting has an unknown outcome.
//
// Locks, outermost first: Log.out, Log.mu, Log.applyMu, then the leaves
// overlayShard.mu and registry.mu. Being a group's leader, and applying groups
// in their order, are waits, which nobody enters while holding Log.mu.
package commitlog
