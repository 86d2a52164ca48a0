package lsm

import (
	"fmt"
	"slices"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/keyrange"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/runs"
	"github.com/tablerock-db/tablerock/internal/manifest"
)

// Load writes rows to files that Install adds to the tree as its newest run. It belongs to one
// goroutine, and may run beside jobs and other Loads. Call Install or Abort at the end.
type Load struct {
	t      *Tree
	out    output
	serial bool // no goroutine finishes files
	key    []byte
	// samples has keys that are not in the runs with the numbers in seen.
	samples keyrange.Samples
	seen    []uint64
}

// NewLoad returns a Load of about the given number of rows. Unless serial, it writes a file while
// it waits for the one before.
func (t *Tree) NewLoad(rows int, serial bool) *Load {
	v := t.Version()
	defer v.Unref()
	// Without overlap the files are moved to the bottom as they are.
	out := output{t: t, fileBytes: t.o.FileBytes, compression: t.o.CompactedCompression, overlap: v.runs.FileLimit(rows)}
	return &Load{t: t, out: out, serial: serial}
}

// Add adds a row with a user key above the one before. The Timestamp of all rows must be
// one that is durably below the high-water mark.
func (l *Load) Add(user []byte, row codec.ShapedRow) error {
	if l.out.full(user) {
		if err := l.out.endFile(!l.serial); err != nil {
			return err
		}
	}
	l.key = codec.AppendTrailer(append(l.key[:0], user...), 0, codec.KindPut)
	if err := l.out.add(l.key, user, row); err != nil {
		return err
	}
	l.samples.Add(l.out.files(), user)
	return nil
}

// Finish makes the files durable.
func (l *Load) Finish() error {
	if err := l.out.finish(); err != nil {
		return err
	}
	v := l.t.Version()
	defer v.Unref()
	for _, r := range v.runs.Tier(0) {
		l.seen = append(l.seen, r.Number)
	}
	l.samples.Remove(runs.NewOlder(v.runs).MayContain)
	if err := l.t.o.FS.SyncDir(l.t.o.Dir); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}

// Install adds the files, after Finish, and applies e, whose LastSeq must be seq. All rows get the
// sequence number seq, above all others in files, and the Timestamp stamp. No job may begin before
// readers that start later read at seq. link is called with the files before. After an error
// nothing has changed, unless it is ErrInDoubt; call Abort.
func (l *Load) Install(seq uint64, stamp edm.Ticks, e manifest.Edit, link func([]manifest.File) error) error {
	v := l.t.Version()
	unseen := slices.DeleteFunc(slices.Clone(v.runs.Tier(0)), func(r *runs.Run) bool { return slices.Contains(l.seen, r.Number) })
	l.samples.Remove(runs.NewOlder(unseen).MayContain)
	v.Unref()
	shares := l.samples.Shares(len(l.out.done))
	edit, metas := versionEdit{manifest: e}, []manifest.File(nil)
	run := l.t.NewNumber()
	for i, s := range l.out.done {
		meta := s.Meta
		meta.Run, meta.MinSeq, meta.MaxSeq, meta.Stamp = run, seq, seq, uint64(stamp)
		meta.Smallest = codec.AppendTrailer(slices.Clone(s.Lo), seq, codec.KindPut)
		meta.Largest = codec.AppendTrailer(slices.Clone(s.Hi), seq, codec.KindPut)
		meta.NewKeys = shares[i]
		s.Assign(seq, stamp)
		edit.add, metas = append(edit.add, runs.NewSST(s.File, meta, s.Bytes)), append(metas, meta)
	}
	if err := link(metas); err != nil {
		return err
	}
	if err := l.out.install(edit); err != nil {
		return fmt.Errorf("install: %w", err)
	}
	l.t.countersMu.Lock()
	defer l.t.countersMu.Unlock()
	l.t.counters.Flushes++
	l.t.counters.FlushedBytes += l.out.bytes
	l.t.counters.FlushedFiles += uint64(len(metas))
	return nil
}

// Abort removes the files that are not installed.
func (l *Load) Abort() { l.out.discard() }
