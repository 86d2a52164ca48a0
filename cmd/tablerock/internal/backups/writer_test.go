package backups

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/backup"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestReadOnlyFileSystem checks the advice for a backup directory that cannot be written: it is
// not that of --data.
func TestReadOnlyFileSystem(t *testing.T) {
	err := of("backups", &fs.PathError{Op: "open", Path: "backups/.lock", Err: syscall.EROFS})
	if next := hint.Next(err); next == "" || strings.Contains(next, "--data") {
		t.Errorf("the advice is %q", next)
	}
}

// TestLockedRestore checks the error if another process works in the directory of a restore: it
// does not say that the backup directory is locked.
func TestLockedRestore(t *testing.T) {
	err := of("backups", &vfs.LockedError{Name: "restored.restoring/one/LOCK", Holder: "pid 7"})
	if !errors.Is(err, store.ErrLocked) || strings.Contains(err.Error(), "backup directory") || strings.Contains(hint.Next(err), "backup directory") {
		t.Errorf("the error is %q, the advice %q", err, hint.Next(err))
	}
}

// backedUp returns a backup directory, which does not exist yet, and a data directory with a database
// for the account acct.
func backedUp(t *testing.T) (dir, data string, db *engine.DB) {
	t.Helper()
	root := t.TempDir()
	dir, data = filepath.Join(root, "backups"), filepath.Join(root, "data")
	db, err := engine.Open(filepath.Join(data, "acct"), engine.Options{SegmentBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return dir, data, db
}

// TestNewVolume backs up to a volume that has only the directory with which its file system begins.
func TestNewVolume(t *testing.T) {
	dir, data, db := backedUp(t)
	if err := os.MkdirAll(filepath.Join(dir, "lost+found"), 0o700); err != nil {
		t.Fatal(err)
	}
	w, err := NewWriter(t.Context(), dir, data)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	list, err := w.Create(t.Context(), data, []Database{{"acct", db}}, func(string, int64, int64) {})
	if err != nil || len(list) != 1 {
		t.Errorf("%d backups, %v; want one", len(list), err)
	}
}

// TestInterruptedAccounts interrupts a backup of two accounts in the first one.
func TestInterruptedAccounts(t *testing.T) {
	dir, data, db := backedUp(t)
	if err := os.CopyFS(filepath.Join(data, "second"), os.DirFS(filepath.Join(data, "acct"))); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	var opened []string
	e := &Env{Data: func() string { return data }, Open: func(account string, work func(*engine.DB) error) error {
		opened = append(opened, account)
		interrupt()
		return work(db)
	}}
	if list, err := e.make(ctx, dir, ""); !errors.Is(err, context.Canceled) || len(list) != 0 || len(opened) != 1 {
		t.Errorf("backups %v, error %v, and the databases of %v were opened; want one", list, err, opened)
	}
}

// TestInterruptedPrune interrupts a prune of three accounts after the first one: it says nothing of the
// others.
func TestInterruptedPrune(t *testing.T) {
	dir, data, db := backedUp(t)
	w, err := NewWriter(t.Context(), dir, data)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Create(t.Context(), data, []Database{{"one", db}, {"two", db}, {"three", db}}, func(string, int64, int64) {})
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	notes := 0
	e := &Env{Data: func() string { return data }, Account: func() string { return "" }, Note: func(string, ...any) {
		notes++
		interrupt()
	}}
	if err := e.runPrune(ctx, dir, "", 1); !errors.Is(err, context.Canceled) || notes != 1 {
		t.Errorf("error %v after %d notes, want %v after one", err, notes, context.Canceled)
	}
}

// TestDirectoryReplaced has another backup directory in the place of the one that is locked, as after
// a change of disks: nothing is written or removed there, because no restore would accept it.
func TestDirectoryReplaced(t *testing.T) {
	ctx := t.Context()
	dir, data, db := backedUp(t)
	dbs, quiet := []Database{{"acct", db}}, func(string, int64, int64) {}
	writer := func() *Writer {
		t.Helper()
		w, err := NewWriter(ctx, dir, data)
		if err == nil {
			_, err = w.Create(ctx, data, dbs, quiet)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.Close() })
		return w
	}
	w := writer()
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	other := writer()
	_, create := w.Create(ctx, data, dbs, quiet)
	_, prune := w.Prune(ctx, "acct", 1)
	put := w.Archive("acct").Put(ctx, "00000000/chunk", strings.NewReader("chunk"))
	mark := w.PutMark(ctx, "acct", filepath.Join(data, "acct"), 1, time.Now())
	for i, err := range []error{create, prune, put, mark} {
		if next := hint.Next(err); !errors.Is(err, backup.ErrNotBackup) || !strings.Contains(next, "mount its volume again") {
			t.Errorf("call %d: %v, and the next step is %q", i, err, next)
		}
	}
	if list, err := other.repo.List(ctx, ""); err != nil || len(list) != 1 {
		t.Errorf("the other directory has the backups %v, %v", list, err)
	}
}

// TestDamagedMarker damages the marker of a backup directory that is open. A backup says so, and not
// that the database is damaged.
func TestDamagedMarker(t *testing.T) {
	ctx := t.Context()
	dir, data, db := backedUp(t)
	w, err := NewWriter(ctx, dir, data)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := os.WriteFile(filepath.Join(dir, "TABLEROCK-BACKUP"), []byte("damage"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = w.Create(ctx, data, []Database{{"acct", db}}, func(string, int64, int64) {})
	if next := hint.Next(err); !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), dir) || strings.Contains(next, "the database is damaged") {
		t.Errorf("the error is %v, the advice %q", err, next)
	}
}
