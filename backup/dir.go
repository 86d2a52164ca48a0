package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/tablerock-db/tablerock/vfs"
)

// Dir is a Target in a directory: the file of an object has the name of the object. An
// object becomes visible by a rename or a link of a synced file of tempDir.
//
// One process at a time writes to a directory: hold Lock while you call Put, PutIfAbsent
// and Delete. Get and List need no lock.
type Dir struct {
	fs   vfs.FS
	dir  string
	temp atomic.Uint64 // number of the last temporary file

	mu sync.Mutex // makes directories, and names where the file system has no links
	// made has the directories, relative to dir, that are durable.
	// +checklocks:mu
	made map[string]bool
	// doubtful has the directories in which a failed call may have left a new name, or the removal
	// of one, that is not durable.
	// +checklocks:mu
	doubtful map[string]bool
}

// Names in a directory that are no objects.
const (
	lockName = ".lock"
	tempDir  = ".tmp"
)

// copyBytes is the size of the pieces in which objects are copied.
const copyBytes = 1 << 20

// errNoPath is the error for "" in the place of a directory, which is not the working directory.
var errNoPath = errors.New("the path of the directory is empty")

// NewDir returns the Target in dir, a path with slashes. The first Lock creates the
// directory. If dir is "", all calls fail.
func NewDir(fsys vfs.FS, dir string) *Dir {
	if dir != "" {
		dir = path.Clean(dir)
	}
	return &Dir{fs: fsys, dir: dir, made: make(map[string]bool), doubtful: make(map[string]bool)}
}

// Lock creates the directory if it does not exist, locks it for this process, removes
// temporary files that a crash left, and makes all objects durable that an earlier process
// stored. If another holder has the lock, the error is a *vfs.LockedError. Close of the
// result releases the lock.
func (d *Dir) Lock() (io.Closer, error) {
	if err := d.makeDir("."); err != nil {
		return nil, err
	}
	lock, err := d.fs.Lock(path.Join(d.dir, lockName))
	if err != nil {
		return nil, err
	}
	err = d.removeTemp()
	if err == nil {
		err = d.syncTree(d.dir)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare %s: %w", d.dir, err), lock.Close())
	}
	return lock, nil
}

// syncTree makes the names in a directory and all below it durable. It leaves out those that no
// object has: a user may not read lost+found, which a new volume has.
func (d *Dir) syncTree(dir string) error {
	names, err := d.fs.List(dir)
	for _, name := range names {
		if CheckName(name) != nil {
			continue
		}
		name = path.Join(dir, name)
		if info, statErr := d.fs.Stat(name); statErr == nil && info.Dir {
			err = errors.Join(err, d.syncTree(name))
		}
	}
	return errors.Join(err, d.fs.SyncDir(dir))
}

func (d *Dir) removeTemp() error {
	dir := path.Join(d.dir, tempDir)
	if err := d.checkDirs(tempDir); err != nil {
		return err
	}
	names, err := d.fs.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, name := range names {
		err = errors.Join(err, d.fs.Remove(path.Join(dir, name)))
	}
	return err
}

// Put implements Target.
func (d *Dir) Put(ctx context.Context, name string, r io.Reader) error {
	return d.put(ctx, name, r, func(temp, final string) error { return d.fs.Rename(temp, final) })
}

// PutIfAbsent implements Target.
func (d *Dir) PutIfAbsent(ctx context.Context, name string, r io.Reader) error {
	if err := CheckName(name); err != nil {
		return err
	}
	// Without this check, a call for an existing object would copy all of r.
	switch _, err := d.fs.Stat(path.Join(d.dir, name)); {
	case err == nil:
		if err := d.fs.SyncDir(path.Join(d.dir, path.Dir(name))); err != nil {
			return err // another call may have stored the object and not made it durable yet
		}
		return &fs.PathError{Op: "put", Path: name, Err: fs.ErrExist}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return d.put(ctx, name, r, d.moveIfAbsent)
}

// moveIfAbsent gives a file the name final unless that exists.
func (d *Dir) moveIfAbsent(temp, final string) error {
	err := d.fs.Link(temp, final)
	if err == nil {
		return d.fs.Remove(temp)
	}
	if errors.Is(err, fs.ErrExist) {
		return err
	}
	// The file system has no hard links.
	d.mu.Lock()
	defer d.mu.Unlock()
	switch _, err := d.fs.Stat(final); {
	case err == nil:
		return &fs.PathError{Op: "put", Path: final, Err: fs.ErrExist}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return d.fs.Rename(temp, final)
}

// put writes a temporary file and calls move to give it its name.
func (d *Dir) put(ctx context.Context, name string, r io.Reader, move func(temp, final string) error) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if err := d.makeDir(path.Dir(name)); err != nil {
		return err
	}
	if err := d.makeDir(tempDir); err != nil {
		return err
	}
	temp := path.Join(d.dir, tempDir, fmt.Sprint(d.temp.Add(1)))
	err := d.write(ctx, temp, r)
	if err == nil {
		err = d.named(name, move(temp, path.Join(d.dir, name)))
	}
	if err != nil {
		_ = d.fs.Remove(temp) // if it fails, the next Lock removes it
	}
	return err
}

// named makes a new name durable, or the removal of one, unless err says that there is none, and
// also a name that exists, because another call may have stored the object meanwhile and not made
// it durable yet. After another error the change may have happened all the same, and List makes it
// durable before it shows it.
func (d *Dir) named(name string, err error) error {
	dir := path.Dir(name)
	if err == nil || errors.Is(err, fs.ErrExist) {
		err = cmp.Or(d.fs.SyncDir(path.Join(d.dir, dir)), err)
	}
	if err != nil {
		d.mu.Lock()
		d.doubtful[dir] = true
		d.mu.Unlock()
	}
	return err
}

// syncDoubtful makes durable what failed calls left.
func (d *Dir) syncDoubtful() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for dir := range d.doubtful {
		if err := d.fs.SyncDir(path.Join(d.dir, dir)); err != nil {
			return err
		}
		delete(d.doubtful, dir)
	}
	return nil
}

// write creates a file with the bytes of r and syncs it.
func (d *Dir) write(ctx context.Context, name string, r io.Reader) error {
	f, err := d.fs.Create(name)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(&offsetWriter{f: f}, &contextReader{ctx, r}, make([]byte, copyBytes))
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// linkable reports whether files of fsys may be on the file system of d.
func (d *Dir) linkable(fsys vfs.FS) bool { return d.fs == fsys }

// link stores the file of that path, which must never change, as an object by a hard
// link. It fails if that is not possible, and if the object exists.
func (d *Dir) link(file, name string) error {
	if err := d.makeDir(path.Dir(name)); err != nil {
		return err
	}
	return d.named(name, d.fs.Link(file, path.Join(d.dir, name)))
}

// makeDir makes a directory, relative to d, and its parents durable.
func (d *Dir) makeDir(rel string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.made[rel] {
		return nil
	}
	if err := d.checkDirs(rel); err != nil {
		return err
	}
	dir := path.Join(d.dir, rel)
	if err := d.fs.MkdirAll(dir); err != nil {
		return err
	}
	if err := vfs.SyncParents(d.fs, dir); err != nil {
		return err
	}
	d.made[rel] = true
	return nil
}

// Get implements Target.
func (d *Dir) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	if err := d.checkDirs(path.Dir(name)); err != nil {
		return nil, err
	}
	f, err := d.fs.Open(path.Join(d.dir, name))
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, fmt.Errorf("%w: %w", fs.ErrNotExist, err) // d is a file
	}
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &struct {
		io.Reader
		io.Closer
	}{&contextReader{ctx, io.NewSectionReader(f, 0, size)}, f}, nil
}

// checkDirs returns an error if d has no path, or if a directory of rel exists and is something
// else: a symbolic link would lead out of d.
func (d *Dir) checkDirs(rel string) error {
	if d.dir == "" {
		return errNoPath
	}
	for ; rel != "."; rel = path.Dir(rel) {
		if info, err := d.fs.Stat(path.Join(d.dir, rel)); err == nil && !info.Dir {
			return errNoDirectory(path.Join(d.dir, rel))
		}
	}
	return nil
}

func errNoDirectory(name string) error {
	return fmt.Errorf("%s is not a directory; a symbolic link is not followed, so mount the other volume there", name)
}

// List implements Target.
func (d *Dir) List(ctx context.Context, prefix string) ([]Object, error) {
	rel := "."
	if i := strings.LastIndexByte(prefix, '/'); i >= 0 {
		rel = prefix[:i]
		if err := CheckName(rel); err != nil {
			return nil, err
		}
	}
	if err := d.checkDirs(rel); err != nil {
		return nil, err
	}
	if err := d.syncDoubtful(); err != nil {
		return nil, err
	}
	objects, err := d.appendObjects(ctx, nil, rel, prefix)
	// A directory "a" is listed before a file "a-b", and "a-b" sorts before "a/b".
	slices.SortFunc(objects, func(a, b Object) int { return strings.Compare(a.Name, b.Name) })
	return objects, err
}

// appendObjects appends the objects below a directory whose names begin with prefix.
func (d *Dir) appendObjects(ctx context.Context, objects []Object, rel, prefix string) ([]Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	elements, err := d.fs.List(path.Join(d.dir, rel))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, element := range elements {
		name := path.Join(rel, element)
		if CheckName(name) != nil || !strings.HasPrefix(name, prefix) && !strings.HasPrefix(prefix, name+"/") {
			continue
		}
		info, err := d.fs.Stat(path.Join(d.dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		case info.Dir:
			if objects, err = d.appendObjects(ctx, objects, name, prefix); err != nil {
				return nil, err
			}
		case info.Regular && strings.HasPrefix(name, prefix):
			objects = append(objects, Object{name, info.Size})
		case !info.Regular:
			return nil, errNoDirectory(path.Join(d.dir, name))
		}
	}
	return objects, nil
}

// Delete implements Target.
func (d *Dir) Delete(ctx context.Context, name string) error {
	if err := errors.Join(CheckName(name), ctx.Err()); err != nil {
		return err
	}
	if err := d.checkDirs(path.Dir(name)); err != nil {
		return err
	}
	err := d.fs.Remove(path.Join(d.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := d.fs.Stat(path.Join(d.dir, path.Dir(name))); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		err = nil // an earlier call may have removed the object, which may not be durable
	}
	return d.named(name, err)
}

// syncBytes is how much is written to a file between two syncs: nothing ends a sync, and that of
// 1 GiB can take 10 s.
const syncBytes = 32 << 20

// offsetWriter appends to a file, and syncs it after each syncBytes. The end is not synced.
type offsetWriter struct {
	f           vfs.File
	off, synced int64
}

func (w *offsetWriter) Write(p []byte) (int, error) {
	if w.off-w.synced >= syncBytes {
		if err := w.f.Sync(); err != nil {
			return 0, err
		}
		w.synced = w.off
	}
	n, err := w.f.WriteAt(p, w.off)
	w.off += int64(n)
	return n, err
}
