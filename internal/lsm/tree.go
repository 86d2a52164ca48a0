package lsm

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/bound"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/keyrange"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/pick"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/runs"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/trash"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/vfs"
)

// Tree is the set of live files of a database. It owns the manifest. All methods may
// be called concurrently.
type Tree struct {
	o       Options
	dbid    [16]byte
	epoch   uint64 // of the manifest
	current atomic.Pointer[Version]
	// next is the next number. It is not guarded by mu: a log segment needs its number
	// while the manifest is written.
	next atomic.Uint64

	// jobsMu guards the choice of jobs. It comes before mu. Options.Snapshots and
	// Options.Dropped are called under it, and by the steps of jobs without it.
	jobsMu sync.Mutex
	// compacting and flushing are the jobs under way.
	// +checklocks:jobsMu
	compacting *Job
	// +checklocks:jobsMu
	flushing *Job
	// +checklocks:jobsMu
	policy pick.Policy

	// mu is locked while the manifest is written. Readers do not take it.
	// Options.ProvenLogs is called under it.
	mu sync.Mutex
	// m is the content of the manifest file.
	// +checklocks:mu
	m manifest.Manifest
	// doubt is set, under mu, when it is unknown which manifest a crash would leave.
	doubt atomic.Pointer[error]

	countersMu sync.Mutex
	// +checklocks:countersMu
	counters Counters

	deleted keyrange.Deleted
	merged  atomic.Int64 // pick.Picker.Merged

	opener runs.Opener
	trash  trash.Trash
}

// ErrInDoubt is wrapped by the error of a change whose manifest may or may not survive
// a crash, and of every later change. Reads still work. The next open of the database
// shows which manifest survived.
var ErrInDoubt = errors.New("it is unknown whether a change to the manifest is durable")

// Open opens every file that m lists. It returns a *corrupt.Error if a file is missing or has
// another size. The first use of a file reads its header, footer, index and filter and may find
// that it is damaged or another file; only those of clipped files are read by Open. Open writes
// nothing. The Tree owns m.
func Open(o Options, m *manifest.Manifest) (*Tree, error) {
	o = o.withDefaults()
	t := &Tree{
		o: o, dbid: m.DBID, epoch: m.Epoch, m: *m,
		opener: runs.Opener{FS: o.FS, Dir: o.Dir, Cache: o.Cache, CacheDB: o.CacheDB},
		trash:  trash.Trash{FS: o.FS, Dir: o.Dir, Logger: o.Logger},
	}
	files := make(map[uint64]*runs.File, len(m.Files))
	v, err := t.openVersion(m.Files, files)
	if err != nil {
		t.close(slices.Collect(maps.Values(files))...)
		return nil, err
	}
	v.refFiles()
	t.current.Store(v)
	t.next.Store(m.NextFile)
	return t, nil
}

func (t *Tree) openVersion(metas []manifest.File, files map[uint64]*runs.File) (*Version, error) {
	ssts := make([]*runs.SST, 0, len(metas))
	for i := range metas {
		meta := metas[i]
		if err := bound.Check(&meta); err != nil {
			return nil, err
		}
		f := files[meta.Number]
		if f == nil {
			var err error
			f, err = t.opener.Open(&meta)
			if errors.Is(err, fs.ErrNotExist) {
				return nil, corrupt.Newf(filename.Make(filename.SSTable, meta.Number), 0, "the manifest lists it, but there is no such file")
			}
			if errors.Is(err, vfs.ErrNotRegular) {
				return nil, corrupt.Newf(filename.Make(filename.SSTable, meta.Number), 0, "the manifest lists it, but it is not a regular file")
			}
			if err != nil {
				return nil, err
			}
			files[meta.Number] = f
		}
		s, err := runs.NewSST(f, meta, meta.Size).Measured()
		if err != nil {
			return nil, err
		}
		if s.Entries == 0 {
			return nil, corrupt.Newf(filename.Make(filename.SSTable, meta.Number), 0, "it has no entries, the manifest lists %d", meta.Entries)
		}
		ssts = append(ssts, s)
	}
	v, err := newVersion(t, ssts)
	if err != nil {
		return nil, corrupt.Newf(filename.Manifest, 0, "%v", err)
	}
	return v, nil
}

// FoundDeleted tells t that a query has passed n tombstones of files, and no row, in [lower, upper), which
// it copies. It reports whether a compaction of what queries have passed there is due.
func (t *Tree) FoundDeleted(lower, upper []byte, n int) bool { return t.deleted.Add(lower, upper, n) }

// For each run that a query merges with another one, it takes as long as a compaction of mergedRun bytes, and
// for each entity as long as one of mergedEntity bytes. Measured with four runs of entities of 200 bytes.
const (
	mergedRun    = 256
	mergedEntity = 8
)

// Merged tells t that a query has merged some runs with another one, and how many entities it has passed. It
// reports whether queries have spent as much on that, with this one, as a compaction of these runs takes.
func (t *Tree) Merged(runs, entities int) (due bool) {
	v := t.current.Load()
	if v == nil {
		return false
	}
	n := int64(runs) * (mergedRun + mergedEntity*int64(entities))
	spent := t.merged.Add(n)
	return spent >= v.mergeCost && spent-n < v.mergeCost
}

// Version returns the current version, pinned until its Unref. Do not call it after
// Close.
func (t *Tree) Version() *Version {
	for {
		// tryRef fails if another version became current after the load.
		if v := t.current.Load(); v.tryRef() {
			return v
		}
	}
}

// Failure returns the ErrInDoubt after which the Tree refuses changes, nil if there was
// none. It does not wait for a change under way.
func (t *Tree) Failure() error {
	if doubt := t.doubt.Load(); doubt != nil {
		return *doubt
	}
	return nil
}

// Manifest returns a copy of the manifest.
func (t *Tree) Manifest() manifest.Manifest {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.m.Clone()
	m.NextFile = t.next.Load()
	return *m
}

// Update applies e to the manifest and returns when that is durable.
func (t *Tree) Update(e manifest.Edit) error { return t.install(versionEdit{manifest: e}) }

// RecordLogs writes a manifest that records Options.ProvenLogs. It returns when
// the manifest is durable.
func (t *Tree) RecordLogs() error { return t.install(versionEdit{}) }

// Close closes the files. Abort the jobs under way first. The last Unref of a pinned version closes the files of that version
// and removes none, because the directory can have another owner by then: obsolete ones are leftovers for the next open. A
// second Close does nothing.
func (t *Tree) Close() error {
	v := t.current.Swap(nil)
	if v == nil {
		return nil
	}
	defer t.trash.Close()
	defer v.Unref()
	t.trash.Empty()
	return nil
}

// NewNumber returns an unused number for a file, a run or a log segment. The next
// manifest records it.
func (t *Tree) NewNumber() uint64 { return t.next.Add(1) - 1 }

// SkipNumbers makes next the least number that NewNumber returns from now on.
func (t *Tree) SkipNumbers(next uint64) {
	for n := t.next.Load(); n < next && !t.next.CompareAndSwap(n, next); n = t.next.Load() {
	}
}

// versionEdit is a change of the current version and its manifest.
type versionEdit struct {
	// The current version must contain all of remove.
	remove, add []*runs.SST
	manifest    manifest.Edit
}

// apply returns the version after e.
func (e *versionEdit) apply(v *Version) (*Version, error) {
	gone := make(map[*runs.SST]bool, len(e.remove))
	for _, s := range e.remove {
		gone[s] = true
	}
	ssts := slices.DeleteFunc(v.runs.SSTs(), func(s *runs.SST) bool {
		if !gone[s] {
			return false
		}
		delete(gone, s)
		return true
	})
	if len(gone) > 0 {
		return nil, fmt.Errorf("%d inputs are not live", len(gone))
	}
	return newVersion(v.tree, append(ssts, e.add...))
}

// install makes e durable, and then visible.
func (t *Tree) install(e versionEdit) error {
	old, err := t.replaceVersion(e)
	if err != nil {
		return err
	}
	if old != nil {
		defer old.Unref()
	}
	t.trash.Empty()
	return nil
}

// replaceVersion makes e durable, and returns the version that it has replaced, nil if e does not change it.
func (t *Tree) replaceVersion(e versionEdit) (old *Version, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.Failure(); err != nil {
		return nil, err
	}
	old = t.current.Load()
	if old == nil {
		return nil, errors.New("the tree is closed")
	}
	next := old
	if len(e.remove)+len(e.add) > 0 {
		if next, err = e.apply(old); err != nil {
			return nil, err
		}
	}
	m := t.m.Clone()
	e.manifest.Proven = t.o.ProvenLogs()
	m.Apply(e.manifest)
	m.NextFile = t.next.Load()
	m.Files = next.Files()
	m.Sort()
	if t.o.CompactedCompression == sstable.CompressionSmall {
		m.RequireZstd()
	}
	if err := t.writeLocked(m); err != nil {
		return nil, err
	}
	t.m = *m
	if next == old {
		return nil, nil
	}
	next.refFiles()
	old.runs.Replaced(next.runs)
	t.current.Store(next)
	return old, nil
}

// writeLocked replaces the manifest. After an error it reads the manifest: if it is the old one,
// nothing has changed.
// +checklocks:t.mu
func (t *Tree) writeLocked(m *manifest.Manifest) (err error) {
	inDoubt, cause := true, errPanic
	defer func() {
		if inDoubt {
			doubt := fmt.Errorf("%w: %w", ErrInDoubt, cause)
			t.doubt.Store(&doubt)
			err = doubt
		}
	}()
	if cause = manifest.Write(t.o.FS, t.o.Dir, m); cause == nil {
		inDoubt = false
		return nil
	}
	found, rerr := manifest.Read(t.o.FS, t.o.Dir)
	inDoubt = rerr != nil || !found.Same(&t.m)
	return cause
}

// close closes files that no version refers to.
func (t *Tree) close(files ...*runs.File) {
	numbers := make([]uint64, len(files))
	for i, f := range files {
		numbers[i] = f.Number
		if err := f.Close(); err != nil {
			t.o.Logger.Warn("close failed", "file", filename.Make(filename.SSTable, f.Number), "cause", err)
		}
	}
	if t.o.Cache != nil && len(files) > 0 {
		t.o.Cache.Drop(t.o.CacheDB, numbers...)
	}
}
