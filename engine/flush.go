package engine

import (
	"context"
	"fmt"
	"path"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/arena"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/internal/memtable"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/wal"
)

// newSegment returns an empty segment in memory with room for a record of need
// bytes.
func (db *DB) newSegment(number, firstSeq uint64, highWater edm.Ticks, prevEnd, need int64) (*memSegment, error) {
	size := max(db.opts.SegmentBytes, wal.SegmentBytes(int(need)))
	memory, err := arena.New(int(size))
	if err != nil {
		return nil, fmt.Errorf("memory of segment %d: %w", number, err)
	}
	image := memory.Bytes()
	log, err := wal.New(wal.Header{
		DBID:      db.id,
		Number:    number,
		FirstSeq:  firstSeq,
		HighWater: uint64(highWater),
		PrevEnd:   prevEnd,
	}, image)
	if err != nil {
		memory.Free()
		return nil, err
	}
	seg := &memSegment{
		number:  number,
		memory:  memory,
		image:   image,
		table:   memtable.New(memtable.Options{Image: image}),
		log:     log,
		lastSeq: firstSeq - 1,
		shapes:  make(map[*codec.Shape]uint16),
	}
	seg.appliedSeq.Store(seg.lastSeq)
	return seg, nil
}

// rotateLocked freezes the active segment and opens the next one, with room for
// a record of need bytes. It touches memory only: the next segment's file is
// made by the leader that first writes to it, once this one is whole on disk.
func (db *DB) rotateLocked(need int64) error {
	old := db.log.active
	seg, err := db.newSegment(db.tree.NewNumber(), db.log.lastSeq+1, db.log.highWater, old.tail(), need)
	if err != nil {
		return err
	}
	db.replaceState(func(mems []*memSegment) []*memSegment {
		return append([]*memSegment{seg}, mems...)
	})
	db.log.active = seg
	db.kick()
	return nil
}

func (db *DB) walPath(number uint64) string { return path.Join(db.dir, walName(number)) }

func walName(number uint64) string { return fmt.Sprintf("%06d.wal", number) }

// openLog makes seg's file, so that seg can be written. Only a leader calls it,
// when everything before seg is durable.
func (db *DB) openLog(seg *memSegment) error {
	if seg.opened {
		return nil
	}
	if err := seg.log.Open(db.fs, db.walPath(seg.number), wal.CreateOptions{NoPreallocate: db.opts.inMemory()}); err != nil {
		return err
	}
	seg.opened = true
	if err := db.fs.SyncDir(db.dir); err != nil {
		return fmt.Errorf("sync directory after creating segment %d: %w", seg.number, err)
	}
	return nil
}

// noteApplied wakes the worker if seg has become ready to be flushed.
func (db *DB) noteApplied(seg *memSegment) {
	if s := db.state.Load(); s != nil && s.mems[0] != seg {
		db.kick()
	}
}

// flushable returns the frozen segments whose records are all applied, oldest
// first.
func (db *DB) flushable() []*memSegment {
	db.log.mu.Lock()
	defer db.log.mu.Unlock()
	if db.log.failed != nil {
		return nil
	}
	mems := db.state.Load().mems
	var out []*memSegment
	for i := len(mems) - 1; i > 0; i-- {
		if mems[i].appliedSeq.Load() != mems[i].lastSeq {
			break
		}
		out = append(out, mems[i])
	}
	return out
}

// flushStep writes every frozen memtable that is ready into sorted files and
// drops its segment.
func (db *DB) flushStep(ctx context.Context) (worked bool, err error) {
	segs := db.flushable()
	if len(segs) == 0 {
		return false, nil
	}
	tables := make([]*memtable.Table, len(segs))
	for i, s := range segs {
		// Without syncs on the way, the log up to here has to be on disk
		// before the next segment may vouch for it.
		if db.opts.NoSync {
			if err := db.syncFrozen(s); err != nil {
				return false, err
			}
		}
		tables[i] = s.table
	}
	last := segs[len(segs)-1]
	highWater, next := db.currentHighWater(), db.logAfter(last)
	job := db.tree.NewFlush(tables, func(m *manifest.Manifest) {
		m.LastSeq = last.lastSeq
		m.HighWater = uint64(highWater)
		m.Logs = dropLogs(m.Logs, last.number, next)
	})
	for done := false; !done; {
		if done, err = job.Step(ctx); err != nil {
			job.Abort()
			return false, fmt.Errorf("flush: %w", err)
		}
	}
	db.replaceState(func(mems []*memSegment) []*memSegment {
		return append([]*memSegment(nil), mems[:len(mems)-len(segs)]...)
	})
	return true, db.removeLogs(segs)
}

// dropLogs returns the logs behind number last. Next, which follows it, is
// always listed, so that what is older can be told from what is newer.
func dropLogs(logs []manifest.Log, last, next uint64) []manifest.Log {
	var kept []manifest.Log
	for _, l := range logs {
		if l.Number > last {
			kept = append(kept, l)
		}
	}
	if len(kept) == 0 || kept[0].Number != next {
		kept = append([]manifest.Log{{Number: next}}, kept...)
	}
	return kept
}

// logAfter returns the number of the segment that follows seg.
func (db *DB) logAfter(seg *memSegment) uint64 {
	mems := db.state.Load().mems
	for i := 1; i < len(mems); i++ {
		if mems[i] == seg {
			return mems[i-1].number
		}
	}
	panic("engine: flush of a segment that is not frozen")
}

func (db *DB) currentHighWater() edm.Ticks {
	db.log.mu.Lock()
	defer db.log.mu.Unlock()
	return db.log.highWater
}

// removeLogs removes the files of flushed segments. The manifest without them
// is durable: what a failure leaves is removed by the next open.
func (db *DB) removeLogs(segs []*memSegment) error {
	for _, s := range segs {
		if s.log != nil {
			if err := s.log.Close(); err != nil {
				return fmt.Errorf("close segment %d: %w", s.number, err)
			}
			if !s.opened {
				continue
			}
		}
		if err := db.fs.Remove(db.walPath(s.number)); err != nil {
			return fmt.Errorf("remove segment %d: %w", s.number, err)
		}
	}
	return nil
}

// Flush writes everything acknowledged so far into sorted files.
func (db *DB) Flush(ctx context.Context) error {
	if err := db.beginWrite(); err != nil {
		return err
	}
	defer db.writers.RUnlock()
	return db.flush(ctx)
}

func (db *DB) flush(ctx context.Context) error {
	if err := db.freeze(); err != nil {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := db.failure(); err != nil {
			return fmt.Errorf("%w: %w", store.ErrReadOnly, err)
		}
		if len(db.flushable()) == 0 {
			return nil
		}
		if _, err := db.step(ctx); err != nil {
			return err
		}
	}
}

// freeze opens the next segment, unless the active one is empty, and waits
// until the one before is durable and applied.
func (db *DB) freeze() error {
	db.log.mu.Lock()
	var err error
	if db.log.active.table.Len() > 0 || db.log.active.lastSeq > db.log.active.appliedSeq.Load() {
		err = db.rotateLocked(0)
	}
	db.log.mu.Unlock()
	if err != nil || db.opts.NoSync {
		return err
	}
	c := newCommit()
	db.barrier(c)
	return db.wait(c)
}

// Compact flushes and merges everything into one run, without what no reader
// can see any more.
func (db *DB) Compact(ctx context.Context) error {
	if err := db.beginWrite(); err != nil {
		return err
	}
	defer db.writers.RUnlock()
	if err := db.flush(ctx); err != nil {
		return err
	}
	w := &db.work
	w.stepping.Lock()
	defer w.stepping.Unlock()
	if w.merge != nil {
		w.merge.Abort()
		w.merge = nil
	}
	job := db.tree.NewFullCompaction()
	if job == nil {
		return nil
	}
	for done := false; !done; {
		var err error
		if done, err = job.Step(ctx); err != nil {
			job.Abort()
			return fmt.Errorf("compact: %w", err)
		}
	}
	db.replaceState(func(mems []*memSegment) []*memSegment { return mems })
	return nil
}
