package backup

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"syscall"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/archive"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
	dbmanifest "github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/wal"
)

// Source is a database to back up.
type Source struct {
	Account string // an element of a name (CheckName)
	DB      *engine.DB
	FS      vfs.FS // of the database; the default is vfs.OS
	// Scratch is a directory on the volume of the database, for hard links to its files
	// while the backup reads them. Two calls must not use it at a time. Create removes what
	// an earlier call left in it. If it holds other files, such as those of an open database,
	// Create removes nothing, and the error matches fs.ErrExist.
	Scratch string
	// Clock tells the time. It is for tests; the default is time.Now.
	Clock func() time.Time
}

// Progress is called with the bytes that are done and the bytes of all files.
type Progress func(done, total int64)

// Create makes a backup. Reads and writes of the database continue meanwhile. The backup has
// every write that was acknowledged before the call, and no write that began after its Time.
//
// Create copies the files that the backup directory does not have; a Dir on the file system
// of the database gets hard links. After an error, or if ctx ends, there is no new backup,
// unless the write of its manifest, the last step, returned an error after its effect. What
// was copied is not copied again by the next call.
func (r *Repository) Create(ctx context.Context, s Source, progress Progress) (Info, error) {
	if err := checkAccount(s.Account); err != nil {
		return Info{}, err
	}
	if s.FS == nil {
		s.FS = vfs.OS()
	}
	if s.Clock == nil {
		s.Clock = systemNow
	}
	r.writes.Lock()
	defer r.writes.Unlock()
	if err := removeScratch(s.FS, s.Scratch); err != nil {
		return Info{}, fmt.Errorf("back up account %s: scratch directory %q: %w", s.Account, s.Scratch, err)
	}
	c := &creation{Repository: r, Source: s, progress: progress}
	info, err := c.run(ctx)
	if err != nil {
		err = errors.Join(err, removeScratch(s.FS, s.Scratch))
		return Info{}, fmt.Errorf("back up account %s: %w", s.Account, err)
	}
	return info, nil
}

// creation is one Create.
type creation struct {
	*Repository
	Source
	progress Progress

	sizes          map[string]int64 // of the objects that exist
	listed         []dbmanifest.File
	cleaned        bool // the objects that no backup needs are removed
	done, total    int64
	copied, linked int64
}

func (c *creation) run(ctx context.Context) (Info, error) {
	if err := c.Check(ctx); err != nil {
		return Info{}, err
	}
	m := &manifest{Directory: hex.EncodeToString(c.id[:]), Account: c.Account, Tables: []string{}}
	tables, err := c.DB.Tables(ctx, "", 0)
	if err != nil {
		return Info{}, err
	}
	for _, t := range tables {
		m.Tables = append(m.Tables, t.Name)
	}
	if err := c.DB.Checkpoint(ctx, c.Scratch); err != nil {
		return Info{}, err
	}
	now := c.Clock()
	db, err := dbmanifest.Read(c.FS, c.Scratch)
	if err != nil {
		return Info{}, err
	}
	m.Database, m.Epoch = hex.EncodeToString(db.DBID[:]), db.Epoch
	last, at, err := lastWrite(c.FS, c.Scratch, db)
	if err != nil {
		return Info{}, err
	}
	m.LastSequence, m.LastTimestamp = last, at.Time()
	if err := c.files(ctx, m, db); err != nil {
		return Info{}, err
	}
	// Before the manifest: an error after it would leave a backup.
	if err := removeScratch(c.FS, c.Scratch); err != nil {
		return Info{}, fmt.Errorf("remove %s: %w", c.Scratch, err)
	}
	return c.finish(ctx, m, now)
}

// files stores the files of the checkpoint and lists them in m.
func (c *creation) files(ctx context.Context, m *manifest, db *dbmanifest.Manifest) error {
	objects, err := c.target.List(ctx, path.Join(c.Account, filesDir)+"/")
	if err != nil {
		return fmt.Errorf("list the files: %w", err)
	}
	c.sizes = make(map[string]int64, len(objects))
	for _, o := range objects {
		c.sizes[o.Name] = o.Size
	}
	c.listed = db.Files
	info, err := c.FS.Stat(path.Join(c.Scratch, filename.Manifest))
	if err != nil {
		return err
	}
	c.total = info.Size
	for _, l := range db.Logs {
		c.total += l.Sealed
	}
	var ssts []*dbmanifest.File
	seen := make(map[uint64]bool) // a file is listed once for each live range
	for i := range db.Files {
		if f := &db.Files[i]; !seen[f.Number] {
			seen[f.Number] = true
			c.total += f.Size
			ssts = append(ssts, f)
		}
	}
	for _, f := range ssts {
		if err := c.sstable(ctx, m, f); err != nil {
			return err
		}
	}
	for _, l := range db.Logs {
		name := filename.Make(filename.WAL, l.Number)
		if err := c.small(ctx, m, name, func(hash uint64) string { return fileName(c.Account, db.DBID, filename.WAL, l.Number, hash) }); err != nil {
			return err
		}
	}
	return c.small(ctx, m, filename.Manifest, func(hash uint64) string { return listName(c.Account, db.DBID, hash) })
}

// sstable stores an sstable, whose hash the database knows.
func (c *creation) sstable(ctx context.Context, m *manifest, f *dbmanifest.File) error {
	name := filename.Make(filename.SSTable, f.Number)
	return c.store(ctx, m, file{name, c.object(f), f.Size, fmt.Sprintf("%016x", f.Hash)}, true)
}

// object returns the name of the object of an sstable.
func (c *creation) object(f *dbmanifest.File) string {
	return fileName(c.Account, f.Origin, filename.SSTable, f.Number, f.Hash)
}

// small stores a file whose hash is not known.
func (c *creation) small(ctx context.Context, m *manifest, name string, object func(hash uint64) string) error {
	f, err := c.FS.Open(path.Join(c.Scratch, name))
	if err != nil {
		return err
	}
	size, err := f.Size()
	h := xxhash.New()
	if err == nil {
		_, err = io.Copy(h, &contextReader{ctx, io.NewSectionReader(f, 0, size)})
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return c.store(ctx, m, file{name, object(h.Sum64()), size, fmt.Sprintf("%016x", h.Sum64())}, false)
}

// store stores a file of the checkpoint unless its object exists, and lists it in m. A file
// that does not change may be linked.
func (c *creation) store(ctx context.Context, m *manifest, f file, link bool) error {
	size, exists := c.sizes[f.Object]
	from := path.Join(c.Scratch, f.Name)
	d, local := c.target.(*Dir)
	switch {
	case exists && size == f.Bytes:
	case !exists && link && local && d.linkable(c.FS):
		// A copy is compared with the hash, too.
		if err := c.read(from, &f, func(r io.Reader) error { _, err := io.Copy(io.Discard, &contextReader{ctx, r}); return err }); err != nil {
			return fmt.Errorf("read %s: %w", f.Name, err)
		}
		if d.link(from, f.Object) == nil {
			c.linked += f.Bytes
			break
		}
		fallthrough
	default:
		if err := c.withSpace(ctx, m, func() error { return c.copy(ctx, from, &f) }); err != nil {
			return fmt.Errorf("copy %s: %w", f.Name, err)
		}
		c.copied += f.Bytes
	}
	m.Files = append(m.Files, f)
	c.done += f.Bytes
	c.report(0)
	return ctx.Err()
}

func (c *creation) report(extra int64) {
	if c.progress != nil {
		c.progress(c.done+extra, c.total)
	}
}

// copy stores a file.
func (c *creation) copy(ctx context.Context, from string, f *file) error {
	return c.read(from, f, func(r io.Reader) error { return c.target.Put(ctx, f.Object, r) })
}

// withSpace calls put, and once more if the target was full and freeSpace removed something.
func (c *creation) withSpace(ctx context.Context, m *manifest, put func() error) error {
	err := put()
	if (errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)) && c.freeSpace(ctx, m) {
		err = put()
	}
	return err
}

// freeSpace removes, once, the objects that earlier calls left when they failed and that neither
// a backup nor m needs: until a call succeeds, Prune is not called. It reports whether it
// removed any.
func (c *creation) freeSpace(ctx context.Context, m *manifest) (removed bool) {
	if c.cleaned {
		return false
	}
	c.cleaned = true
	names, err := c.names(ctx, c.Account)
	if err != nil {
		return false
	}
	needed := make(map[string]bool)
	for _, name := range names {
		kept, err := c.manifest(ctx, name)
		if err != nil {
			return false // it may need any of them
		}
		kept.objects(needed)
	}
	m.objects(needed)
	for i := range c.listed {
		needed[c.object(&c.listed[i])] = true
	}
	for name := range c.sizes {
		if !needed[name] && c.target.Delete(ctx, name) == nil {
			delete(c.sizes, name)
			removed = true
		}
	}
	return removed
}

// read calls store with a reader of a file that compares the bytes with the hash.
func (c *creation) read(from string, f *file, store func(r io.Reader) error) error {
	src, err := c.FS.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	return store(&checkedReader{r: io.NewSectionReader(src, 0, f.Bytes), name: f.Name, file: f, report: c.report})
}

// finish writes the manifest. Its id is greater than those of the backups before, also if
// the clock was ahead when they were made.
func (c *creation) finish(ctx context.Context, m *manifest, now time.Time) (Info, error) {
	if err := c.Check(ctx); err != nil { // copying took a while
		return Info{}, err
	}
	names, err := c.names(ctx, c.Account)
	if err != nil {
		return Info{}, err
	}
	if len(names) > 0 {
		_, id, _ := splitManifestName(names[len(names)-1])
		if newest, err := parseBackupID(id); err == nil && !now.After(newest) {
			now = newest.Add(100)
		}
	}
	for at := now.UTC().Truncate(100); ; at = at.Add(100) {
		m.Time = at
		b, err := encodeManifest(m)
		if err != nil {
			return Info{}, err
		}
		err = c.withSpace(ctx, m, func() error {
			return c.target.PutIfAbsent(ctx, backupName(c.Account, backupID(at)), bytes.NewReader(b))
		})
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return Info{}, fmt.Errorf("write the manifest: %w", err)
		}
		info := m.info()
		info.CopiedBytes, info.LinkedBytes = c.copied, c.linked
		return info, nil
	}
}

// lastWrite returns the last sequence number in a checkpoint and a Timestamp that is not below
// that of any write in it, and below that of any other write.
func lastWrite(fsys vfs.FS, dir string, m *dbmanifest.Manifest) (last uint64, at edm.Ticks, err error) {
	last, at = m.LastSeq, edm.Ticks(m.HighWater)
	for i := len(m.Logs) - 1; i >= 0; i-- {
		l := m.Logs[i]
		span := archive.Span{Name: filename.Make(filename.WAL, l.Number)}
		_, err := wal.Replay(fsys, path.Join(dir, span.Name), wal.ReplayOptions{
			DBID: m.DBID, Number: l.Number, Image: make([]byte, l.Sealed), Sealed: l.Sealed,
		}, span.Add)
		if err != nil {
			return 0, 0, fmt.Errorf("read the log: %w", err)
		}
		last, at = max(last, span.Last), max(at, span.To)
		if span.Last > 0 {
			break
		}
	}
	return last, at, nil
}

// checkedReader returns the bytes of a file, and damage at the end unless they have its
// size and hash.
type checkedReader struct {
	r      io.Reader
	name   string // for the error
	file   *file
	report func(n int64)
	hash   xxhash.Digest
	n      int64
	begun  bool
}

func (c *checkedReader) Read(p []byte) (int, error) {
	if !c.begun {
		c.begun = true
		c.hash.Reset()
	}
	n, err := c.r.Read(p)
	_, _ = c.hash.Write(p[:n])
	c.n += int64(n)
	c.report(c.n)
	if err != io.EOF {
		return n, err
	}
	if got := fmt.Sprintf("%016x", c.hash.Sum64()); c.n != c.file.Bytes || got != c.file.Hash {
		return n, corrupt.Newf(c.name, 0, "%d bytes with the hash %s, want %d with %s", c.n, got, c.file.Bytes, c.file.Hash)
	}
	return n, io.EOF
}

// removeScratch removes a checkpoint, whole or not, if it exists. It removes nothing if there
// are other files: the directory of an open database has a lock file and others besides.
func removeScratch(fsys vfs.FS, dir string) error {
	if dir == "" {
		return errNoPath
	}
	names, err := fsys.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, name := range names {
		kind, _ := filename.Parse(name)
		if kind != filename.WAL && kind != filename.SSTable && name != filename.Manifest && name != filename.ManifestTemp {
			return fmt.Errorf("%w: it holds %s, which no backup left; name a directory that does not exist", fs.ErrExist, name)
		}
	}
	return removeAll(fsys, dir)
}

// removeAll removes a directory with its files and directories, if it exists.
func removeAll(fsys vfs.FS, dir string) error {
	names, err := fsys.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		name = path.Join(dir, name)
		if info, statErr := fsys.Stat(name); statErr == nil && info.Dir {
			err = errors.Join(err, removeAll(fsys, name))
			continue
		}
		err = errors.Join(err, fsys.Remove(name))
	}
	if err != nil {
		return err // not also that the directory is not empty
	}
	return fsys.Remove(dir)
}
