// Package rollforward applies archived chunks to a restored database.
package rollforward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/archive"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/wal"
)

// flushBytes is how much of the log is replayed at once. Replay needs that much memory.
const flushBytes = 256 << 20

// ErrOutOfRange is wrapped by the error for a moment that the archive does not reach.
var ErrOutOfRange = errors.New("the archive does not reach this moment")

// Options say what to apply.
type Options struct {
	FS vfs.FS
	// Dir has the database of a backup. Nobody has opened it since the restore.
	Dir string
	// Epoch is the epoch in which the backup and the chunks were made.
	Epoch uint64
	// Names has the names of all archived chunks of the account, also of other databases.
	Names []string
	// Open opens a chunk for reading.
	Open func(ctx context.Context, name string) (io.ReadCloser, error)
	// Until is the Timestamp of the last write to apply.
	Until edm.Ticks
	// Base is the greatest Timestamp of the backup.
	Base edm.Ticks
	// Applied is called after each chunk. The default is to call nothing.
	Applied func(chunks, of int)
}

// Apply applies the writes that follow those of the database up to o.Until: it stops before
// the first record with a later Timestamp. It returns the last sequence number. After an
// error the directory is not usable.
//
// Recovery replays the chunks: Apply places segments of the log in the directory, lists
// their ends in the manifest, and opens and flushes the database. It adds the files of an
// install of Load to the manifest, once everything before it is flushed.
func Apply(ctx context.Context, o Options) (last uint64, err error) {
	m, err := manifest.Read(o.FS, o.Dir)
	if err != nil {
		return 0, err
	}
	r := &roll{o: o, m: m}
	if err := r.base(); err != nil {
		return 0, err
	}
	if err := r.plan(ctx); err != nil {
		return 0, err
	}
	for i, h := range r.chunks {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		more, err := r.apply(ctx, h)
		if err != nil {
			return 0, fmt.Errorf("apply %s: %w", h.Name(), err)
		}
		if o.Applied != nil {
			o.Applied(i+1, len(r.chunks))
		}
		if !more {
			break
		}
	}
	if err := r.flush(ctx); err != nil {
		return 0, err
	}
	// No Timestamp of the history that is left behind may be given out again.
	r.m.HighWater = max(r.m.HighWater, uint64(r.highWater))
	return r.last, manifest.Write(o.FS, o.Dir, r.m)
}

// Check reads the headers of the chunks, as Apply does first, and returns its error if they do not
// lead to o.Until from a backup of the database id whose last sequence number is last. It needs
// no directory.
func Check(ctx context.Context, o Options, id [16]byte, last uint64) error {
	r := &roll{o: o, m: &manifest.Manifest{DBID: id}, last: last, check: true}
	return r.plan(ctx)
}

// roll is one Apply or Check.
type roll struct {
	o Options
	m *manifest.Manifest
	// logs are the segments in the directory that are not flushed, and bytes their size.
	logs  []manifest.Log
	bytes int64
	// last is the last sequence number of files and logs.
	last      uint64
	chunks    []*archive.Header // to apply, in order
	highWater edm.Ticks
	check     bool // there is no directory, and logs are not known
}

// base finds out the last sequence number of the backup.
func (r *roll) base() error {
	r.last = r.m.LastSeq
	for _, l := range r.m.Logs {
		if l.Sealed <= wal.HeaderLen {
			continue
		}
		span, err := r.span(l.Number, l.Sealed, 0)
		if err != nil {
			return err
		}
		if span.Last > r.last {
			r.last = span.Last
		}
		r.logs, r.bytes = append(r.logs, l), r.bytes+l.Sealed
	}
	return nil
}

// span reads a segment up to an end, or to its first record that is later than until.
func (r *roll) span(number uint64, sealed int64, until edm.Ticks) (*archive.Span, error) {
	name := path.Join(r.o.Dir, filename.Make(filename.WAL, number))
	info, err := wal.Inspect(r.o.FS, name, r.m.DBID, number)
	if err != nil {
		return nil, err
	}
	span := &archive.Span{Name: path.Base(name), Until: until}
	end, err := wal.Replay(r.o.FS, name, wal.ReplayOptions{
		DBID: r.m.DBID, Number: number, Sealed: sealed, Image: make([]byte, info.Bytes),
	}, span.Add)
	if err == nil {
		span.End = end.Offset
	} else if !errors.Is(err, archive.ErrUntil) {
		return nil, err
	}
	return span, nil
}

// plan sets the chunks that lead from the backup to the moment.
func (r *roll) plan(ctx context.Context) error {
	names, err := r.chain()
	if err != nil {
		return err
	}
	mark, err := r.mark(ctx)
	if err != nil {
		return err
	}
	next, reached, covered := r.last+1, r.o.Base, false
	for i, name := range names {
		// The names alone say which chunks are older than the backup. Of those that are too
		// late, the last one has the greatest Timestamp.
		_, named, _ := archive.ParseName(path.Base(name))
		if named.Last < next || covered && i < len(names)-1 {
			continue
		}
		h, err := r.header(ctx, name)
		if err != nil {
			return err
		}
		r.highWater = max(r.highWater, h.To)
		if covered || h.First > next && reached >= r.o.Until {
			continue // its Timestamps are only left behind
		}
		if h.First > next {
			return fmt.Errorf("%w: the chunks of the sequence numbers %d to %d are missing; %s, or restore a later backup",
				ErrOutOfRange, next, h.First-1, r.greatest(reached))
		}
		if h.First < next && (next != r.last+1 || !r.continues(h)) {
			return fmt.Errorf("%w: %s does not follow sequence number %d: two copies of the database were archived", corrupt.ErrCorrupt, name, next-1)
		}
		if covered = h.To > r.o.Until; h.From > r.o.Until {
			continue // it shows that the chunk before reaches far enough
		}
		r.chunks = append(r.chunks, h)
		r.m.NextFile = max(r.m.NextFile, h.Number+1)
		next, reached = h.Last+1, h.To
	}
	if mark.Last < next {
		reached = max(reached, mark.At)
	}
	if !covered && reached < r.o.Until {
		return fmt.Errorf("%w: the archive ends before it; %s", ErrOutOfRange, r.greatest(reached))
	}
	return nil
}

// mark returns the mark of the archive, or an empty one if there is none.
func (r *roll) mark(ctx context.Context) (*archive.Mark, error) {
	name := archive.MarkName(r.o.Epoch, r.m.DBID)
	if !slices.Contains(r.o.Names, name) {
		return new(archive.Mark), nil
	}
	object, err := r.o.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(object, archive.MarkLen+1))
	if err = errors.Join(err, object.Close()); err != nil {
		return nil, err
	}
	return archive.DecodeMark(name, b)
}

// greatest says what the greatest possible moment is.
func (r *roll) greatest(reached edm.Ticks) string {
	return "the greatest possible time is " + reached.Time().UTC().Format(time.RFC3339Nano)
}

// continues reports whether a chunk has a segment that the backup has in part, as far as it is
// known.
func (r *roll) continues(h *archive.Header) bool {
	return h.Kind == archive.Log && (r.check || slices.ContainsFunc(r.logs, func(l manifest.Log) bool { return l.Number == h.Number }))
}

// chain returns the names of the database's chunks in their order.
func (r *roll) chain() ([]string, error) {
	prefix := archive.Prefix(r.o.Epoch, r.m.DBID)
	var names []string
	marked := false
	for _, name := range r.o.Names {
		if len(name) < len(prefix) || name[:len(prefix)] != prefix {
			continue
		}
		if name == archive.MarkName(r.o.Epoch, r.m.DBID) {
			marked = true
			continue
		}
		if _, _, ok := archive.ParseName(name[len(prefix):]); !ok {
			return nil, fmt.Errorf("%s is not the name of an archived chunk", name)
		}
		names = append(names, name)
	}
	if len(names) == 0 && !marked && len(r.o.Names) > 0 {
		return nil, fmt.Errorf("%w: the archive has chunks of another database only", ErrOutOfRange)
	}
	slices.Sort(names)
	return names, nil
}

// header reads the header of a chunk.
func (r *roll) header(ctx context.Context, name string) (h *archive.Header, err error) {
	err = r.read(ctx, name, func(p *archive.Reader) error {
		h = p.Header
		switch {
		case h.DBID != r.m.DBID || h.Epoch != r.o.Epoch:
			return corrupt.Newf(name, 16, "it belongs to database %x in epoch %d, not to %x in epoch %d", h.DBID, h.Epoch, r.m.DBID, r.o.Epoch)
		case h.Name() != name:
			return corrupt.Newf(name, 48, "it is the chunk %s", h.Name())
		}
		return nil
	})
	return h, err
}

func (r *roll) read(ctx context.Context, name string, f func(*archive.Reader) error) error {
	object, err := r.o.Open(ctx, name)
	if err != nil {
		return err
	}
	p, err := archive.NewReader(name, object)
	if err == nil {
		err = f(p)
	}
	return errors.Join(err, object.Close())
}

// apply applies a chunk. There is no more if it is the last one, in part or not at all.
func (r *roll) apply(ctx context.Context, h *archive.Header) (more bool, err error) {
	if h.From > r.o.Until {
		return false, nil
	}
	if h.Kind == archive.Load {
		if err := r.flush(ctx); err != nil {
			return false, err
		}
		return true, r.load(ctx, h)
	}
	name := path.Join(r.o.Dir, filename.Make(filename.WAL, h.Number))
	if h.First <= r.last {
		if err := r.o.FS.Remove(name); err != nil {
			return false, err
		}
		i := slices.IndexFunc(r.logs, func(l manifest.Log) bool { return l.Number == h.Number })
		r.logs = slices.Delete(r.logs, i, i+1)
	}
	err = r.read(ctx, h.Name(), func(p *archive.Reader) error {
		return errors.Join(p.CopyTo(r.o.FS, name, p.Bytes), p.Finish())
	})
	if err != nil {
		return false, err
	}
	span, err := r.span(h.Number, 0, r.o.Until)
	if err != nil {
		return false, err
	}
	if span.First == 0 {
		return false, r.o.FS.Remove(name)
	}
	if span.First != h.First || span.Last > h.Last {
		return false, corrupt.Newf(h.Name(), 48, "it has the sequence numbers %d to %d", span.First, span.Last)
	}
	r.last = span.Last
	r.logs, r.bytes = append(r.logs, manifest.Log{Number: h.Number, Sealed: span.End}), r.bytes+span.End
	if r.bytes > flushBytes {
		err = r.flush(ctx)
	}
	return span.Last == h.Last, err
}

// flush replays the segments and flushes them.
func (r *roll) flush(ctx context.Context) error {
	if len(r.logs) == 0 {
		return nil
	}
	if err := r.write(r.logs); err != nil {
		return err
	}
	db, err := engine.Open(r.o.Dir, engine.Options{FS: r.o.FS})
	if err != nil {
		return err
	}
	if err := errors.Join(db.Flush(ctx), db.Close()); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	if r.m, err = manifest.Read(r.o.FS, r.o.Dir); err != nil {
		return err
	}
	if r.m.LastSeq != r.last {
		return fmt.Errorf("%w: the log leads to sequence number %d, not %d", corrupt.ErrCorrupt, r.m.LastSeq, r.last)
	}
	r.logs, r.bytes = nil, 0
	return nil
}

// write writes the manifest with the logs. Other segments in the directory are those that
// opening the database has begun; recovery would take them for the newest ones.
func (r *roll) write(logs []manifest.Log) error {
	names, err := r.o.FS.List(r.o.Dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		kind, number := filename.Parse(name)
		if kind == filename.WAL && !slices.ContainsFunc(logs, func(l manifest.Log) bool { return l.Number == number }) {
			if err := r.o.FS.Remove(path.Join(r.o.Dir, name)); err != nil {
				return err
			}
		}
	}
	if err := r.o.FS.SyncDir(r.o.Dir); err != nil {
		return err
	}
	r.m.Logs = logs
	return manifest.Write(r.o.FS, r.o.Dir, r.m)
}

// load installs the files of a load as the newest run.
func (r *roll) load(ctx context.Context, h *archive.Header) error {
	temp := path.Join(r.o.Dir, filename.Make(filename.Load, h.First))
	if err := r.o.FS.MkdirAll(temp); err != nil {
		return err
	}
	var files []manifest.File
	err := r.read(ctx, h.Name(), func(p *archive.Reader) error {
		if err := p.CopyTo(r.o.FS, path.Join(temp, filename.Manifest), h.Manifest); err != nil {
			return err
		}
		listed, err := manifest.Read(r.o.FS, temp)
		if err != nil {
			return fmt.Errorf("its manifest: %w", err)
		}
		files = archive.Files(listed)
		for i := range files {
			f := &files[i]
			if f.MinSeq != h.First || f.MaxSeq != h.First || f.Stamp != uint64(h.To) || f.Number > h.Number {
				return corrupt.Newf(h.Name(), archive.HeaderLen, "file %d does not belong to it", f.Number)
			}
			if err := p.CopyTo(r.o.FS, path.Join(r.o.Dir, filename.Make(filename.SSTable, f.Number)), f.Size); err != nil {
				return err
			}
		}
		return p.Finish()
	})
	if err != nil {
		return err
	}
	if err := errors.Join(r.o.FS.Remove(path.Join(temp, filename.Manifest)), r.o.FS.Remove(temp)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	run := r.m.NextFile
	for i := range files {
		files[i].Tier, files[i].Run = 0, run
	}
	r.m.Files = append(r.m.Files, files...)
	r.m.LastSeq, r.last = h.First, h.First
	r.m.HighWater = max(r.m.HighWater, uint64(h.To))
	r.m.NextFile = run + 2
	return r.write([]manifest.Log{{Number: run + 1}})
}
