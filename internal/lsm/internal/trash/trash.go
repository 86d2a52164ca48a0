// Package trash removes obsolete sstables, and tries again later if that fails.
package trash

import (
	"errors"
	"io/fs"
	"log/slog"
	"path"
	"sync"

	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/vfs"
)

// Trash lists obsolete files that could not be removed. Its methods may be called
// concurrently. Set the exported fields before the first call.
type Trash struct {
	FS     vfs.FS
	Dir    string
	Logger *slog.Logger

	mu sync.Mutex // a leaf; held while files are removed
	// +checklocks:mu
	numbers []uint64
	// +checklocks:mu
	closed bool
}

// Remove deletes a file. After a failure, the next Empty tries again. After Close it does nothing.
func (t *Trash) Remove(number uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.removeLocked(number)
}

// +checklocks:t.mu
func (t *Trash) removeLocked(number uint64) {
	if t.closed {
		return
	}
	name := filename.Make(filename.SSTable, number)
	err := t.FS.Remove(path.Join(t.Dir, name))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return
	}
	t.Logger.Warn("removal failed", "file", name, "cause", err)
	t.numbers = append(t.numbers, number)
}

// Empty tries to remove all listed files.
func (t *Trash) Empty() {
	t.mu.Lock()
	defer t.mu.Unlock()
	numbers := t.numbers
	t.numbers = nil
	for _, n := range numbers {
		t.removeLocked(n)
	}
}

// Close ends the removals, because the directory can be another database's from now on.
func (t *Trash) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
}
