package backups

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/backup"
	"github.com/tablerock-db/tablerock/store"
)

// TestKinds passes errors from a server to a command, which ends with the exit code of their kind.
func TestKinds(t *testing.T) {
	for _, c := range []struct{ err, want error }{
		{store.ErrLocked, store.ErrLocked},
		{store.ErrCorrupt, store.ErrCorrupt},
		{store.ErrNoSpace, store.ErrNoSpace},
		{store.ErrNotDatabase, store.ErrNotDatabase},
		{backup.ErrNotBackup, store.ErrNotDatabase},
		{syscall.ENOENT, fs.ErrNotExist},
		{syscall.EACCES, fs.ErrPermission},
		{syscall.EROFS, syscall.EROFS},
		{fmt.Errorf("%w: %w", store.ErrLocked, fs.ErrNotExist), store.ErrLocked},
	} {
		err := fmt.Errorf("make a backup: %w", c.err)
		m := message{Error: err.Error(), Kind: kindOf(err)}
		if got := m.failure(); !errors.Is(got, c.want) || got.Error() != err.Error() {
			t.Errorf("%v is %q for a command, want %v", err, got, c.want)
		}
	}
	if kind := kindOf(errors.New("another")); kind != "" {
		t.Errorf("another error has the kind %q", kind)
	}
}
