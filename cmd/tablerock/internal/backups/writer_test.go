package backups

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
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
