package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"syscall"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
	dbmanifest "github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/vfs"
)

// RestoreOptions say what to restore. The zero value restores the newest backup of each
// account.
type RestoreOptions struct {
	Account string    // the default is each account
	ID      string    // of the backup; the default is chosen by At
	At      time.Time // the newest backup that is not later; the default is the newest
	// Until restores every write with a Timestamp up to this moment and no other, by the
	// newest backup before it and the archive (NewArchive). If the archive does not reach
	// it, nothing is copied, and the error matches ErrOutOfRange and says what the last possible
	// moment is. Upserts of one engine.DB.ApplyBatches with Timestamps within about a
	// millisecond can be one record of the log: if only some of them are up to this moment,
	// none is restored.
	Until time.Time
	// Progress gets each byte twice, in done and in total: it is copied, and later verified.
	Progress Progress
}

// Restoring ends the name of the directory in which Restore works.
const Restoring = ".restoring"

// Restore makes dest a data directory with the databases of backups: a directory for each
// account, as "tablerock serve --data" serves it. dest must not exist or be empty, otherwise
// the error matches fs.ErrExist, and not be inside a database (fs.ErrInvalid); the path has slashes.
//
// Restore works in a directory beside dest, verifies the databases there, and renames it as
// the last step. After an error or a crash, dest does not exist or is empty, unless the crash
// is after that step. Call it again, and it copies only what it had not copied. A restored
// database has a new epoch.
//
// Restore returns the backups that it restored. With Until, LastSequence and LastTimestamp are
// those of the restored database.
func (r *Repository) Restore(ctx context.Context, fsys vfs.FS, dest string, o RestoreOptions) ([]Info, error) {
	if dest == "" {
		return nil, fmt.Errorf("restore: %w", errNoPath)
	}
	dest = path.Clean(dest)
	if err := checkEmpty(fsys, dest); err != nil {
		return nil, err
	}
	chosen, err := r.choose(ctx, o)
	if err != nil {
		return nil, err
	}
	for _, m := range chosen {
		if o.Until.IsZero() {
			break
		}
		if err := r.checkArchive(ctx, m, o.Until); err != nil {
			return nil, m.failed(err)
		}
	}
	// Before the work, because the directory cannot be replaced if it is a mount point.
	// A missing one cannot be removed from a read-only file system either: prepare says so.
	if _, err = fsys.Stat(dest); err == nil {
		err = fsys.Remove(dest)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("restore to %s: %w; name a directory that does not exist, as one in it", dest, err)
	}
	s := &restore{Repository: r, fs: fsys, dir: dest + Restoring, until: o.Until, progress: o.Progress}
	for _, m := range chosen {
		s.bytes += m.bytes()
	}
	s.total = 2 * s.bytes
	if err := s.prepare(chosen); err != nil {
		return nil, err
	}
	var list []Info
	for _, m := range chosen {
		if err := s.account(ctx, m); err != nil {
			return nil, m.failed(err)
		}
		list = append(list, m.info())
	}
	if err := s.finish(dest); err != nil {
		return nil, fmt.Errorf("rename %s: %w", s.dir, err)
	}
	return list, nil
}

// failed returns the error of a restore of m.
func (m *manifest) failed(err error) error {
	return fmt.Errorf("restore account %s of %s: %w", m.Account, backupID(m.Time), err)
}

// checkEmpty returns an error unless dest does not exist or is an empty directory, outside databases.
func checkEmpty(fsys vfs.FS, dest string) error {
	if dir := dbmanifest.Around(fsys, dest); dir != "" {
		return fmt.Errorf("restore to %s: %w: it is inside %s, which is a database; name a directory elsewhere", dest, fs.ErrInvalid, dir)
	}
	info, err := fsys.Stat(dest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !info.Dir {
		err = fmt.Errorf("%w: it is no directory", fs.ErrExist)
	}
	if err == nil {
		names, listErr := fsys.List(dest)
		if err = listErr; err == nil && len(names) > 0 {
			err = fmt.Errorf("%w: it holds %s", fs.ErrExist, names[0])
		}
	}
	if err != nil {
		return fmt.Errorf("restore to %s: %w; name a directory that does not exist", dest, err)
	}
	return nil
}

// choose returns the manifests of the backups to restore, one of each account.
func (r *Repository) choose(ctx context.Context, o RestoreOptions) ([]*manifest, error) {
	names, err := r.names(ctx, o.Account)
	if err != nil {
		return nil, err
	}
	if !o.Until.IsZero() {
		return r.chooseUntil(ctx, names, o)
	}
	newest := make(map[string]string) // names, by account
	var first, accounts []string
	for _, name := range names {
		account, id, _ := splitManifestName(name)
		if !slices.Contains(accounts, account) {
			accounts, first = append(accounts, account), append(first, id)
		}
		at, _ := parseBackupID(id) // splitManifestName has parsed it
		if o.ID == id || o.ID == "" && (o.At.IsZero() || !at.After(o.At)) {
			newest[account] = name
		}
	}
	var list []*manifest
	for i, account := range accounts {
		switch {
		case newest[account] != "":
			m, err := r.manifest(ctx, newest[account])
			if err != nil {
				return nil, err
			}
			list = append(list, m)
		case o.ID == "":
			return nil, fmt.Errorf("%w: the first backup of account %s is %s, later than %s", ErrNoBackup, account, first[i], o.At.UTC().Format(time.RFC3339Nano))
		}
	}
	if len(list) == 0 {
		return nil, o.noBackup()
	}
	return list, nil
}

// restore is one Restore.
type restore struct {
	*Repository
	fs          vfs.FS
	dir         string
	until       time.Time // of RestoreOptions
	bytes       int64     // of all files
	progress    Progress
	done, total int64 // of progress
}

// prepare checks that the working directory is new or an unfinished restore, and that the
// disk has space.
func (s *restore) prepare(chosen []*manifest) error {
	accounts, err := s.fs.List(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var have int64      // bytes of the chosen accounts; the space of others is free once they are removed
	var others []string // directories of other accounts, which are removed once all is known to be of a restore
	for _, account := range accounts {
		isChosen := slices.ContainsFunc(chosen, func(m *manifest) bool { return m.Account == account })
		info, err := s.fs.Stat(path.Join(s.dir, account))
		if err != nil {
			return err
		}
		if !info.Dir {
			return fmt.Errorf("%s is not an unfinished restore: %w: it holds the file %s; move it away", s.dir, fs.ErrExist, account)
		}
		files, err := s.fs.List(path.Join(s.dir, account))
		if err != nil {
			return err
		}
		for _, name := range files {
			kind, _ := filename.Parse(name)
			if kind == "" && name != filename.Manifest && name != filename.ManifestTemp && name != filename.Lock {
				return fmt.Errorf("%s is not an unfinished restore: %w: it holds %s/%s; move it away", s.dir, fs.ErrExist, account, name)
			}
			if info, err := s.fs.Stat(path.Join(s.dir, account, name)); err == nil && isChosen {
				have += info.Size
			}
		}
		if !isChosen {
			others = append(others, path.Join(s.dir, account))
		}
	}
	for _, account := range accounts {
		// A server can have the database open. Windows removes no file that is locked.
		if err := s.locked(path.Join(s.dir, account), func() error { return nil }); err != nil {
			return err
		}
	}
	for _, dir := range others {
		if err := removeAll(s.fs, dir); err != nil {
			return err
		}
	}
	// Before the directory is made, so that none is left.
	volume, err := s.fs.Space(s.parent())
	if err == nil && volume.Free < s.bytes-have {
		return fmt.Errorf("%w: the backup has %d bytes and the disk of %s has space for %d", syscall.ENOSPC, s.bytes, s.dir, volume.Free)
	}
	if err := NewDir(s.fs, s.dir).makeDir("."); err != nil {
		return fmt.Errorf("make %s: %w", s.dir, err)
	}
	return nil
}

// parent returns the working directory or, if it does not exist, the nearest parent that does.
func (s *restore) parent() string {
	dir := s.dir
	for {
		if _, err := s.fs.Stat(dir); err == nil || dir == path.Dir(dir) {
			return dir
		}
		dir = path.Dir(dir)
	}
}

// account restores one database.
func (s *restore) account(ctx context.Context, m *manifest) error {
	dir := path.Join(s.dir, m.Account)
	if err := s.fs.MkdirAll(dir); err != nil {
		return err
	}
	err := s.locked(dir, func() error { return s.copyFiles(ctx, dir, m) })
	if err == nil && !s.until.IsZero() {
		m.LastSequence, err = s.rollForward(ctx, dir, m) // it opens the database, which takes the lock
		m.LastTimestamp = s.until.UTC()
	}
	if err != nil {
		return err
	}
	return s.locked(dir, func() error {
		if err := s.raiseEpoch(ctx, m.Account, s.fs, dir); err != nil {
			return err
		}
		return s.verify(ctx, dir, m)
	})
}

// locked calls f while nobody else can restore to dir or open the database there.
func (s *restore) locked(dir string, f func() error) error {
	lock, err := s.fs.Lock(path.Join(dir, filename.Lock))
	if err != nil {
		return err
	}
	return errors.Join(f(), lock.Close())
}

// copyFiles writes the files of m to dir, but for those that an earlier call wrote, and
// removes others.
func (s *restore) copyFiles(ctx context.Context, dir string, m *manifest) error {
	names, err := s.fs.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		listed := slices.ContainsFunc(m.Files, func(f file) bool { return f.Name == name && name != filename.Manifest })
		if !listed && name != filename.Lock {
			remove := s.fs.Remove
			if kind, _ := filename.Parse(name); kind == filename.Load { // a directory of rollforward
				remove = func(name string) error { return removeAll(s.fs, name) }
			}
			if err := remove(path.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	for i := range m.Files {
		f := &m.Files[i]
		if err := s.copyFile(ctx, path.Join(dir, f.Name), f); err != nil {
			return err
		}
		s.done += f.Bytes
		s.report(0)
	}
	return errors.Join(s.fs.SyncDir(dir), s.fs.SyncDir(s.dir))
}

func (s *restore) report(extra int64) {
	if s.progress != nil {
		s.progress(s.done+extra, s.total)
	}
}

// copyFile writes a file unless it is there.
func (s *restore) copyFile(ctx context.Context, name string, f *file) error {
	there, err := s.same(ctx, name, f)
	if err != nil || there {
		return err
	}
	if err := s.fs.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dst, err := s.fs.Create(name)
	if err != nil {
		return err
	}
	err = s.read(ctx, f, &offsetWriter{f: dst}, s.report)
	if err == nil {
		err = dst.Sync()
	}
	err = errors.Join(err, dst.Close())
	return err
}

// same reports whether a file exists with the bytes of f, durably.
func (s *restore) same(ctx context.Context, name string, f *file) (bool, error) {
	info, err := s.fs.Stat(name)
	if err != nil || !info.Regular || info.Size != f.Bytes {
		return false, nil // copyFile returns the error, if it has one too
	}
	src, err := s.fs.OpenReadWrite(name)
	if err != nil {
		return false, nil // likewise
	}
	h := xxhash.New()
	_, err = io.Copy(h, &contextReader{ctx, io.NewSectionReader(src, 0, f.Bytes)})
	same := err == nil && fmt.Sprintf("%016x", h.Sum64()) == f.Hash
	if same {
		err = src.Sync() // it may be of a process that was killed before its sync
	}
	return same, errors.Join(err, src.Close())
}

// noBackup returns the error if no backup is the one of o.
func (o *RestoreOptions) noBackup() error {
	switch {
	case o.ID != "":
		return fmt.Errorf("%w: there is none with the id %s", ErrNoBackup, o.ID)
	case o.Account != "":
		return fmt.Errorf("%w: there is none of account %s", ErrNoBackup, o.Account)
	}
	return ErrNoBackup
}

// verify reads the database and checks every byte.
func (s *restore) verify(ctx context.Context, dir string, m *manifest) (err error) {
	db, err := engine.Open(dir, engine.Options{FS: s.fs, ReadOnly: true, SegmentBytes: 1 << 20})
	if err != nil {
		return fmt.Errorf("open the restored database: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	report, err := db.VerifyWithProgress(ctx, func(done, _ int64) { s.report(min(done, m.bytes())) })
	s.done += m.bytes()
	s.report(0)
	if err != nil {
		return fmt.Errorf("verify the restored database: %w", err)
	}
	if len(report.Findings) > 0 {
		f := report.Findings[0]
		return corrupt.Newf(f.File, f.Offset, "%s", f.What)
	}
	stats, err := db.Stats()
	if err == nil && stats.LastSequence != m.LastSequence {
		err = corrupt.Newf(filename.Manifest, 0, "the last sequence number is %d, and the backup says %d", stats.LastSequence, m.LastSequence)
	}
	return err
}

// finish gives the working directory its name.
func (s *restore) finish(dest string) error {
	if err := s.fs.SyncDir(s.dir); err != nil {
		return err
	}
	if err := s.fs.Remove(dest); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := s.fs.Rename(s.dir, dest); err != nil {
		return err
	}
	if err := vfs.SyncParents(s.fs, dest); err != nil {
		return errors.Join(err, s.fs.Rename(dest, s.dir)) // the next call goes on there
	}
	return nil
}
