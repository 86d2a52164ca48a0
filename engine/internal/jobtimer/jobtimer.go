// Package jobtimer measures flushes and compactions for the log.
package jobtimer

import (
	"log/slog"
	"time"

	"github.com/tablerock-db/tablerock/internal/lsm"
)

// Timer is a flush or compaction under way. It belongs to one goroutine.
type Timer struct {
	*lsm.Job
	tree   *lsm.Tree
	now    func() time.Time
	logger *slog.Logger
	begin  time.Time
	before lsm.Counters
}

// Start starts the Timer of a job of the tree.
func Start(job *lsm.Job, tree *lsm.Tree, now func() time.Time, logger *slog.Logger) *Timer {
	return &Timer{Job: job, tree: tree, now: now, logger: logger, begin: now(), before: tree.Counters()}
}

func (t *Timer) seconds() float64 { return t.now().Sub(t.begin).Seconds() }

// LogFlush logs a flush of memtables.
func (t *Timer) LogFlush(memtables int) {
	now := t.tree.Counters()
	t.logger.Debug("flushed memtables", "memtables", memtables, "files", now.FlushedFiles-t.before.FlushedFiles,
		"bytes", now.FlushedBytes-t.before.FlushedBytes, "seconds", t.seconds())
}

// LogCompaction logs what compactions did since the timer started. At most one
// is under way.
func (t *Timer) LogCompaction() {
	now := t.tree.Counters()
	t.logger.Debug("compacted sstables", "job", t.What(),
		"inputs", now.ReadFiles-t.before.ReadFiles, "outputs", now.CompactedFiles-t.before.CompactedFiles,
		"bytes_read", now.ReadBytes-t.before.ReadBytes, "bytes_written", now.CompactedBytes-t.before.CompactedBytes,
		"seconds", t.seconds())
}
