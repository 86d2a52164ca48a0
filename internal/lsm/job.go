package lsm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tablerock-db/tablerock/internal/lsm/internal/pick"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/runs"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/visibility"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/internal/memtable"
)

// Job is a flush or a compaction that runs step by step. It belongs to one goroutine.
// The steps of a flush and of a compaction may alternate.
type Job struct {
	What   string   // for logs
	Run    uint64   // the run that a flush writes; its sstables have greater numbers
	Inputs []uint64 // the numbers of the sstables that a compaction reads, moves or drops

	t *Tree
	// step does a bounded amount of work.
	step func(ctx context.Context) (done bool, err error)
	// abort removes the files that are not installed.
	abort func()
	// written returns how many bytes of the output are written and not installed.
	written func() int64
	ended   bool
	err     error
}

// Step does a bounded amount of work: about a thousand entries or a megabyte, or the end of a file,
// or the install. It returns true when the result is durable and visible. If ctx has ended, Step
// returns its error, and the job can continue later. After any other error the job has ended: its
// files are removed and nothing has changed, unless the error is ErrInDoubt. A full compaction
// installs several times; an error does not revert the earlier installs.
func (j *Job) Step(ctx context.Context) (done bool, err error) {
	if j.ended {
		return j.err == nil, j.err
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	done, err = false, errPanic // the caller may survive a panic
	defer func() {
		if done || err != nil {
			j.end(err)
		}
	}()
	if done, err = j.step(ctx); err != nil {
		return false, fmt.Errorf("%s: %w", j.What, err)
	}
	return done, nil
}

// Written returns how many bytes the job has written and not yet installed.
func (j *Job) Written() int64 { return j.written() }

var errPanic = errors.New("the goroutine panicked")

// Abort ends the job and removes its files. It does nothing if the job has ended.
func (j *Job) Abort() {
	if !j.ended {
		j.end(fmt.Errorf("%s: aborted", j.What))
	}
}

func (j *Job) end(err error) {
	j.ended, j.err = true, err
	defer j.t.forget(j) // also if abort panics
	if err != nil {
		j.abort()
	}
}

// forget notes that a job has ended.
func (t *Tree) forget(j *Job) {
	t.jobsMu.Lock()
	defer t.jobsMu.Unlock()
	if t.compacting == j {
		t.compacting = nil
	}
	if t.flushing == j {
		t.flushing = nil
	}
}

// NewFlush returns a job that writes memtables, oldest first, as one run of tier 0. They must not
// change, and must remain readable until the job ends. The install also applies e, whose LastSeq
// must cover them. Run one flush at a time, in the order of the memtables' age.
func (t *Tree) NewFlush(tables []*memtable.Table, e manifest.Edit) *Job {
	t.jobsMu.Lock()
	defer t.jobsMu.Unlock()
	if t.flushing != nil {
		panic("lsm: a flush is under way")
	}
	v := t.Version()
	c := &compaction{t: t, v: v, edit: e, flush: true}
	c.visibility = visibility.Rule{Snapshots: t.o.Snapshots(), Dropped: t.o.Dropped, Older: runs.NewOlder(v.runs).MayContain}
	entries := 0
	for i := len(tables) - 1; i >= 0; i-- {
		entries += tables[i].Len()
		it := tables[i].NewIterator(memtable.IterOptions{AllVersions: true})
		c.sources = append(c.sources, &counted{it, &c.in})
	}
	// A file that overlaps no older run is moved to the bottom.
	size := t.o.fileSize()
	c.out = output{t: t, run: t.NewNumber(), fileBytes: size.Share(v.runs.Bytes(), size.Min()), compression: t.o.Compression}
	c.out.overlap = v.runs.FileLimit(entries)
	t.flushing = &Job{What: "flush", Run: c.out.run, t: t, step: c.step, abort: c.abort, written: c.out.size}
	return t.flushing
}

// PickCompaction returns the most useful compaction, nil if none is useful or a compaction is under
// way. It writes one or a few files, and the next pick continues after them. The input files remain
// on disk while an older Version is pinned.
func (t *Tree) PickCompaction() *Job { return t.pick((*pick.Picker).Pick) }

// RemoveDropped removes the files that contain only rows of dropped tables. It reads no rows. It
// does nothing if a compaction is under way.
func (t *Tree) RemoveDropped(ctx context.Context) error {
	j := t.pick((*pick.Picker).FilesOfDroppedTables)
	if j == nil {
		return nil
	}
	defer j.Abort() // if ctx ends
	for {
		if done, err := j.Step(ctx); done || err != nil {
			return err
		}
	}
}

// pick returns the compaction that plan returns for the current version, nil if there is none or a
// compaction is under way.
func (t *Tree) pick(plan func(*pick.Picker) *pick.Plan) *Job {
	t.jobsMu.Lock()
	defer t.jobsMu.Unlock()
	if t.compacting != nil || t.Failure() != nil {
		return nil
	}
	v := t.Version()
	snapshots := t.o.Snapshots()
	p := plan(t.picker(v, snapshots))
	if p == nil {
		v.Unref()
		return nil
	}
	c := t.newCompaction(v, snapshots, p)
	t.compacting = &Job{What: "compaction (" + p.Reason + ")", Inputs: numbers(p.Remove, c.consumed), t: t, step: c.step, abort: c.abort, written: c.out.size}
	return t.compacting
}

// Debt returns how many bytes compactions have to read before fewer runs overlap, 0 if no tier is
// full.
func (t *Tree) Debt() int64 {
	v := t.Version()
	defer v.Unref()
	return t.picker(v, nil).Debt()
}

// picker returns a picker for v, which is the current version.
func (t *Tree) picker(v *Version, snapshots []uint64) *pick.Picker {
	return &pick.Picker{
		Runs:      v.runs,
		Overlap:   v.overlap,
		Snapshots: snapshots,
		// A full compaction uses the policy without jobsMu: Tree.compacting keeps PickCompaction
		// from it.
		Policy:     &t.policy, // +checklocksignore
		NewRun:     t.NewNumber,
		FileBytes:  t.o.fileSize(),
		TierRuns:   t.o.TierRuns,
		Recompress: t.o.CompactedCompression != t.o.Compression,
		Dropped:    t.o.Dropped,
		Deleted:    &t.deleted,
		Merged:     &t.merged,

		OutputLimit: t.o.OutputLimit,
	}
}

// NewFullCompaction returns a job that compacts all files into the bottom, without the entries that
// no reader can see. It returns nil if a compaction is under way. It proceeds in key order and
// installs file by file, which frees space early, unless older versions are pinned.
func (t *Tree) NewFullCompaction() *Job {
	t.jobsMu.Lock()
	defer t.jobsMu.Unlock()
	if t.compacting != nil || t.Failure() != nil {
		return nil
	}
	return t.newFullLocked("full compaction", &fullCompaction{t: t})
}

// NewReclaim is NewFullCompaction without the files of the bottom that it could not make
// smaller. It is for a full disk.
func (t *Tree) NewReclaim() *Job {
	t.jobsMu.Lock()
	defer t.jobsMu.Unlock()
	if t.compacting != nil || t.Failure() != nil {
		return nil
	}
	f := &fullCompaction{t: t, reclaim: true}
	v := t.Version()
	defer v.Unref()
	// The consumed ranges of files take space until the rest of them is consumed.
	for _, s := range v.runs.SSTs() {
		if s.Clipped && (f.start == nil || bytes.Compare(s.Lo, f.start) < 0) {
			f.start = s.Lo
		}
	}
	f.from = f.start
	return t.newFullLocked("reclaim space", f)
}

// +checklocks:t.jobsMu
func (t *Tree) newFullLocked(what string, f *fullCompaction) *Job {
	v := t.Version()
	defer v.Unref()
	t.compacting = &Job{What: what, Inputs: numbers(v.runs.SSTs()), t: t, step: f.step, abort: f.abort, written: f.written}
	return t.compacting
}

func numbers(lists ...[]*runs.SST) (out []uint64) {
	for _, s := range slices.Concat(lists...) {
		out = append(out, s.Number)
	}
	return out
}

// outputSlack is by how much a file can be larger than a quarter more than its target: a group of rows
// can be larger than estimated.
const outputSlack = 64 << 10

// fullCompaction is a compaction of all files. It proceeds range by range. If flushes fill a tier
// meanwhile, every second compaction is one of the tier.
type fullCompaction struct {
	t       *Tree
	reclaim bool // leave out files that cannot become smaller
	begun   bool
	since   uint64 // the runs with greater numbers were written meanwhile
	tier    bool   // the last compaction was one of a tier
	// from is the key up to which the keys from start on are compacted. At the end,
	// a compaction that did not start at the least key continues there up to start.
	from, start []byte
	c           *compaction

	// A reclaim begins with all runs. It keeps back the space that the two oldest need, or 0 if there
	// is less. When it has no other space, few is set, and each pass over the keys compacts as many of
	// the oldest runs as there is space for, up to newest, nil for all.
	keep    int64
	few     bool
	newest  *runs.Run
	passing bool // a pass has begun
}

func (f *fullCompaction) step(ctx context.Context) (done bool, err error) {
	if f.c == nil && !f.next() {
		f.from = nil
		return f.ended(), nil
	}
	done, err = f.c.step(ctx)
	if err != nil || !done {
		return false, err
	}
	c := f.c
	f.c = nil
	if len(c.plan.Inputs) == 0 || c.plan.Tier != manifest.BottomTier {
		return false, nil // the files of dropped tables, or of a tier
	}
	f.from = c.plan.Upper
	return f.ended(), nil
}

// ended reports whether all keys are compacted.
func (f *fullCompaction) ended() bool {
	if f.from == nil && f.start != nil {
		f.start = nil
		return false
	}
	if f.from == nil && f.newest != nil {
		f.newest, f.passing = nil, false
		return false
	}
	return f.from == nil
}

// inputs returns the runs of l that a reclaim compacts next, and how much of the space there is for it.
func (f *fullCompaction) inputs(l runs.List, space int64) (runs.List, int64) {
	least := f.t.o.fileSize().MinShare()
	least += least / 4
	begins := !f.passing
	if f.passing = true; begins && !f.few {
		if f.keep = l.OldestWithin(0).CompactionSpace() + least; f.keep > space {
			f.keep = 0
		}
	}
	if f.keep > 0 && space-f.keep < least {
		f.few, f.keep, f.start, begins = true, 0, f.from, true
	}
	if oldest := l.OldestWithin(space - least); f.few && begins && len(oldest) < len(l) {
		f.newest = oldest[0]
	}
	if f.newest != nil {
		l = l.FromRun(f.newest.Tier, f.newest.Number)
	}
	return l, space - f.keep
}

// next plans the next file and reports whether there is one.
func (f *fullCompaction) next() bool {
	v := f.t.Version()
	snapshots := f.t.o.Snapshots()
	k := f.t.picker(v, snapshots)
	skip := k.FullyCompacted
	if f.reclaim {
		skip = k.WithoutGarbage
	}
	var p *pick.Plan
	if !f.begun {
		f.begun, f.since = true, f.t.NewNumber()
		if f.reclaim {
			p = k.FilesOfDroppedTables()
		}
	}
	if p == nil && !f.reclaim && !f.tier {
		p = k.TierSince(f.since)
	}
	f.tier = p != nil
	space := f.t.o.OutputLimit() - outputSlack
	if p == nil {
		if f.reclaim {
			k.Runs, space = f.inputs(v.runs, space)
		}
		p = k.Full(f.from, skip)
	}
	if p == nil {
		v.Unref()
		return false
	}
	p.FileBytes = min(p.FileBytes, max(f.t.o.fileSize().MinShare(), space/2))
	f.c = f.t.newCompaction(v, snapshots, p)
	f.c.inOrder = !f.tier
	return true
}

func (f *fullCompaction) written() int64 {
	if f.c == nil {
		return 0
	}
	return f.c.out.size()
}

func (f *fullCompaction) abort() {
	if f.c != nil {
		f.c.abort()
	}
}
