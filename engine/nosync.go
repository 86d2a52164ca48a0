package engine

import "fmt"

// writeChunk is how much NoSync mode gathers before it hands it to the file
// system.
const writeChunk = 1 << 20

// writeBehind hands what has gathered in the active segment to the file system,
// without a sync. Only one writer does it at a time; the others go on.
func (db *DB) writeBehind() error {
	db.log.mu.Lock()
	seg := db.log.active
	tail := seg.log.Tail()
	db.log.mu.Unlock()
	if tail-seg.written.Load() < writeChunk || !db.out.TryLock() {
		return nil
	}
	defer db.out.Unlock()
	// A segment vouches for the one before it, so that must be on disk first:
	// the flush sees to it.
	for _, m := range db.state.Load().mems[1:] {
		if m.log != nil && m.log.Synced() < m.log.Tail() {
			return nil
		}
	}
	err := db.openLog(seg)
	if err == nil {
		err = seg.log.Write(tail)
	}
	if err != nil {
		return db.fail(err)
	}
	seg.written.Store(tail)
	return nil
}

// syncFrozen makes a whole segment durable in NoSync mode.
func (db *DB) syncFrozen(seg *memSegment) error {
	if seg.log == nil {
		return nil
	}
	db.out.Lock()
	defer db.out.Unlock()
	err := db.openLog(seg)
	if err == nil {
		err = seg.log.Sync(seg.log.Tail())
	}
	if err != nil {
		return db.fail(err)
	}
	return nil
}

// fail makes a failure of the log sticky.
func (db *DB) fail(cause error) error {
	db.log.mu.Lock()
	defer db.log.mu.Unlock()
	if db.log.failed == nil {
		db.failLocked(nil, cause)
	}
	return fmt.Errorf("write log: %w", cause)
}
