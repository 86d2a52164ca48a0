package lsm

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/keyrange"
	"github.com/tablerock-db/tablerock/internal/manifest"
)

// Load writes rows to files that Install adds to the tree as its newest run. It belongs
// to one goroutine, and may run beside jobs and other Loads. Call Install or Abort at the
// end.
type Load struct {
	t   *Tree
	out output
	key []byte
	n   uint64 // rows
	// probes counts the rows of each file whose keys were looked up in older runs, and
	// samples has those that were not found. Keys rise.
	probes  []int
	samples []loadSample
	before  uint64 // the runs with smaller numbers were probed
}

type loadSample struct {
	file int
	user []byte
}

// NewLoad returns a Load of about the given number of rows.
func (t *Tree) NewLoad(rows int) *Load {
	v := t.Version()
	defer v.Unref()
	// Without overlap the files are moved to the bottom as they are.
	l := &Load{t: t, out: output{t: t, fileBytes: t.o.FileBytes, compression: t.o.CompactedCompression}}
	l.out.overlap = overlapLimit{entries: uint64(rows/filesPerRun + 1), older: v.runs}
	return l
}

// Add adds a row with a user key above the one before. The Timestamp of all rows must be
// one that is durably below the high-water mark.
func (l *Load) Add(user []byte, row codec.ShapedRow) error {
	if l.out.full(user) {
		if err := l.out.finish(); err != nil {
			return err
		}
	}
	l.key = codec.AppendTrailer(append(l.key[:0], user...), 0, codec.KindPut)
	if err := l.out.add(l.key, user, row); err != nil {
		return err
	}
	if l.n++; keyrange.Sampled(l.n) {
		file := len(l.out.done)
		l.probes = append(l.probes, make([]int, file+1-len(l.probes))...)
		l.probes[file]++
		l.samples = append(l.samples, loadSample{file, slices.Clone(user)})
	}
	return nil
}

// Finish makes the files durable.
func (l *Load) Finish() error {
	if err := l.out.finish(); err != nil {
		return err
	}
	v := l.t.Version()
	defer v.Unref()
	l.before = l.t.NewNumber()
	l.probe(v.runs)
	if err := l.t.o.FS.SyncDir(l.t.o.Dir); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}

// probe removes the samples that the runs may contain.
func (l *Load) probe(runs []*run) {
	older := newOlderRuns(runs)
	l.samples = slices.DeleteFunc(l.samples, func(s loadSample) bool { return older.mayContain(s.user) })
}

// Install adds the files, after Finish, and applies e, whose LastSeq must be seq. All rows
// get the sequence number seq, above all others in files, and the Timestamp stamp. No job
// may begin before readers that start later read at seq. link is called with the files
// before. After an error nothing has changed, unless it is ErrInDoubt; call Abort.
func (l *Load) Install(seq uint64, stamp edm.Ticks, e manifest.Edit, link func([]manifest.File) error) error {
	v := l.t.Version()
	runs := slices.Clone(v.tier(0))
	l.probe(slices.DeleteFunc(runs, func(r *run) bool { return r.number < l.before }))
	v.Unref()
	newKeys := make([]int, len(l.out.done))
	l.probes = append(l.probes, newKeys...)
	for i := range l.samples {
		newKeys[l.samples[i].file]++
	}
	edit, metas := versionEdit{manifest: e}, []manifest.File(nil)
	run := l.t.NewNumber()
	for i, s := range l.out.done {
		meta := s.meta
		meta.Run, meta.MinSeq, meta.MaxSeq, meta.Stamp = run, seq, seq, uint64(stamp)
		meta.Smallest = codec.AppendTrailer(slices.Clone(s.lo), seq, codec.KindPut)
		meta.Largest = codec.AppendTrailer(slices.Clone(s.hi), seq, codec.KindPut)
		meta.NewKeys = keyrange.Share(newKeys[i], l.probes[i])
		s.o.Seq, s.o.Stamp = seq, stamp
		s.opened.Store(nil) // opened without them
		edit.add, metas = append(edit.add, newVirtualSST(s.file, meta, s.bytes)), append(metas, meta)
	}
	if err := link(metas); err != nil {
		return err
	}
	if err := l.t.install(edit); err != nil {
		if errors.Is(err, ErrInDoubt) {
			l.out.keep()
		}
		return fmt.Errorf("install: %w", err)
	}
	l.t.countersMu.Lock()
	defer l.t.countersMu.Unlock()
	l.t.counters.Flushes++
	l.t.counters.FlushedBytes += l.out.bytes
	l.t.counters.FlushedFiles += uint64(len(l.out.done))
	l.out.done = nil
	return nil
}

// Abort removes the files that are not installed.
func (l *Load) Abort() { l.out.discard() }
