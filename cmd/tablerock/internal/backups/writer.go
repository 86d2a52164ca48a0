// Package backups has the commands that back up and restore databases.
package backups

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/tablerock-db/tablerock/backup"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/datadir"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// scratch begins the name of the directory in a data directory that the backup of an account
// uses and removes.
const scratch = ".backup-"

// Database is an open database.
type Database struct {
	Account string
	DB      *engine.DB
}

// Writer writes to a backup directory and keeps it locked. Its methods may be called
// concurrently.
type Writer struct {
	dir    string
	target *backup.Dir
	repo   *backup.Repository
	lock   io.Closer
	mu     sync.Mutex // one Create at a time: they share the scratch directory
}

// NewWriter locks the backup directory dir, and makes one if it does not exist or is empty.
// It must not be inside the data directory data.
func NewWriter(ctx context.Context, dir, data string) (*Writer, error) {
	if inside(dir, data) {
		err := fmt.Errorf("%s: %w: it is inside the data directory %s", dir, backup.ErrNotBackup, data)
		return nil, hint.With(&kindError{err, store.ErrNotDatabase}, "name a directory elsewhere, best on another disk")
	}
	target := backup.NewDir(vfs.OS(), filepath.ToSlash(dir))
	// Ask first, so that nothing is created in a directory that is not a backup directory.
	if _, err := backup.Open(ctx, target); err != nil {
		objects, listErr := vfs.OS().List(filepath.ToSlash(dir))
		if !errors.Is(err, backup.ErrNotBackup) || errors.Is(listErr, syscall.ENOTDIR) || listErr == nil && len(objects) > 0 && !own(objects) {
			return nil, of(dir, err)
		}
	}
	lock, err := target.Lock()
	if err != nil {
		return nil, of(dir, err)
	}
	repo, err := backup.Init(ctx, target)
	if err != nil {
		return nil, errors.Join(of(dir, err), lock.Close())
	}
	return &Writer{dir: dir, target: target, repo: repo, lock: lock}, nil
}

// inside reports whether dir is data or below it, also by links.
func inside(dir, data string) bool {
	from, errFrom := datadir.Resolve(data)
	to, errTo := datadir.Resolve(dir)
	if errFrom != nil || errTo != nil {
		return false
	}
	rel, err := filepath.Rel(from, to)
	return err == nil && filepath.IsLocal(rel)
}

// own reports whether a directory has only names that begin with a dot, as a backup
// directory without its marker yet, and the lost+found of a new volume.
func own(names []string) bool {
	for _, name := range names {
		if name[0] != '.' && name != "lost+found" {
			return false
		}
	}
	return true
}

// Close unlocks the directory.
func (w *Writer) Close() error { return w.lock.Close() }

// Progress is called with the account and the bytes of its files that are done.
type Progress func(account string, done, total int64)

// Create backs up databases of the data directory data. One that cannot be backed up does not
// prevent the backups of the others: Create returns these, and an error for each failure.
func (w *Writer) Create(ctx context.Context, data string, dbs []Database, progress Progress) ([]backup.Info, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []backup.Info
	var errs []error
	for _, d := range dbs {
		if ctx.Err() != nil && errs != nil {
			break
		}
		info, err := w.repo.Create(ctx, backup.Source{
			Account: d.Account, DB: d.DB, FS: vfs.OS(), Scratch: path.Join(filepath.ToSlash(data), scratch+d.Account), Clock: time.Now,
		}, func(done, total int64) { progress(d.Account, done, total) })
		switch {
		case errors.Is(err, store.ErrCorrupt) && !errors.Is(w.repo.Check(ctx), store.ErrCorrupt): // else it is the marker
			errs = append(errs, hint.With(err, "the database is damaged: "+hint.Next(err)))
		case err != nil:
			errs = append(errs, w.of(err))
		default:
			list = append(list, info)
		}
	}
	return list, errors.Join(errs...)
}

// RemoveLeftovers removes the links that a backup of an account left in data when it was killed:
// they keep the space of files that compactions have replaced. Call it while this process has
// the database open for writing and makes no backup, so that no process does.
func RemoveLeftovers(data, account string) error {
	return os.RemoveAll(filepath.Join(data, scratch+account))
}

// Archive returns the archive of an account.
func (w *Writer) Archive(account string) engine.Archive {
	return &archive{backup.NewArchive(w.target, account), w}
}

// archive refuses chunks while another directory is in the place of the one that is locked.
type archive struct {
	engine.Archive
	w *Writer
}

func (a *archive) Put(ctx context.Context, name string, chunk io.Reader) error {
	if err := a.w.repo.Check(ctx); err != nil {
		return a.w.of(err)
	}
	return a.Archive.Put(ctx, name, chunk)
}

// Fork gives the database of an account in dir a new epoch, and reports so, if the directory has
// later writes of its epoch.
func (w *Writer) Fork(ctx context.Context, account, dir string) (bool, error) {
	forked, err := w.repo.Fork(ctx, account, vfs.OS(), filepath.ToSlash(dir))
	if errors.Is(err, store.ErrCorrupt) { // of the database: Fork ignores damaged backups
		return forked, err
	}
	if err = w.of(err); err != nil && hint.Next(err) == "" {
		err = hint.With(err, "see that the backup directory can be read")
	}
	return forked, err
}

// PutMark notes that the archive of the database of an account in dir has each write up to a
// moment, once it has those up to the sequence number last.
func (w *Writer) PutMark(ctx context.Context, account, dir string, last uint64, at time.Time) error {
	if err := w.repo.Check(ctx); err != nil {
		return w.of(err)
	}
	return w.of(backup.PutMark(ctx, w.target, account, vfs.OS(), filepath.ToSlash(dir), last, at))
}

// Reaches returns the last sequence number that backups and archive of the database of an
// account in dir have.
func (w *Writer) Reaches(ctx context.Context, account, dir string) (uint64, error) {
	last, err := w.repo.Reaches(ctx, account, vfs.OS(), filepath.ToSlash(dir))
	return last, w.of(err)
}

// Newest returns the time of the newest backup of the database of an account in dir, in its
// present epoch, zero if there is none.
func (w *Writer) Newest(ctx context.Context, account, dir string) (time.Time, error) {
	m, err := manifest.Read(vfs.OS(), filepath.ToSlash(dir))
	if err != nil {
		return time.Time{}, err
	}
	list, err := w.repo.List(ctx, account)
	for _, i := range slices.Backward(list) {
		if i.Database == m.DBID && i.Epoch == m.Epoch {
			return i.Time, nil
		}
	}
	return time.Time{}, w.of(err)
}

// Prune removes all but the newest backups of an account.
func (w *Writer) Prune(ctx context.Context, account string, keep int) (backup.Pruned, error) {
	p, err := w.repo.Prune(ctx, account, keep)
	return p, w.of(err)
}

// of is the function of, for a directory that was a backup directory when w was made.
func (w *Writer) of(err error) error {
	if errors.Is(err, backup.ErrNotBackup) {
		return hint.With(&kindError{fmt.Errorf("%s: %w", w.dir, err), store.ErrNotDatabase},
			"it was one when this process began: mount its volume again, or start with another directory")
	}
	return of(w.dir, err)
}

// of adds the directory and the next step to an error about a backup directory.
func of(dir string, err error) error {
	var locked *vfs.LockedError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		return err // about the directory of a restore
	case errors.As(err, &locked) && path.Base(filepath.ToSlash(locked.Name)) == filename.Lock:
		return hint.With(fmt.Errorf("%w: %w", store.ErrLocked, err), "another restore works there, or a server: wait, or stop it")
	case errors.As(err, &locked):
		return hint.With(fmt.Errorf("backup directory %s: %w: %w", dir, store.ErrLocked, err),
			"one process writes to a backup directory at a time: wait, or stop it; backup list, backup verify and restore work beside it")
	case errors.Is(err, backup.ErrOutOfRange):
		return &kindError{fmt.Errorf("%s: %w", dir, err), fs.ErrNotExist}
	case errors.Is(err, backup.ErrNotBackup) && missing(dir):
		return hint.With(fmt.Errorf("%s: %w", dir, fs.ErrNotExist), "give the directory of \"tablerock backup create\"; if it is on a volume, see that it is mounted")
	case errors.Is(err, backup.ErrNotBackup):
		return hint.With(&kindError{fmt.Errorf("%s: %w", dir, err), store.ErrNotDatabase},
			"give the directory of \"tablerock backup create\", or for a first backup one that is empty or does not exist")
	case errors.Is(err, syscall.EROFS):
		return hint.With(fmt.Errorf("%s: %w", dir, err), "make that file system writable, or give a directory elsewhere")
	case errors.Is(err, store.ErrCorrupt):
		return hint.With(fmt.Errorf("%s: %w", dir, err), fmt.Sprintf("\"tablerock backup verify %s\" lists all damage; restore another backup by --backup", dir))
	case errors.Is(err, backup.ErrNoBackup):
		return hint.With(&kindError{fmt.Errorf("%s: %w", dir, err), fs.ErrNotExist}, fmt.Sprintf("\"tablerock backup list %s\" lists the backups", dir))
	}
	return fmt.Errorf("%s: %w", dir, err)
}

func missing(dir string) bool {
	_, err := os.Stat(dir)
	return errors.Is(err, fs.ErrNotExist)
}

// kindError is an error that is also of another kind, for the exit code.
type kindError struct {
	error
	kind error
}

func (e *kindError) Unwrap() []error { return []error{e.error, e.kind} }
