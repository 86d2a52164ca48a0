package backups

import (
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
)

// TestReadOnlyFileSystem checks the advice for a backup directory that cannot be written: it is
// not that of --data.
func TestReadOnlyFileSystem(t *testing.T) {
	err := of("backups", &fs.PathError{Op: "open", Path: "backups/.lock", Err: syscall.EROFS})
	if next := hint.Next(err); next == "" || strings.Contains(next, "--data") {
		t.Errorf("the advice is %q", next)
	}
}
