package plant

import (
	"io"
	"path"
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/vfs"
)

// match selects files by their names. It may count its calls.
type match func(name string) bool

func always(string) bool { return true }

func ext(kind filename.Kind) match {
	return func(name string) bool { return path.Ext(name) == string(kind) }
}

func base(b string) match { return func(name string) bool { return path.Base(name) == b } }

// every accepts each n-th name that m accepts.
func every(n uint64, m match) match {
	var count atomic.Uint64
	return func(name string) bool { return m(name) && count.Add(1)%n == 0 }
}

// first accepts each name once.
func first(m match) match {
	var seen sync.Map
	return func(name string) bool {
		if !m(name) {
			return false
		}
		_, again := seen.LoadOrStore(name, true)
		return !again
	}
}

// traits are the bugs of a badFS, each for the files that its match accepts.
type traits struct {
	sync         match // Sync does nothing
	lateSync     match // Sync happens at the next SyncDir
	syncReopened match // Sync does nothing on files that were opened and not created
	syncDir      match // SyncDir does nothing
	syncDirAfter match // SyncDir does nothing if such a file was created or renamed last
	short        match // WriteAt omits the last sector
	misplace     match // WriteAt writes eight bytes too far
	drop         match // WriteAt writes nothing
	blind        match // ReadAt returns zeros from 4608 on
	removeFirst  bool  // Rename removes its target first
	removeEarly  bool  // a log is removed before the manifest that drops it
	copyLinks    bool  // Link copies
}

func (m match) is(name string) bool { return m != nil && m(name) }

// badFS is a file system with one bug.
type badFS struct {
	vfs.FS
	t traits

	mu   sync.Mutex
	last string // +checklocks:mu
	late []vfs.File
}

func (b *badFS) touched(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = name
}

// Create implements vfs.FS.
func (b *badFS) Create(name string) (vfs.File, error) {
	b.touched(name)
	if b.t.removeEarly && base(filename.ManifestTemp)(name) {
		b.removeOldest(path.Dir(name))
	}
	f, err := b.FS.Create(name)
	if err != nil {
		return nil, err
	}
	return &badFile{File: f, b: b, name: name}, nil
}

// removeOldest durably removes the oldest log if there is another one: the next manifest
// may drop it.
func (b *badFS) removeOldest(dir string) {
	names, _ := b.FS.List(dir)
	var logs []string
	for _, n := range names {
		if kind, _ := filename.Parse(n); kind == filename.WAL {
			logs = append(logs, n)
		}
	}
	if len(logs) > 1 && b.FS.Remove(path.Join(dir, logs[0])) == nil {
		_ = b.FS.SyncDir(dir)
	}
}

// Open implements vfs.FS.
func (b *badFS) Open(name string) (vfs.File, error) { return b.wrap(name, b.FS.Open) }

// OpenReadWrite implements vfs.FS.
func (b *badFS) OpenReadWrite(name string) (vfs.File, error) {
	return b.wrap(name, b.FS.OpenReadWrite)
}

func (b *badFS) wrap(name string, open func(string) (vfs.File, error)) (vfs.File, error) {
	f, err := open(name)
	if err != nil {
		return nil, err
	}
	return &badFile{File: f, b: b, name: name, reopened: true}, nil
}

// Rename implements vfs.FS.
func (b *badFS) Rename(oldname, newname string) error {
	b.touched(newname)
	if b.t.removeFirst {
		_ = b.FS.Remove(newname) // there may be none
	}
	return b.FS.Rename(oldname, newname)
}

// Link implements vfs.FS.
func (b *badFS) Link(oldname, newname string) error {
	if !b.t.copyLinks {
		return b.FS.Link(oldname, newname)
	}
	data, err := vfs.ReadFile(b.FS, oldname, 1<<30)
	if err != nil {
		return err
	}
	f, err := b.FS.Create(newname)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(data, 0); err != nil {
		return err
	}
	return f.Close()
}

// SyncDir implements vfs.FS.
func (b *badFS) SyncDir(dir string) error {
	b.mu.Lock()
	last, late := b.last, b.late
	b.late = nil
	b.mu.Unlock()
	if b.t.syncDir.is(dir) || b.t.syncDirAfter.is(last) {
		return nil
	}
	err := b.FS.SyncDir(dir)
	for _, f := range late {
		_ = f.Sync() // this is too late, which is the bug
	}
	return err
}

// Lock implements vfs.FS.
func (b *badFS) Lock(name string) (io.Closer, error) { return b.FS.Lock(name) }

// badFile is a file of a badFS.
type badFile struct {
	vfs.File
	b        *badFS
	name     string
	reopened bool
}

// Sync implements vfs.File.
func (f *badFile) Sync() error {
	t := &f.b.t
	switch {
	case t.sync.is(f.name), f.reopened && t.syncReopened.is(f.name):
		return nil
	case t.lateSync.is(f.name):
		f.b.mu.Lock()
		defer f.b.mu.Unlock()
		again, err := f.b.FS.Open(f.name)
		if err == nil {
			f.b.late = append(f.b.late, again)
		}
		return err
	}
	return f.File.Sync()
}

const sectorBytes = 512

// WriteAt implements vfs.File.
func (f *badFile) WriteAt(p []byte, off int64) (int, error) {
	t := &f.b.t
	done := p
	switch {
	case t.drop.is(f.name):
		return len(p), nil
	case t.misplace.is(f.name):
		off += 8
	case t.short.is(f.name):
		end := off + int64(len(p))
		done = p[:max(0, (end-1)/sectorBytes*sectorBytes-off)]
	}
	if len(done) == 0 {
		return len(p), nil
	}
	if n, err := f.File.WriteAt(done, off); err != nil {
		return n, err
	}
	return len(p), nil
}

// ReadAt implements vfs.File.
func (f *badFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	if !f.b.t.blind.is(f.name) {
		return n, err
	}
	const firstSector = 4096 + sectorBytes
	if from := max(firstSector-off, 0); from < int64(n) {
		clear(p[from:n])
	}
	return n, err
}
