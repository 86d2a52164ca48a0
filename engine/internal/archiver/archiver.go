// Package archiver archives what a database does not need any more, before it removes it:
// log segments that are flushed, and the files of Load, which compactions merge away.
//
// What waits for the archive is in the directory of the database, so a crash loses no
// chunk of it: the file of a segment that the manifest does not list any more, and for an
// install of Load a directory NNNNNN.load, named by its sequence number, with links to the
// files and a manifest that lists them. If a crash follows the archival and not the
// removal, the chunk is archived again, which changes nothing.
package archiver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine/internal/commitlog"
	"github.com/tablerock-db/tablerock/internal/archive"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
)

const (
	// The pause after a failure doubles from the least to the most.
	leastPause = time.Second
	mostPause  = time.Minute
	// maxDamaged is how often a chunk is read that is damaged.
	maxDamaged = 3
)

// Archive keeps chunks. It is engine.Archive, which package engine declares.
type Archive interface {
	// Put stores a chunk durably. That the archive has the chunk is no error.
	Put(ctx context.Context, name string, chunk io.Reader) error
}

// Options configure an Archiver.
type Options struct {
	archive.Source
	// Archive gets the chunks. Nil archives nothing and removes everything at once.
	Archive Archive
	Log     *commitlog.Log
	After   func(d time.Duration, f func()) (stop func() bool)
	Logger  *slog.Logger
}

// Archiver archives the chunks of one database in the order of their sequence numbers. Its
// methods may be called concurrently.
type Archiver struct {
	o      Options
	stepMu sync.Mutex // held while a chunk is archived

	mu sync.Mutex
	// waiting has the chunks that the archive does not have, in order.
	// +checklocks:mu
	waiting []chunk
	// +checklocks:mu
	stats Stats
	// damaged counts the failures of the first chunk because of its own damage.
	// +checklocks:mu
	damaged int

	wake   chan struct{} // signalled when a chunk waits
	stop   chan struct{} // closed at the end
	done   chan struct{} // closed when the goroutine has ended
	cancel context.CancelFunc
}

// Stats are the figures of an Archiver.
type Stats struct {
	Chunks   int   // that wait
	Bytes    int64 // of the files of the chunks that wait
	Failures uint64
	// Archived is the Timestamp of the last write that the archive got, 0 if it got none.
	Archived edm.Ticks
}

// chunk is a chunk that waits.
type chunk struct {
	seq     uint64 // a sequence number of the chunk, for the order
	load    bool
	segment commitlog.Released // of a chunk that is no load
	bytes   int64
}

// New returns an Archiver. Call Recover first.
func New(o Options) *Archiver {
	return &Archiver{o: o, wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
}

// Start starts the goroutine that archives. Without it, call Step. Close ends it.
func (a *Archiver) Start() {
	if a.o.Archive == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	go func() {
		defer close(a.done)
		a.run(ctx)
	}()
}

func (a *Archiver) run(ctx context.Context) {
	pause := leastPause
	for {
		worked, err := a.Step(ctx)
		switch {
		case err != nil:
			a.o.Logger.Error("archiving failed; it is tried again", "dir", a.o.Dir, "seconds", pause.Seconds(), "cause", err)
			fired := make(chan struct{})
			cancel := a.o.After(pause, func() { close(fired) })
			select {
			case <-fired:
			case <-a.stop:
				cancel()
				return
			}
			pause = min(2*pause, mostPause)
		case worked:
			pause = leastPause
			select {
			case <-a.stop:
				return
			default:
			}
		default:
			select {
			case <-a.wake:
			case <-a.stop:
				return
			}
		}
	}
}

// Close ends the goroutine and archives what waits, until ctx ends or one attempt fails.
// The rest waits for the next Open.
func (a *Archiver) Close(ctx context.Context) {
	if a.cancel != nil {
		close(a.stop)
		end := context.AfterFunc(ctx, a.cancel)
		<-a.done
		end()
		a.cancel()
	}
	for {
		worked, err := a.Step(ctx)
		if err != nil {
			s := a.Stats()
			a.o.Logger.Warn("chunks wait for the archive until the next open", "dir", a.o.Dir, "chunks", s.Chunks, "bytes", s.Bytes, "cause", err)
			return
		}
		if !worked {
			return
		}
	}
}

// Stats returns the figures. A nil Archiver has none.
func (a *Archiver) Stats() Stats {
	if a == nil {
		return Stats{}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.stats
	s.Chunks = len(a.waiting)
	for i := range a.waiting {
		s.Bytes += a.waiting[i].bytes
	}
	return s
}

// Step archives the first chunk that waits and removes its files. It reports whether there
// was one. After an error the chunk still waits.
func (a *Archiver) Step(ctx context.Context) (worked bool, err error) {
	a.stepMu.Lock()
	defer a.stepMu.Unlock()
	a.mu.Lock()
	if len(a.waiting) == 0 {
		a.mu.Unlock()
		return false, nil
	}
	p := a.waiting[0]
	a.mu.Unlock()
	to, damaged, err := a.archive(ctx, p)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.stats.Failures++
		if a.damaged++; !damaged {
			a.damaged = 0
		}
		if a.damaged < maxDamaged {
			return false, err
		}
		// The chunks behind it must not wait for ever. A restore finds the gap.
		a.o.Logger.Error("a damaged chunk is missing in the archive: make a backup", "dir", a.o.Dir, "chunk", a.name(p), "cause", err)
	}
	a.waiting, a.damaged = a.waiting[1:], 0
	a.stats.Archived = max(a.stats.Archived, to)
	return true, nil
}

// name returns the name of the chunk in the directory of the database.
func (a *Archiver) name(p chunk) string {
	if p.load {
		return filename.Make(filename.Load, p.seq)
	}
	return filename.Make(filename.WAL, p.segment.Number)
}

// archive archives a chunk, removes its files, and returns its last Timestamp. damaged says that
// err comes from damage of the chunk, and not of the archive.
func (a *Archiver) archive(ctx context.Context, p chunk) (to edm.Ticks, damaged bool, err error) {
	if err := ctx.Err(); err != nil {
		return 0, false, err
	}
	var opened *archive.Chunk
	if p.load {
		opened, err = archive.OpenLoad(ctx, a.o.Source, a.loadDir(p.seq))
	} else {
		opened, err = archive.OpenLog(a.o.Source, p.segment.Number, p.segment.End)
	}
	damaged = errors.Is(err, corrupt.ErrCorrupt)
	if err == nil {
		to = opened.To
		r := &damageReader{r: opened}
		err = a.o.Archive.Put(ctx, opened.Name(), r)
		damaged, err = r.damaged, errors.Join(err, opened.Close())
	} else if errors.Is(err, archive.ErrEmpty) {
		err = nil
	}
	if err != nil {
		return 0, damaged, fmt.Errorf("archive %s: %w", a.name(p), err)
	}
	// The file is not needed any more; if it cannot be removed, the next Open does it.
	if p.load {
		err = a.removeLoad(p.seq)
	} else {
		err = a.o.Log.Recycle(p.segment)
	}
	if err != nil {
		a.o.Logger.Warn("the file of an archived chunk is left", "dir", a.o.Dir, "chunk", a.name(p), "cause", err)
	}
	return to, false, nil
}

// damageReader reads a chunk and notes whether it is damaged.
type damageReader struct {
	r       io.Reader
	damaged bool
}

func (d *damageReader) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	d.damaged = d.damaged || errors.Is(err, corrupt.ErrCorrupt)
	return n, err
}

// add adds a chunk behind those that wait.
func (a *Archiver) add(p chunk) {
	a.mu.Lock()
	a.waiting = append(a.waiting, p)
	a.mu.Unlock()
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// Drop archives the segment, which the manifest does not list any more, and then removes
// the file or keeps it for another segment. The error is that of closing the file, or
// without an archive of removing it.
func (a *Archiver) Drop(seg *commitlog.Segment) error {
	if a.o.Archive == nil {
		return a.o.Log.Drop(seg)
	}
	released, ok, err := a.o.Log.Release(seg)
	if ok {
		a.add(chunk{seq: seg.LastSeq(), segment: released, bytes: released.End})
	}
	return err
}
