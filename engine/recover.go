package engine

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/arena"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/internal/memtable"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/wal"
)

// logFile is a segment found in the directory.
type logFile struct {
	number uint64
	info   wal.Info
	sealed int64 // its exact end, if the manifest knows it
}

// recover replays the log into memtables, makes sure that what it accepted is
// on disk, and starts the database with it.
//
// Bytes that a sync had covered are as they were. The rest of the newest
// segment may be in the page cache only: it is written again and synced before
// anybody can see it, and its end goes into the manifest, so that it is never
// judged again.
func (db *DB) recover(m *manifest.Manifest) error {
	files, next, err := db.findLogs(m)
	if err != nil {
		return err
	}
	r := &replay{db: db, lastSeq: m.LastSeq, highWater: edm.Ticks(m.HighWater), replay: wal.Replay}
	for i := range files {
		if err := r.segment(files, i); err != nil {
			r.free()
			return err
		}
	}
	if err := r.repair(); err != nil {
		r.free()
		return err
	}
	db.tree.SkipNumbers(next)
	if err := db.start(r.segs, r.lastSeq, r.highWater); err != nil {
		r.free()
		return err
	}
	if r.unclean {
		mems := db.state.Load().mems
		if err := db.listLogs(mems); err != nil {
			return err
		}
	}
	if err := db.loadCatalog(); err != nil {
		return err
	}
	return db.removeStale(m)
}

// findLogs returns the finished segments that the manifest has not done with,
// oldest first, and the first number that no segment has used.
func (db *DB) findLogs(m *manifest.Manifest) (files []logFile, next uint64, err error) {
	names, err := db.fs.List(db.dir)
	if err != nil {
		return nil, 0, fmt.Errorf("list directory: %w", err)
	}
	sealed := make(map[uint64]int64)
	for _, l := range m.Logs {
		sealed[l.Number] = l.Sealed
		next = max(next, l.Number)
	}
	present := make(map[uint64]bool)
	for _, name := range names {
		number, ok := fileNumber(name, ".wal")
		if !ok || len(m.Logs) > 0 && number < m.Logs[0].Number {
			continue
		}
		info, err := wal.Inspect(db.fs, path.Join(db.dir, name), db.id, number)
		if errors.Is(err, wal.ErrNewerFormat) {
			return nil, 0, fmt.Errorf("%w: %w", store.ErrNewerFormat, err)
		}
		next = max(next, number)
		if errors.Is(err, wal.ErrUnfinished) && sealed[number] == 0 {
			continue
		}
		if err != nil {
			return nil, 0, fmt.Errorf("inspect log: %w", err)
		}
		present[number] = true
		files = append(files, logFile{number: number, info: info, sealed: sealed[number]})
	}
	for _, l := range m.Logs {
		if l.Sealed > 0 && !present[l.Number] {
			return nil, 0, corrupt.Newf(walName(l.Number), 0, "segment is missing, the log is sealed at %d", l.Sealed)
		}
	}
	slices.SortFunc(files, func(a, b logFile) int { return int(int64(a.number - b.number)) })
	return files, next + 1, nil
}

// replay gathers what the segments hold.
type replay struct {
	db        *DB
	segs      []*memSegment
	ends      []wal.End
	lastSeq   uint64
	highWater edm.Ticks
	unclean   bool
	replay    func(vfs.FS, string, wal.ReplayOptions, []byte, func(wal.RecordView) error) (wal.Header, wal.End, error)
}

func (r *replay) free() {
	for _, s := range r.segs {
		s.memory.Free()
	}
}

// segment replays files[i].
func (r *replay) segment(files []logFile, i int) error {
	f := &files[i]
	name := walName(f.number)
	if f.info.Header.FirstSeq != r.lastSeq+1 {
		return corrupt.Newf(name, 40, "segment begins at sequence %d, want %d", f.info.Header.FirstSeq, r.lastSeq+1)
	}
	o := wal.ReplayOptions{DBID: r.db.id, Number: f.number, Sealed: f.sealed}
	if i+1 < len(files) {
		o.Proven = files[i+1].info.Header.PrevEnd
		for _, later := range files[i+1:] {
			if later.info.Records {
				o.NextSeq = files[i+1].info.Header.FirstSeq
				break
			}
		}
	}
	memory, err := arena.New(int(max(f.info.Bytes, wal.SegmentBytes(0))))
	if err != nil {
		return fmt.Errorf("memory of %s: %w", name, err)
	}
	seg := &memSegment{number: f.number, memory: memory, image: memory.Bytes()}
	seg.table = memtable.New(memtable.Options{Image: seg.image})
	r.segs = append(r.segs, seg)
	e := entries{name: name, seg: seg, highWater: edm.Ticks(f.info.Header.HighWater)}
	_, end, err := r.replay(r.db.fs, path.Join(r.db.dir, name), o, seg.image, e.apply)
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	seg.end = end.Offset
	seg.lastSeq = end.LastSeq
	seg.appliedSeq.Store(end.LastSeq)
	r.ends = append(r.ends, end)
	r.lastSeq = end.LastSeq
	r.highWater = max(r.highWater, e.highWater)
	if f.sealed == 0 && !(end.Sealed && end.Proven == end.Offset) {
		r.unclean = true
	}
	return nil
}

// repair makes the last segment's unproven tail durable. Earlier segments were
// whole on disk before the next one began.
func (r *replay) repair() error {
	for i, s := range r.segs {
		if r.ends[i].Proven >= r.ends[i].Offset {
			continue
		}
		if err := wal.Repair(r.db.fs, r.db.walPath(s.number), s.image, r.ends[i]); err != nil {
			return fmt.Errorf("repair: %w", err)
		}
	}
	return nil
}

// entries puts the entries of one segment's records into its memtable.
type entries struct {
	name      string
	seg       *memSegment
	shapes    []*codec.Shape // by id - 1
	highWater edm.Ticks
}

func (e *entries) apply(rec wal.RecordView) error {
	seq := rec.FirstSeq
	rest := rec.Payload
	for len(rest) > 0 {
		off := rec.PayloadOff + int64(len(rec.Payload)-len(rest))
		entry, n, err := codec.DecodeEntry(rest)
		if err != nil {
			return corrupt.Newf(e.name, off, "entry: %v", err)
		}
		if err := e.check(entry); err != nil {
			return corrupt.Newf(e.name, off, "entry: %v", err)
		}
		if entry.Kind != codec.KindShape {
			e.seg.table.Apply(uint32(off), seq, 0)
			e.highWater = max(e.highWater, entry.Timestamp)
			seq++
		}
		rest = rest[n:]
	}
	if seq != rec.FirstSeq+uint64(rec.Count) {
		return corrupt.Newf(e.name, rec.PayloadOff, "record of %d entries holds %d", rec.Count, seq-rec.FirstSeq)
	}
	return nil
}

// check holds an entry against everything that reading it relies on.
func (e *entries) check(entry codec.Entry) error {
	switch entry.Kind {
	case codec.KindShape:
		shape, rest, err := codec.DecodeShape(entry.Values)
		if err != nil {
			return err
		}
		if len(rest) > 0 || int(entry.Shape) != len(e.shapes)+1 {
			return fmt.Errorf("definition of shape %d after %d shapes, with %d bytes behind it", entry.Shape, len(e.shapes), len(rest))
		}
		e.shapes = append(e.shapes, shape)
		e.seg.table.AddShape(entry.Shape, shape)
		return nil
	case codec.KindPut:
		if entry.Shape == 0 || int(entry.Shape) > len(e.shapes) {
			return fmt.Errorf("shape %d of %d", entry.Shape, len(e.shapes))
		}
		if err := codec.CheckValues(e.shapes[entry.Shape-1], entry.Wide, entry.Values); err != nil {
			return err
		}
	case codec.KindDelete:
	}
	return codec.CheckKey(entry.Key)
}

// removeStale removes segments that the manifest has done with: an earlier
// life was cut short before it removed them.
func (db *DB) removeStale(m *manifest.Manifest) error {
	names, err := db.fs.List(db.dir)
	if err != nil {
		return fmt.Errorf("list directory: %w", err)
	}
	for _, name := range names {
		number, ok := fileNumber(name, ".wal")
		if !ok || len(m.Logs) == 0 || number >= m.Logs[0].Number {
			continue
		}
		// Only what carries our id is ours to remove.
		if _, err := wal.Inspect(db.fs, path.Join(db.dir, name), db.id, number); err != nil {
			continue
		}
		if err := db.fs.Remove(path.Join(db.dir, name)); err != nil {
			return fmt.Errorf("remove stale segment: %w", err)
		}
	}
	return nil
}
