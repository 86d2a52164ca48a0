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
	t.log(number, t.remove(number))
}

func (t *Trash) remove(number uint64) error {
	t.mu.Lock()
	defer t.mu.Unlock() // also if the FS panics
	if t.closed {
		return nil
	}
	err := t.FS.Remove(path.Join(t.Dir, filename.Make(filename.SSTable, number)))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	t.numbers = append(t.numbers, number)
	return err
}

// log logs a failed removal. The caller does not hold mu, because a handler may wait for a cursor
// that removes files at its end.
func (t *Trash) log(number uint64, err error) {
	if err != nil {
		t.Logger.Warn("removal failed", "file", filename.Make(filename.SSTable, number), "cause", err)
	}
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

// Close ends the removals, because the directory can be another database's from now on.
func (t *Trash) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
}
