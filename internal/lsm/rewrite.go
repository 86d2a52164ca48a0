package lsm

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/internal/merge"
)

// A step ends after this many entries, or once it has written this much.
const (
	stepEntries = 1024
	stepBytes   = 1 << 20
)

// plan is what a compaction does.
type plan struct {
	reason string
	// remove and add are parts that are dropped and moved without being read.
	remove, add []*part
	// inputs are the runs, newest first, whose keys within [lower, upper) are
	// merged; older are the runs below the output there.
	inputs       []*run
	older        []*run
	lower, upper []byte
	// tier and run are where the output goes.
	tier uint32
	run  uint64
	// fileBytes is the size of its files. With oneFile the merge ends where the
	// first of them does that goes beyond the key past.
	fileBytes int64
	oneFile   bool
	past      []byte
}

// rewrite is a flush or a merge under way.
type rewrite struct {
	t    *Tree
	v    *Version // pinned while it is under way
	plan plan
	edit manifest.Edit // of a flush

	flush      bool
	taken      []*part // parts of v that are consumed, at least in part
	sources    []merge.Source
	it         merge.Iterator
	visibility visibility
	out        output
	keyBuf     []byte

	in      fingerprint            // of the entries that the sources returned
	decided [decisions]fingerprint // of the entries by decision
	before  int64                  // bytes of the inputs

	phase func() (done bool, err error)
}

// newMerge prepares a planned compaction; it takes over v.
func (t *Tree) newMerge(v *Version, snapshots []uint64, p *plan) *rewrite {
	w := &rewrite{t: t, v: v, plan: *p}
	w.visibility = visibility{
		snapshots: snapshots,
		dropped:   t.o.Dropped,
		older:     newCoverage(p.older).has,
		bottom:    p.tier == manifest.BottomTier,
	}
	o := IterOptions{Lower: p.lower, Upper: p.upper, AllVersions: true}
	for _, r := range p.inputs {
		parts := r.within(p.lower, p.upper)
		if len(parts) == 0 {
			continue
		}
		w.taken = append(w.taken, parts...)
		w.sources = append(w.sources, &countedRun{runSource: &runSource{parts: parts, o: o}, in: &w.in})
	}
	w.out = output{t: t, tier: p.tier, run: p.run, fileBytes: p.fileBytes, compression: t.o.Compression}
	if p.tier == manifest.BottomTier {
		w.out.compression = t.o.BottomCompression
	}
	return w
}

func (w *rewrite) step(ctx context.Context) (done bool, err error) {
	if w.phase == nil {
		w.phase = w.start
	}
	done, err = w.phase()
	if done && err == nil {
		w.v.Unref()
	}
	return done, err
}

func (w *rewrite) abort() {
	for _, s := range w.sources {
		_ = s.Close() // only read from, and the job has failed anyhow
	}
	w.out.discard()
	w.v.Unref()
}

func (w *rewrite) start() (bool, error) {
	if err := w.t.Failure(); err != nil {
		return false, err
	}
	if len(w.sources) == 0 {
		w.phase = w.install
		return false, nil
	}
	w.it.Init(w.sources, merge.Options{AllVersions: true})
	w.it.SeekGE(w.plan.lower)
	w.phase = w.copy
	return false, nil
}

// copy takes some entries from the inputs to the output.
func (w *rewrite) copy() (bool, error) {
	limit := w.out.size() + stepBytes
	for range stepEntries {
		if !w.it.Valid() {
			w.phase = w.finish
			return false, w.it.Err()
		}
		key := w.it.Key()
		user := key[:len(key)-codec.TrailerLen]
		if w.out.full(user) {
			if w.plan.oneFile && bytes.Compare(user, w.plan.past) > 0 {
				w.plan.upper = append([]byte(nil), user...)
				w.phase = w.finish
			}
			// The rest of this step is the sync of a file.
			return false, w.out.finish()
		}
		if err := w.entry(key, user); err != nil {
			return false, err
		}
		w.it.Next()
		if w.out.size() >= limit {
			break
		}
	}
	return false, nil
}

func (w *rewrite) entry(key, user []byte) error {
	d := w.visibility.decide(key)
	w.decided[d].add(key)
	if d != keepEntry && d != keepZeroSeq {
		return nil
	}
	row := w.it.Row()
	if d == keepZeroSeq {
		_, _, kind := codec.SplitTrailer(key)
		w.keyBuf = codec.AppendTrailer(append(w.keyBuf[:0], user...), 0, kind)
		key, user = w.keyBuf, w.keyBuf[:len(user)]
	}
	err := w.out.add(key, user, row)
	if probed(w.decided[d].entries) {
		w.out.probes++
		if !w.visibility.older(user) {
			w.out.fresh++
		}
	}
	return err
}

// finish ends the last file and holds what came out against what went in.
func (w *rewrite) finish() (bool, error) {
	if err := w.out.finish(); err != nil {
		return false, err
	}
	var errs []error
	for _, s := range w.sources {
		errs = append(errs, s.Close())
	}
	w.sources = nil
	if err := errors.Join(errs...); err != nil {
		return false, fmt.Errorf("close inputs: %w", err)
	}
	kept := w.decided[keepEntry].plus(w.decided[keepZeroSeq])
	sum := kept
	for d := dropShadowed; d < decisions; d++ {
		sum = sum.plus(w.decided[d])
	}
	if sum != w.in || kept.entries != w.out.entries {
		return false, fmt.Errorf("%d entries (sum %x) went in, %d (sum %x) came out, %d of them into files; dropped: %d shadowed, %d tombstones, %d of dropped tables",
			w.in.entries, w.in.sum, sum.entries, sum.sum, w.out.entries,
			w.decided[dropShadowed].entries, w.decided[dropTombstone].entries, w.decided[dropTable].entries)
	}
	w.phase = w.install
	return false, nil
}

// install makes the result live.
func (w *rewrite) install() (bool, error) {
	e := versionEdit{manifest: w.edit}
	e.remove = append(e.remove, w.plan.remove...)
	e.add = append(e.add, w.plan.add...)
	for _, p := range w.taken {
		if !p.overlaps(w.plan.lower, w.plan.upper) {
			continue // the merge ended before it
		}
		rest, err := p.without(w.plan.lower, w.plan.upper)
		if err != nil {
			return false, err
		}
		w.before += p.bytes
		for _, r := range rest {
			w.before -= r.bytes
		}
		e.remove = append(e.remove, p)
		e.add = append(e.add, rest...)
	}
	e.add = append(e.add, w.out.done...)
	if len(w.out.done) > 0 {
		if err := w.t.o.FS.SyncDir(w.t.o.Dir); err != nil {
			return false, fmt.Errorf("sync directory: %w", err)
		}
	}
	if err := w.t.install(e); err != nil {
		if errors.Is(err, ErrInDoubt) {
			// The manifest that lists them may be there after a crash.
			w.out.leave()
		}
		return false, fmt.Errorf("install: %w", err)
	}
	w.count()
	return true, nil
}

// without returns what is left of p when the keys in [lower, upper) are taken
// away: at most two narrower parts, whose bounds are keys that they hold.
func (p *part) without(lower, upper []byte) ([]*part, error) {
	if p.inside(lower, upper) {
		return nil, nil
	}
	var rest []*part
	it := p.reader.NewIterator(p.bounds(IterOptions{Snapshot: codec.MaxSeq}))
	if lower != nil && it.SeekLT(lower) {
		hi, _, _ := codec.SplitTrailer(it.Key())
		meta := p.meta
		meta.Largest = clip(hi, clippedLast)
		rest = append(rest, newPart(p.file, meta, p.bytesWithin(nil, lower)))
	}
	if upper != nil && it.Err() == nil && it.SeekGE(upper) {
		lo, _, _ := codec.SplitTrailer(it.Key())
		meta := p.meta
		meta.Smallest = clip(lo, clippedFirst)
		rest = append(rest, newPart(p.file, meta, p.bytesWithin(upper, nil)))
	}
	err := it.Err()
	if cerr := it.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, fmt.Errorf("bounds of what is left of %s: %w", filename.Make(filename.SSTable, p.number), err)
	}
	return rest, nil
}
