// Package recovery replays the log of a database into memtables.
package recovery

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path"
	"slices"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine/internal/commitlog"
	"github.com/tablerock-db/tablerock/engine/internal/space"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/wal"
)

// Log is a replayed log.
type Log struct {
	Segments  []*commitlog.Segment // oldest first
	LastSeq   uint64
	HighWater edm.Ticks
	// Next is above the numbers of all segments.
	Next uint64
	// Unlisted says that the manifest does not list the end of a segment with
	// records.
	Unlisted bool
	// Lost has the numbers of the segments behind a torn one. A crash in NoSync mode left them.
	Lost []uint64

	fs   vfs.FS
	dir  string
	dbid [16]byte
	ends []wal.End
}

// Mode says how a log is read.
type Mode uint8

// The modes.
const (
	// Own is for the holder of the database's lock.
	Own Mode = iota
	// Idle is for a reader while nobody holds the lock. It syncs the segments
	// first, so that it shows nothing that a crash could take back.
	Idle
	// Beside is for a reader beside a live writer. It reads only records that a
	// sync is known to have covered. Call AwaitProof first.
	Beside
)

// maxReach is how far the number of an unfinished segment can be above the known
// numbers. A file with a higher number is not ours and must not use up numbers.
const maxReach = 1 << 32

// firstNumber returns the number for the first segment of a new database. It is
// above those of segments without records that an interrupted creation left, which
// recovery then ignores.
func firstNumber(fsys vfs.FS, dir string) (uint64, error) {
	names, err := fsys.List(dir)
	if err != nil {
		return 0, err
	}
	first := uint64(1)
	for _, name := range names {
		if kind, number := filename.Parse(name); kind == filename.WAL {
			if number > maxReach {
				return 0, fmt.Errorf("%w: it holds %q and no %s", store.ErrNotDatabase, name, filename.Manifest)
			}
			first = max(first, number+1)
		}
	}
	return first, nil
}

// ReadOrCreate returns the manifest of the database in dir, for a writer. If there is none, it
// writes the first one, of a database whose id it reads from random.
func ReadOrCreate(fsys vfs.FS, dir string, random io.Reader) (*manifest.Manifest, error) {
	m, err := manifest.Read(fsys, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return create(fsys, dir, random)
	}
	if err == nil {
		err = checkWritable(fsys, dir)
	}
	return m, err
}

// create writes the first manifest of a database in dir, whose id it reads from random. The
// first segment is created later, so no write is acknowledged before the manifest is durable.
func create(fsys vfs.FS, dir string, random io.Reader) (*manifest.Manifest, error) {
	first, err := firstNumber(fsys, dir)
	if err != nil {
		return nil, err
	}
	m := &manifest.Manifest{NextFile: first + 1, Logs: []manifest.Log{{Number: first}}}
	if _, err := io.ReadFull(random, m.DBID[:]); err != nil {
		return nil, fmt.Errorf("draw the database's id: %w", err)
	}
	if parent := path.Dir(path.Clean(dir)); parent != dir {
		if err := fsys.SyncDir(parent); err != nil {
			return nil, fmt.Errorf("sync parent directory: %w", err)
		}
	}
	if err := manifest.Write(fsys, dir, m); err != nil {
		return nil, fmt.Errorf("create: %w", err)
	}
	return m, nil
}

// Read replays the segments that the manifest m does not call flushed. After an
// error no memory is held.
func Read(fsys vfs.FS, dir string, m *manifest.Manifest, mode Mode) (*Log, error) {
	if t := edm.Ticks(m.HighWater); !t.Valid() {
		return nil, corrupt.Newf(filename.Manifest, 48, "high-water mark of %d ticks", t)
	}
	l := &Log{fs: fsys, dir: dir, dbid: m.DBID, LastSeq: m.LastSeq, HighWater: edm.Ticks(m.HighWater)}
	if mode != Beside {
		// A process that was killed may have left directory entries, of the manifest
		// above all, that only the page cache has. Nothing may be removed or shown
		// that depends on one.
		if err := fsys.SyncDir(dir); err != nil {
			return nil, fmt.Errorf("sync directory: %w", err)
		}
	}
	files, err := l.find(m)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(files) && err == nil && len(l.Lost) == 0; i++ {
		if mode == Idle {
			err = syncFile(fsys, path.Join(dir, filename.Make(filename.WAL, files[i].number)))
		}
		if err == nil {
			err = l.segment(files, i, mode)
		}
	}
	if err != nil {
		l.Free()
		return nil, err
	}
	if l.LastSeq >= wal.MaxSeq {
		l.Free()
		return nil, corrupt.Newf(filename.Manifest, 56, "sequence %d is the last one: no record can follow", l.LastSeq)
	}
	return l, nil
}

const (
	// maxProofWait is longer than a writer takes to seal an idle log.
	maxProofWait = 300 * time.Millisecond
	// The first pause is about the time of a commit; later ones double.
	firstProofWait = 5 * time.Millisecond
)

// AwaitProof waits until the records that the log of a live writer has now are known to be
// durable, so that Read finds what was acknowledged before. It waits at most maxProofWait,
// because the writer can have stopped or failed, and then returns false: Read may not find the
// newest acknowledged writes. after is that of engine.Clock.
func AwaitProof(fsys vfs.FS, dir string, after func(time.Duration, func()) (stop func() bool)) bool {
	var number uint64
	var seen int64
	for waited, pause := time.Duration(0), firstProofWait; waited < maxProofWait; waited, pause = waited+pause, 2*pause {
		// An error can be due to the writer, which changes the files. Read returns any other.
		if n, end, proven, err := lastRecords(fsys, dir); err == nil {
			if number == 0 {
				number, seen = n, end
			}
			// A record of a later segment proves all before it, unless the writer does not sync.
			if n != number || proven >= seen {
				return true
			}
		}
		fired := make(chan struct{})
		after(pause, func() { close(fired) })
		<-fired
	}
	return false
}

// lastRecords returns the number of the last segment with records, 0 if there is none, the
// end of its records, and the offset up to which they are known to be durable.
func lastRecords(fsys vfs.FS, dir string) (number uint64, end, proven int64, err error) {
	m, err := manifest.Read(fsys, dir)
	if err != nil {
		return 0, 0, 0, err
	}
	l := &Log{fs: fsys, dir: dir, dbid: m.DBID}
	files, err := l.find(m)
	if err != nil {
		return 0, 0, 0, err
	}
	i := len(files) - 1
	for i >= 0 && !files[i].info.Records {
		i--
	}
	if i < 0 {
		return 0, 0, 0, nil
	}
	f := &files[i]
	end, proven, err = wal.Unproven(fsys, path.Join(dir, filename.Make(filename.WAL, f.number)), m.DBID, f.number)
	if proven = max(proven, f.known.Proven, f.known.Sealed); i+1 < len(files) {
		proven = max(proven, files[i+1].info.Header.PrevEnd) // PrevUnknown proves nothing
	}
	return f.number, end, proven, err
}

// Free frees the memory of the segments. A nil Log has none.
func (l *Log) Free() {
	if l == nil {
		return
	}
	for _, s := range l.Segments {
		s.Free()
	}
}

// Repair makes records durable that no sync is known to have covered. It writes
// them again, because the page cache may show bytes that never reached the disk.
// Call it with the lock, before a reader sees the records.
func (l *Log) Repair() error {
	for i, s := range l.Segments {
		if err := wal.Repair(l.fs, path.Join(l.dir, filename.Make(filename.WAL, s.Number)), s.Image(), l.ends[i]); err != nil {
			return fmt.Errorf("repair: %w", err)
		}
	}
	return nil
}

// syncFile syncs a file. Windows syncs only one that is open for writing, which a user who may
// only read cannot open.
func syncFile(fsys vfs.FS, name string) error {
	f, err := fsys.OpenReadWrite(name)
	if err != nil {
		f, err = fsys.Open(name)
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// file is a segment found in the directory.
type file struct {
	number uint64
	info   wal.Info
	known  manifest.Log // its entry in the manifest, if any
}

// find returns the finished segments that the manifest does not call flushed, oldest
// first.
func (l *Log) find(m *manifest.Manifest) (files []file, err error) {
	names, err := l.fs.List(l.dir)
	if err != nil {
		return nil, fmt.Errorf("list directory: %w", err)
	}
	listed := make(map[uint64]manifest.Log)
	for _, known := range m.Logs {
		listed[known.Number] = known
		l.Next = max(l.Next, known.Number+1)
	}
	present := make(map[uint64]bool)
	var unfinished, irregular []uint64
	for _, name := range names {
		kind, number := filename.Parse(name)
		if kind != filename.WAL || len(m.Logs) > 0 && number < m.Logs[0].Number {
			continue
		}
		info, err := wal.Inspect(l.fs, path.Join(l.dir, name), l.dbid, number)
		known := listed[number]
		switch {
		case errors.Is(err, wal.ErrUnfinished) && known.Sealed == 0 && known.Proven == 0:
			unfinished = append(unfinished, number)
			continue
		case errors.Is(err, vfs.ErrNotRegular):
			irregular = append(irregular, number)
			continue
		}
		l.Next = max(l.Next, number+1)
		if err != nil {
			return nil, fmt.Errorf("inspect log: %w", err)
		}
		present[number] = true
		files = append(files, file{number: number, info: info, known: known})
	}
	reach := max(l.Next, m.NextFile) + maxReach
	for _, number := range irregular {
		if number < reach {
			return nil, corrupt.Newf(filename.Make(filename.WAL, number), 0, "not a regular file, but named like a segment")
		}
	}
	for _, known := range m.Logs {
		if end := max(known.Sealed, known.Proven); end > 0 && !present[known.Number] {
			return nil, corrupt.Newf(filename.Make(filename.WAL, known.Number), 0, "segment is missing, the manifest knows it up to %d", end)
		}
	}
	for _, number := range unfinished {
		if number < reach {
			l.Next = max(l.Next, number+1)
		}
	}
	if next := max(l.Next, m.NextFile); next > wal.MaxNumber {
		return nil, corrupt.Newf(filename.Manifest, 40, "next number is %d: no segment can follow", next)
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.number, b.number) })
	return files, nil
}

// segment replays files[i].
func (l *Log) segment(files []file, i int, mode Mode) error {
	f := &files[i]
	name := filename.Make(filename.WAL, f.number)
	if f.info.Header.FirstSeq != l.LastSeq+1 {
		return corrupt.Newf(name, 40, "segment begins at sequence %d, want %d", f.info.Header.FirstSeq, l.LastSeq+1)
	}
	if t := edm.Ticks(f.info.Header.HighWater); !t.Valid() {
		return corrupt.Newf(name, 48, "high-water mark of %d ticks", t)
	}
	o := wal.ReplayOptions{DBID: l.dbid, Number: f.number, Sealed: f.known.Sealed, Proven: f.known.Proven}
	later := files[i+1:]
	if len(later) > 0 {
		if end := later[0].info.Header.PrevEnd; end != wal.PrevUnknown {
			o.Proven = max(o.Proven, end)
		}
		complete, err := l.complete(later, mode == Beside)
		if err != nil {
			return err
		}
		if complete && slices.ContainsFunc(later, func(f file) bool { return f.info.Records }) {
			o.NextSeq = later[0].info.Header.FirstSeq
		}
	}
	seg, err := commitlog.Recovered(f.number, f.info.Bytes)
	if err != nil {
		return err
	}
	l.Segments = append(l.Segments, seg)
	o.Image, o.BeforeRead = seg.Image(), seg.PopulateTo
	e := entries{name: name, table: seg.Table, highWater: edm.Ticks(f.info.Header.HighWater)}
	replay := wal.Replay
	if mode == Beside {
		replay = wal.ReplayDurable
	}
	end, err := replay(l.fs, path.Join(l.dir, name), o, e.apply)
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	seg.SetReplayed(end)
	l.ends = append(l.ends, end)
	l.LastSeq = end.LastSeq
	l.HighWater = max(l.HighWater, e.highWater)
	if f.known.Sealed == 0 && end.Records > 0 {
		l.Unlisted = true
	}
	return l.checkLater(later, mode)
}

// complete reports whether later segments show that everything before them was durable. The
// header of a segment does, unless it says wal.PrevUnknown; so does the manifest, if it states a
// durable end of a segment. If records is set, complete also reads the segments for a record that
// says that its segment was synced: that was after those before it.
func (l *Log) complete(later []file, records bool) (bool, error) {
	for i := range later {
		f := &later[i]
		if f.info.Header.PrevEnd != wal.PrevUnknown || max(f.known.Sealed, f.known.Proven) > wal.HeaderLen {
			return true, nil
		}
	}
	for i := 0; records && i < len(later); i++ {
		name := path.Join(l.dir, filename.Make(filename.WAL, later[i].number))
		_, proven, err := wal.Unproven(l.fs, name, l.dbid, later[i].number)
		if proven > wal.HeaderLen || err != nil {
			return err == nil, err
		}
	}
	return false, nil
}

// checkLater decides what becomes of the segments after the last replayed one, if the first of
// them does not continue it. In NoSync mode a crash can lose the end of a segment, and then what
// follows is lost too.
func (l *Log) checkLater(later []file, mode Mode) error {
	if len(later) == 0 || later[0].info.Header.FirstSeq <= l.LastSeq+1 {
		return nil // segment compares the numbers
	}
	if complete, err := l.complete(later, mode != Beside); complete || err != nil {
		return err // segment finds the gap
	}
	for i := range later {
		l.Lost = append(l.Lost, later[i].number)
	}
	return nil
}

// WarnLost logs that segments are lost, if there are any.
func (l *Log) WarnLost(logger *slog.Logger) {
	if len(l.Lost) > 0 {
		logger.Warn("a crash lost the newest writes, which were not synced", "last_sequence", l.LastSeq, "segments", len(l.Lost))
	}
}

// RemoveLost removes the segments of Lost and returns when that is durable: they would
// contradict the next flush and the next segment. Call it with the lock, after Repair. record
// writes a manifest with a next number above those of the segments: a new segment with such a
// number could show records of the old one where a crash loses its own. On a full disk the
// segments are removed without it, because reads go on and the removal makes room.
func (l *Log) RemoveLost(logger *slog.Logger, record func() error) error {
	if len(l.Lost) == 0 {
		return nil
	}
	l.WarnLost(logger)
	if err := record(); err != nil && !space.NoSpace(err) {
		return fmt.Errorf("record the numbers of lost segments: %w", err)
	}
	for _, number := range l.Lost {
		if err := l.fs.Remove(path.Join(l.dir, filename.Make(filename.WAL, number))); err != nil {
			return fmt.Errorf("remove lost segment: %w", err)
		}
	}
	if err := l.fs.SyncDir(l.dir); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}

// RemoveStale removes flushed segments, which a process left that ended before it
// removed them, and those whose header it had not written.
func RemoveStale(fsys vfs.FS, dir string, m *manifest.Manifest) error {
	names, err := fsys.List(dir)
	if err != nil {
		return fmt.Errorf("list directory: %w", err)
	}
	for _, name := range names {
		kind, number := filename.Parse(name)
		if kind != filename.WAL || len(m.Logs) == 0 || number >= m.Logs[0].Number {
			continue
		}
		if _, err := wal.Inspect(fsys, path.Join(dir, name), m.DBID, number); !Stale(fsys, path.Join(dir, name), err) {
			continue
		}
		if err := fsys.Remove(path.Join(dir, name)); err != nil {
			return fmt.Errorf("remove stale segment: %w", err)
		}
	}
	return nil
}

// Stale reports whether a segment that the manifest calls flushed may be removed, for which
// wal.Inspect returned err: it has the id of the database, at least in the records, or nothing
// is lost with it. A file that cannot be read may not.
func Stale(fsys vfs.FS, name string, err error) bool {
	ok, zerr := stale(fsys, name, err)
	return ok && zerr == nil
}

// stale is Stale with the error of a file that cannot be read.
func stale(fsys vfs.FS, name string, err error) (bool, error) {
	if errors.Is(err, wal.ErrUnfinished) {
		return wal.Zeros(fsys, name)
	}
	return err == nil || errors.Is(err, wal.ErrChanged) || errors.Is(err, wal.ErrHeadless), nil
}
