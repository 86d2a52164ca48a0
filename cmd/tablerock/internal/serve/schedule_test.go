package serve

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/backup"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// newBackupService returns a service with --backup-dir and the databases of two accounts.
func newBackupService(t *testing.T) *service {
	t.Helper()
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	c := &Config{Data: filepath.Join(dir, "data"), BackupDir: filepath.Join(dir, "backups"), BackupEvery: time.Hour, BackupKeep: 3, ArchiveEvery: time.Hour}
	s := &service{Config: c, log: log, admin: &admin{}, open: c.newDatabaseSet(log), oneBackup: make(chan struct{}, 1)}
	if err := s.openBackups(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.closeBackups(); err != nil {
			t.Error(err)
		}
	})
	s.add(t, "one")
	s.add(t, "two")
	s.noteBackups(t.Context())
	return s
}

// add adds an account.
func (s *service) add(t *testing.T, name string) {
	t.Helper()
	db, err := engine.Open(filepath.ToSlash(filepath.Join(s.Data, name)), engine.Options{Logger: s.log, MemoryBytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	s.dbs = append(s.dbs, database{account: account{name: name}, db: db})
	s.admin.serving.Store(&s.dbs)
}

// backupsOf returns how many backups an account has.
func (s *service) backupsOf(t *testing.T, name string) int {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(s.BackupDir, name, "backups", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// TestDueBackups backs up the accounts whose backup is due. The others keep their old
// backups, however often one account fails.
func TestDueBackups(t *testing.T) {
	s := newBackupService(t)
	for range 5 {
		if !s.backUpAll(t.Context()) {
			t.Fatal("a backup failed")
		}
		s.backups.mu.Lock()
		s.backups.newest["one"] = time.Now().Add(-s.BackupEvery)
		s.backups.mu.Unlock()
	}
	if one, two := s.backupsOf(t, "one"), s.backupsOf(t, "two"); one != s.BackupKeep || two != 1 {
		t.Errorf("%d and %d backups, want %d and 1", one, two, s.BackupKeep)
	}
}

// TestAddedAccount adds an account to a server: its first backup is due at once.
func TestAddedAccount(t *testing.T) {
	s := newBackupService(t)
	if !s.backUpAll(t.Context()) || s.untilBackup() <= 0 {
		t.Fatal("the backups are due again at once")
	}
	s.add(t, "three")
	<-s.backups.wake
	s.noteBackups(t.Context())
	select {
	case <-s.backups.wake:
	default:
		t.Error("the schedule was not woken")
	}
	if s.untilBackup() > 0 || !s.backUpAll(t.Context()) || s.backupsOf(t, "three") != 1 || s.backupsOf(t, "one") != 1 {
		t.Error("the added account has no backup, or another one has two")
	}
}

// TestEndDuringBackup ends the schedule while a command makes a backup.
func TestEndDuringBackup(t *testing.T) {
	s := newBackupService(t)
	s.oneBackup <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	end := s.startBackups(ctx)
	cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		end()
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the end waits for the backup of the command")
	}
	<-s.oneBackup
	<-ended
}

// TestUncovered flushes writes without an archive, with and without writes in the log.
func TestUncovered(t *testing.T) {
	s := newBackupService(t)
	if !s.backUpAll(t.Context()) {
		t.Fatal("a backup failed")
	}
	one := s.dbs[0]
	check := func(want bool) {
		t.Helper()
		one.flushed = s.flushedOf(t, one.name) // as a server that starts
		if missing, known, err := s.uncovered(t.Context(), one); missing != want || !known || err != nil {
			t.Errorf("uncovered = %v, %v, %v; want %v, true", missing, known, err, want)
		}
	}
	check(false)
	if err := one.db.CreateTable(t.Context(), "First"); err != nil {
		t.Fatal(err)
	}
	check(false) // the log will be archived
	if err := one.db.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	check(true)
	if err := one.db.CreateTable(t.Context(), "Second"); err != nil {
		t.Fatal(err)
	}
	check(true)
}

// flushedOf returns the last sequence number in the sstables of an account.
func (s *service) flushedOf(t *testing.T, name string) uint64 {
	t.Helper()
	m, err := manifest.Read(vfs.OS(), filepath.ToSlash(filepath.Join(s.Data, name)))
	if err != nil {
		t.Fatal(err)
	}
	return m.LastSeq
}

// TestUncoveredDuringFlush asks between the manifest of a flush and the archival of its segment,
// which a server that starts after a crash does: the segment will be archived.
func TestUncoveredDuringFlush(t *testing.T) {
	s := newBackupService(t)
	one := s.dbs[0]
	if err := one.db.Close(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.ToSlash(filepath.Join(s.Data, one.name))
	asked, flushing := false, false
	disk := errorfs.Wrap(vfs.OS(), func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "sync-dir" && flushing && !asked && s.flushedOf(t, one.name) > 0 {
			asked = true
			if missing, _, err := s.uncovered(t.Context(), one); missing || err != nil {
				t.Errorf("uncovered = %v, %v; want false", missing, err)
			}
		}
		return nil
	})
	o := engine.Options{FS: disk, Logger: s.log, MemoryBytes: 8 << 20, Archive: s.open.archive(one.name)}
	o.Testing.Manual = true
	var err error
	if one.db, err = engine.Open(dir, o); err != nil {
		t.Fatal(err)
	}
	defer one.db.Close()
	if err := one.db.CreateTable(t.Context(), "Table"); err != nil {
		t.Fatal(err)
	}
	flushing = true
	if err := one.db.Flush(t.Context()); err != nil || !asked {
		t.Errorf("Flush returns %v; asked during it: %v", err, asked)
	}
}

// TestUncoveredBeforeWaiting flushes writes without an archive, and others with one. While
// these wait, nothing is known; once the archive has them, a backup is due.
func TestUncoveredBeforeWaiting(t *testing.T) {
	s := newBackupService(t)
	if !s.backUpAll(t.Context()) {
		t.Fatal("a backup failed")
	}
	one := &s.dbs[0]
	if err := errors.Join(one.db.CreateTable(t.Context(), "First"), one.db.Close()); err != nil {
		t.Fatal(err)
	}
	o := engine.Options{Logger: s.log, MemoryBytes: 8 << 20, Archive: s.open.archive(one.name)}
	o.Testing.Manual = true
	one.flushed = s.flushedOf(t, one.name)
	var err error
	if one.db, err = engine.Open(filepath.ToSlash(filepath.Join(s.Data, one.name)), o); err != nil {
		t.Fatal(err)
	}
	defer one.db.Close()
	if err := errors.Join(one.db.CreateTable(t.Context(), "Second"), one.db.Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
	s.backups.newest = nil // as a server that starts
	if s.noteBackups(t.Context()); s.untilBackup() <= 0 {
		t.Error("a backup is due while a chunk waits")
	}
	for worked := true; worked; {
		if worked, err = one.db.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.archive(t.Context(), *one); err != nil {
		t.Fatal(err)
	}
	if s.untilBackup() > 0 {
		t.Error("no backup is due, but First is in neither a backup nor the archive")
	}
}

// TestMetricsDuringCheck asks for metrics while a server that starts looks at the backup directory
// and does not go on, as if the directory or the reader of the log hung.
func TestMetricsDuringCheck(t *testing.T) {
	s := newBackupService(t)
	one := &s.dbs[0]
	if err := errors.Join(one.db.CreateTable(t.Context(), "Table"), one.db.Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
	one.flushed = s.flushedOf(t, one.name)
	hangs := &blocking{waits: "neither a backup", reached: make(chan struct{}), release: make(chan struct{})}
	s.log = slog.New(slog.NewTextHandler(hangs, nil))
	s.backups.newest = nil // as a server that starts
	var group sync.WaitGroup
	defer group.Wait()
	defer close(hangs.release)
	group.Go(func() { s.noteBackups(t.Context()) })
	<-hangs.reached
	written := make(chan struct{})
	group.Go(func() {
		s.backups.write(io.Discard)
		close(written)
	})
	select {
	case <-written:
	case <-time.After(time.Minute):
		t.Error("the metrics wait for the backup directory")
	}
}

// TestBackupByLink makes a backup for a command that names --backup-dir by a link: the server,
// which has locked it, makes the backup.
func TestBackupByLink(t *testing.T) {
	s := newBackupService(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(s.BackupDir, link); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	list, err := s.createBackup(t.Context(), link, "one", func(string, int64, int64) {})
	if err != nil || len(list) != 1 {
		t.Errorf("createBackup returns %+v and %v, want a backup", list, err)
	}
}

// TestNewEpoch raises the epoch of a database, as a restore does. The archive needs a backup
// in it at once, also of a database whose writes are all in the log or that has none.
func TestNewEpoch(t *testing.T) {
	s := newBackupService(t)
	if !s.backUpAll(t.Context()) {
		t.Fatal("a backup failed")
	}
	dir := filepath.ToSlash(filepath.Join(s.Data, s.dbs[0].name))
	if err := s.dbs[0].db.Close(); err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Read(vfs.OS(), dir)
	if err != nil {
		t.Fatal(err)
	}
	m.Epoch++
	if err := manifest.Write(vfs.OS(), dir, m); err != nil {
		t.Fatal(err)
	}
	s.dbs = s.dbs[1:]
	s.add(t, "one")
	s.backups.newest = nil // as a server that starts
	if s.noteBackups(t.Context()); s.untilBackup() > 0 {
		t.Error("no backup is due, but none has the present epoch")
	}
	if !s.backUpAll(t.Context()) || s.backupsOf(t, "one") != 2 || s.backupsOf(t, "two") != 1 {
		t.Error("the account has no second backup, or the other one has one")
	}
}

// TestForkFails opens a database that cannot be compared with its backups. It is not opened: if it is
// an older copy, its writes would be archived in the history of the newer one.
func TestForkFails(t *testing.T) {
	s := newBackupService(t)
	s.Compression = compressFast
	failure := errors.New("input/output error")
	s.open.fork = func(context.Context, string, string) (bool, error) { return false, failure }
	_, err := s.open.of(t.Context(), []account{{name: "three"}})
	if !errors.Is(err, failure) || !strings.Contains(err.Error(), "three") {
		t.Errorf("the database is opened with %v, want an error with its account and %v", err, failure)
	}
	if len(s.open.open) > 0 {
		t.Errorf("the database is open")
		_ = s.open.close()
	}
}

// TestLeftoversOfBackup opens the database of an account whose last backup was killed: the links
// to its files are removed.
func TestLeftoversOfBackup(t *testing.T) {
	s := newBackupService(t)
	left := filepath.Join(s.Data, ".backup-three")
	if err := errors.Join(os.Mkdir(left, 0o700), os.WriteFile(filepath.Join(left, "000001.sst"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	s.Compression = "fast"
	dbs, err := s.open.of(t.Context(), []account{{name: "three"}})
	if err != nil {
		t.Fatal(err)
	}
	defer dbs[0].db.Close()
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat of what the backup left: %v, want that it is removed", err)
	}
}

// TestArchiveOfRemovedAccount writes to an account just before it is no longer served. Its log is
// archived all the same.
func TestArchiveOfRemovedAccount(t *testing.T) {
	s := newBackupService(t)
	all := make(map[string]database)
	s.archiveAll(t.Context(), all)
	one := s.dbs[0]
	if err := one.db.CreateTable(t.Context(), "Last"); err != nil {
		t.Fatal(err)
	}
	others := s.dbs[1:]
	s.admin.serving.Store(&others)
	s.archiveAll(t.Context(), all)
	if stats, err := one.db.Stats(); err != nil || stats.WALBytes > 0 {
		t.Errorf("the log has %d bytes that are not archived; error %v", stats.WALBytes, err)
	}
}

// TestArchiveAtEnd ends a server some time after the last write and the last archival: a restore
// can reach the end.
func TestArchiveAtEnd(t *testing.T) {
	s := newBackupService(t)
	if !s.backUpAll(t.Context()) {
		t.Fatal("a backup failed")
	}
	ctx, cancel := context.WithCancel(t.Context())
	end := s.startArchive(ctx)
	cancel()
	until := time.Now().Truncate(100)
	end()
	r, err := backup.Open(t.Context(), backup.NewDir(vfs.OS(), filepath.ToSlash(s.BackupDir)))
	if err != nil {
		t.Fatal(err)
	}
	dest := filepath.ToSlash(filepath.Join(t.TempDir(), "restored"))
	if _, err := r.Restore(t.Context(), vfs.OS(), dest, backup.RestoreOptions{Until: until}); err != nil {
		t.Error(err)
	}
}
