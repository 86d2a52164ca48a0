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

	mu sync.Mutex // a leaf
	// +checklocks:mu
	numbers []uint64
}

// Remove deletes a file. After a failure, the next Empty tries again.
func (t *Trash) Remove(number uint64) {
	name := filename.Make(filename.SSTable, number)
	err := t.FS.Remove(path.Join(t.Dir, name))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return
	}
	t.Logger.Warn("removal failed", "file", name, "cause", err)
	t.mu.Lock()
	t.numbers = append(t.numbers, number)
	t.mu.Unlock()
}

// Empty tries to remove all listed files.
func (t *Trash) Empty() {
	t.mu.Lock()
	numbers := t.numbers
	t.numbers = nil
	t.mu.Unlock()
	for _, n := range numbers {
		t.Remove(n)
	}
}
