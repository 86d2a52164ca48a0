package lsm

import (
	"context"
	"fmt"

	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/internal/memtable"
)

// Job is a flush or a compaction that is done step by step. It belongs to one
// goroutine; a flush and a compaction may take turns.
type Job struct {
	t    *Tree
	what string
	// step does a bounded piece of work.
	step func(ctx context.Context) (done bool, err error)
	// abort takes back what is not installed.
	abort func()
	ended bool
	err   error
}

// What names the job, for logs.
func (j *Job) What() string { return j.what }

// Step does a bounded piece of work: about a thousand entries or a megabyte, or
// the end of a file, or the change of the manifest. It returns true once the
// job's result is durable and visible. If ctx has ended it returns its error and
// the job may go on later. After any other error the job is over: its files are
// removed and nothing has changed, unless the error is ErrInDoubt. A full
// compaction installs in between; what it has installed stays.
func (j *Job) Step(ctx context.Context) (done bool, err error) {
	if j.ended {
		return j.err == nil, j.err
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	done, err = j.step(ctx)
	if err != nil {
		err = fmt.Errorf("%s: %w", j.what, err)
		j.end(err)
		return false, err
	}
	if done {
		j.end(nil)
	}
	return done, nil
}

// Abort ends the job and removes its files. It does nothing to a job that is
// over.
func (j *Job) Abort() {
	if !j.ended {
		j.end(fmt.Errorf("%s: aborted", j.what))
	}
}

func (j *Job) end(err error) {
	j.ended, j.err = true, err
	if err != nil {
		j.abort()
	}
	j.t.jobsMu.Lock()
	defer j.t.jobsMu.Unlock()
	if j.t.merging == j {
		j.t.merging = nil
	}
	if j.t.flushing == j {
		j.t.flushing = nil
	}
}

// NewFlush returns a job that writes the memtables, oldest first, as one run of
// tier 0. Nothing is applied to them any more, and they stay readable until the
// job is over. The install of the run also applies e, whose LastSeq must cover the
// memtables. Run one flush at a time, in the order of the memtables' age.
func (t *Tree) NewFlush(tables []*memtable.Table, e manifest.Edit) *Job {
	t.jobsMu.Lock()
	defer t.jobsMu.Unlock()
	if t.flushing != nil {
		panic("lsm: a flush is under way")
	}
	v := t.Version()
	w := &rewrite{t: t, v: v, edit: e, flush: true}
	w.visibility = visibility{snapshots: t.o.Snapshots(), dropped: t.o.Dropped, older: newCoverage(v.runs).has}
	for i := len(tables) - 1; i >= 0; i-- {
		it := tables[i].NewIterator(memtable.IterOptions{AllVersions: true})
		w.sources = append(w.sources, &counted{it, &w.in})
	}
	w.out = output{t: t, run: t.NewNumber(), fileBytes: t.o.FileBytes, compression: t.o.Compression}
	t.flushing = &Job{t: t, what: "flush", step: w.step, abort: w.abort}
	return t.flushing
}

// PickCompaction returns the most useful compaction, nil if there is nothing to
// do or one is under way. It is small: it ends after a file or a few, and the
// next pick goes on from there. Whoever holds on to the Version of before keeps
// its files on disk.
func (t *Tree) PickCompaction() *Job {
	t.jobsMu.Lock()
	defer t.jobsMu.Unlock()
	if t.merging != nil || t.Failure() != nil {
		return nil
	}
	v := t.Version()
	snapshots := t.o.Snapshots()
	p := t.picker(v, snapshots).pick()
	if p == nil {
		v.Unref()
		return nil
	}
	w := t.newMerge(v, snapshots, p)
	t.merging = &Job{t: t, what: "merge (" + p.reason + ")", step: w.step, abort: w.abort}
	return t.merging
}

// NewFullCompaction returns a job that merges everything into the bottom,
// without what no reader can see. It returns nil if another compaction is under
// way. It goes through the keys once and installs file by file, so that space
// is freed on the way, unless older versions are pinned.
func (t *Tree) NewFullCompaction() *Job {
	t.jobsMu.Lock()
	defer t.jobsMu.Unlock()
	if t.merging != nil || t.Failure() != nil {
		return nil
	}
	f := &full{t: t}
	t.merging = &Job{t: t, what: "full compaction", step: f.step, abort: f.abort}
	return t.merging
}

// full goes through the keys range by range.
type full struct {
	t    *Tree
	from []byte // everything below is done
	w    *rewrite
}

func (f *full) step(ctx context.Context) (done bool, err error) {
	if f.w == nil && !f.next() {
		return true, nil
	}
	done, err = f.w.step(ctx)
	if err != nil || !done {
		return false, err
	}
	f.from, f.w = f.w.plan.upper, nil
	return f.from == nil, nil
}

// next plans the next file, if there is something to merge.
func (f *full) next() bool {
	v := f.t.Version()
	snapshots := f.t.o.Snapshots()
	p := f.t.picker(v, snapshots).full(f.from)
	if p == nil {
		v.Unref()
		return false
	}
	f.w = f.t.newMerge(v, snapshots, p)
	return true
}

func (f *full) abort() {
	if f.w != nil {
		f.w.abort()
	}
}
