package schedule

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/backup"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/backups"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// fixture has the backups of two accounts, whose databases are served.
type fixture struct {
	*Backups
	served []Database
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	dir := t.TempDir()
	f := &fixture{}
	var err error
	f.Backups, err = Open(t.Context(), Options{
		Dir: filepath.Join(dir, "backups"), Data: filepath.Join(dir, "data"), Every: time.Hour, Keep: 3, ArchiveEvery: time.Hour,
		Databases: func() []Database { return f.served }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	f.add(t, "one")
	f.add(t, "two")
	f.Note(t.Context(), f.served)
	return f
}

// add adds an account.
func (f *fixture) add(t *testing.T, name string) {
	t.Helper()
	db, err := engine.Open(filepath.ToSlash(filepath.Join(f.Data, name)), engine.Options{Logger: f.Log, MemoryBytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	f.served = append(f.served, Database{Database: backups.Database{Account: name, DB: db}})
}

// backupsOf returns how many backups an account has.
func (f *fixture) backupsOf(t *testing.T, name string) int {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(f.Dir, name, "backups", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// TestDueBackups backs up the accounts whose backup is due. The others keep their old
// backups, however often one account fails.
func TestDueBackups(t *testing.T) {
	f := newFixture(t)
	for range 5 {
		if !f.backUpAll(t.Context()) {
			t.Fatal("a backup failed")
		}
		f.mu.Lock()
		f.newest["one"] = time.Now().Add(-f.Every)
		f.mu.Unlock()
	}
	if one, two := f.backupsOf(t, "one"), f.backupsOf(t, "two"); one != f.Keep || two != 1 {
		t.Errorf("%d and %d backups, want %d and 1", one, two, f.Keep)
	}
}

// TestAddedAccount adds an account to a server: its first backup is due at once.
func TestAddedAccount(t *testing.T) {
	f := newFixture(t)
	if !f.backUpAll(t.Context()) || f.untilBackup() <= 0 {
		t.Fatal("the backups are due again at once")
	}
	f.add(t, "three")
	<-f.wake
	f.Note(t.Context(), f.served)
	select {
	case <-f.wake:
	default:
		t.Error("the schedule was not woken")
	}
	if f.untilBackup() > 0 || !f.backUpAll(t.Context()) || f.backupsOf(t, "three") != 1 || f.backupsOf(t, "one") != 1 {
		t.Error("the added account has no backup, or another one has two")
	}
}

// TestEndDuringBackup ends the schedule while a command makes a backup.
func TestEndDuringBackup(t *testing.T) {
	f := newFixture(t)
	f.Backups.one <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	end := f.startBackups(ctx)
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
	<-f.Backups.one
	<-ended
}

// TestUncovered flushes writes without an archive, with and without writes in the log.
func TestUncovered(t *testing.T) {
	f := newFixture(t)
	if !f.backUpAll(t.Context()) {
		t.Fatal("a backup failed")
	}
	one := f.served[0]
	check := func(want bool) {
		t.Helper()
		one.Flushed = f.flushedOf(t, one.Account) // as a server that starts
		if missing, known, err := f.uncovered(t.Context(), one); missing != want || !known || err != nil {
			t.Errorf("uncovered = %v, %v, %v; want %v, true", missing, known, err, want)
		}
	}
	check(false)
	if err := one.DB.CreateTable(t.Context(), "First"); err != nil {
		t.Fatal(err)
	}
	check(false) // the log will be archived
	if err := one.DB.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	check(true)
	if err := one.DB.CreateTable(t.Context(), "Second"); err != nil {
		t.Fatal(err)
	}
	check(true)
}

// flushedOf returns the last sequence number in the sstables of an account.
func (f *fixture) flushedOf(t *testing.T, name string) uint64 {
	t.Helper()
	m, err := manifest.Read(vfs.OS(), filepath.ToSlash(filepath.Join(f.Data, name)))
	if err != nil {
		t.Fatal(err)
	}
	return m.LastSeq
}

// TestUncoveredDuringFlush asks between the manifest of a flush and the archival of its segment,
// which a server that starts after a crash does: the segment will be archived.
func TestUncoveredDuringFlush(t *testing.T) {
	f := newFixture(t)
	one := f.served[0]
	if err := one.DB.Close(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.ToSlash(filepath.Join(f.Data, one.Account))
	asked, flushing := false, false
	disk := errorfs.Wrap(vfs.OS(), func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "sync-dir" && flushing && !asked && f.flushedOf(t, one.Account) > 0 {
			asked = true
			if missing, _, err := f.uncovered(t.Context(), one); missing || err != nil {
				t.Errorf("uncovered = %v, %v; want false", missing, err)
			}
		}
		return nil
	})
	o := engine.Options{FS: disk, Logger: f.Log, MemoryBytes: 8 << 20, Archive: f.Archive(one.Account)}
	o.Testing.Manual = true
	var err error
	if one.DB, err = engine.Open(dir, o); err != nil {
		t.Fatal(err)
	}
	defer one.DB.Close()
	if err := one.DB.CreateTable(t.Context(), "Table"); err != nil {
		t.Fatal(err)
	}
	flushing = true
	if err := one.DB.Flush(t.Context()); err != nil || !asked {
		t.Errorf("Flush returns %v; asked during it: %v", err, asked)
	}
}

// TestUncoveredBeforeWaiting flushes writes without an archive, and others with one. While
// these wait, nothing is known; once the archive has them, a backup is due.
func TestUncoveredBeforeWaiting(t *testing.T) {
	f := newFixture(t)
	if !f.backUpAll(t.Context()) {
		t.Fatal("a backup failed")
	}
	one := &f.served[0]
	if err := errors.Join(one.DB.CreateTable(t.Context(), "First"), one.DB.Close()); err != nil {
		t.Fatal(err)
	}
	o := engine.Options{Logger: f.Log, MemoryBytes: 8 << 20, Archive: f.Archive(one.Account)}
	o.Testing.Manual = true
	one.Flushed = f.flushedOf(t, one.Account)
	var err error
	if one.DB, err = engine.Open(filepath.ToSlash(filepath.Join(f.Data, one.Account)), o); err != nil {
		t.Fatal(err)
	}
	defer one.DB.Close()
	if err := errors.Join(one.DB.CreateTable(t.Context(), "Second"), one.DB.Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
	f.newest = nil // as a server that starts
	if f.Note(t.Context(), f.served); f.untilBackup() <= 0 {
		t.Error("a backup is due while a chunk waits")
	}
	for worked := true; worked; {
		if worked, err = one.DB.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.archive(t.Context(), *one); err != nil {
		t.Fatal(err)
	}
	if f.untilBackup() > 0 {
		t.Error("no backup is due, but First is in neither a backup nor the archive")
	}
}

// hangingLog is a log whose line about writes that are in no backup waits until release is closed.
type hangingLog struct{ reached, release chan struct{} }

func (h *hangingLog) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("neither a backup")) {
		close(h.reached)
		<-h.release
	}
	return len(p), nil
}

// TestMetricsDuringCheck asks for metrics while a server that starts looks at the backup directory
// and does not go on, as if the directory or the reader of the log hung.
func TestMetricsDuringCheck(t *testing.T) {
	f := newFixture(t)
	one := &f.served[0]
	if err := errors.Join(one.DB.CreateTable(t.Context(), "Table"), one.DB.Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
	one.Flushed = f.flushedOf(t, one.Account)
	hangs := &hangingLog{reached: make(chan struct{}), release: make(chan struct{})}
	f.Log = slog.New(slog.NewTextHandler(hangs, nil))
	f.newest = nil // as a server that starts
	var group sync.WaitGroup
	defer group.Wait()
	defer close(hangs.release)
	group.Go(func() { f.Note(t.Context(), f.served) })
	<-hangs.reached
	written := make(chan struct{})
	group.Go(func() {
		f.WriteMetrics(io.Discard)
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
	f := newFixture(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(f.Dir, link); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	list, err := f.createFor(t.Context(), link, "one", func(string, int64, int64) {})
	if err != nil || len(list) != 1 {
		t.Errorf("createFor returns %+v and %v, want a backup", list, err)
	}
}

// TestBackupOfNoAccount asks for a backup when the server has no such account, or after a reload no
// account with a database in the directory.
func TestBackupOfNoAccount(t *testing.T) {
	f := newFixture(t)
	for account, want := range map[string]string{"other": "does not serve the account other", "": "serves no account with a database in it"} {
		if account == "" {
			f.Databases = func() []Database { return nil }
		}
		list, err := f.createFor(t.Context(), f.Dir, account, nil)
		if err == nil || !strings.HasSuffix(err.Error(), want) || len(list) != 0 {
			t.Errorf("createFor of account %q returns %+v and %v, want an error that ends with %q", account, list, err, want)
		}
	}
}

// TestNewEpoch raises the epoch of a database, as a restore does. The archive needs a backup
// in it at once, also of a database whose writes are all in the log or that has none.
func TestNewEpoch(t *testing.T) {
	f := newFixture(t)
	if !f.backUpAll(t.Context()) {
		t.Fatal("a backup failed")
	}
	dir := filepath.ToSlash(filepath.Join(f.Data, f.served[0].Account))
	if err := f.served[0].DB.Close(); err != nil {
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
	f.served = f.served[1:]
	f.add(t, "one")
	f.newest = nil // as a server that starts
	if f.Note(t.Context(), f.served); f.untilBackup() > 0 {
		t.Error("no backup is due, but none has the present epoch")
	}
	if !f.backUpAll(t.Context()) || f.backupsOf(t, "one") != 2 || f.backupsOf(t, "two") != 1 {
		t.Error("the account has no second backup, or the other one has one")
	}
}

// TestBackupTimeOfDisk reads the times of backups, as a server that starts. The time until the next backup must not depend on the
// wall clock from then on: if it is set back by a day, no backup is made for a day. A time without a reading of the monotonic
// clock is the same after Round(0).
func TestBackupTimeOfDisk(t *testing.T) {
	f := newFixture(t)
	if !f.backUpAll(t.Context()) {
		t.Fatal("a backup failed")
	}
	made := time.Now()
	f.newest = nil
	f.Note(t.Context(), f.served)
	for _, one := range f.served {
		at := f.newest[one.Account]
		if at == at.Round(0) {
			t.Errorf("account %s: the time %v has no reading of the monotonic clock", one.Account, at)
		}
		if age := made.Round(0).Sub(at.Round(0)); age < 0 || age > time.Hour {
			t.Errorf("account %s: the backup was made at %v, %v before its end", one.Account, at, age)
		}
	}
	for _, at := range []time.Time{{}, made.Add(time.Hour)} {
		if got := onTimer(at); !got.IsZero() {
			t.Errorf("onTimer(%v) is %v, want the zero time", at, got)
		}
	}
}

// TestArchiveOfRemovedAccount writes to an account just before it is no longer served. Its log is
// archived all the same.
func TestArchiveOfRemovedAccount(t *testing.T) {
	f := newFixture(t)
	all := make(map[string]Database)
	f.archiveAll(t.Context(), all)
	one := f.served[0]
	if err := one.DB.CreateTable(t.Context(), "Last"); err != nil {
		t.Fatal(err)
	}
	f.served = f.served[1:]
	f.archiveAll(t.Context(), all)
	if stats, err := one.DB.Stats(); err != nil || stats.WALBytes > 0 {
		t.Errorf("the log has %d bytes that are not archived; error %v", stats.WALBytes, err)
	}
}

// TestArchiveAtEnd ends a server some time after the last write and the last archival: a restore
// can reach the end.
func TestArchiveAtEnd(t *testing.T) {
	f := newFixture(t)
	if !f.backUpAll(t.Context()) {
		t.Fatal("a backup failed")
	}
	ctx, cancel := context.WithCancel(t.Context())
	end := f.startArchive(ctx)
	cancel()
	until := time.Now().Truncate(100)
	end()
	r, err := backup.Open(t.Context(), backup.NewDir(vfs.OS(), filepath.ToSlash(f.Dir)))
	if err != nil {
		t.Fatal(err)
	}
	dest := filepath.ToSlash(filepath.Join(t.TempDir(), "restored"))
	if _, err := r.Restore(t.Context(), vfs.OS(), dest, backup.RestoreOptions{Until: until}); err != nil {
		t.Error(err)
	}
}

// TestMetrics writes the metrics of accounts with and without a backup, after two commands whose backups of both failed, and
// one that was interrupted.
func TestMetrics(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{"one", "two"} {
		if err := os.MkdirAll(filepath.Join(f.Data, ".backup-"+name, "foreign"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	for _, ctx := range []context.Context{t.Context(), t.Context(), interrupted} {
		if list, err := f.createFor(ctx, f.Dir, "", func(string, int64, int64) {}); err == nil || len(list) > 0 {
			t.Fatalf("createFor returns %+v and %v, want an error", list, err)
		}
	}
	f.newest = map[string]time.Time{"one": time.Unix(1e9, 0), "two": {}}
	var text strings.Builder
	f.WriteMetrics(&text)
	for _, line := range []string{
		`tablerock_backup_made_total 0`, `tablerock_backup_failures_total 4`, `tablerock_backup_interval_seconds 3600`,
		`tablerock_backup_last_success_timestamp_seconds{account="one"} 1000000000`,
		`tablerock_backup_last_success_timestamp_seconds{account="two"} 0`,
	} {
		if strings.Count(text.String(), line+"\n") != 1 {
			t.Errorf("not one line %s in\n%s", line, &text)
		}
	}
	help := Help()
	for line := range strings.Lines(text.String()) {
		name, rest, is := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if name, _, _ = strings.Cut(name, "{"); is && name != "#" {
			if help[name] == "" || rest == "" {
				t.Errorf("line %q has no value, or its metric has no help text", line)
			}
		}
	}
}

// TestWithoutDirectory starts a server without a backup directory: it has no schedule and no metrics.
func TestWithoutDirectory(t *testing.T) {
	b, err := Open(t.Context(), Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	b.Note(t.Context(), nil)
	b.Start(t.Context())()
	if b.WriteMetrics(&text); text.Len() > 0 || b.Close() != nil {
		t.Errorf("the metrics are %q, or Close fails", text.String())
	}
}
