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
	memtables int // of a flush
	tree      *lsm.Tree
	now       func() time.Time
	logger    *slog.Logger
	begin     time.Time
	before    lsm.Counters
}

// Start starts and logs the Timer of a job of the tree: a flush of memtables, or a
// compaction if there are none.
func Start(job *lsm.Job, memtables int, tree *lsm.Tree, now func() time.Time, logger *slog.Logger) *Timer {
	started := false
	defer func() {
		if !started { // now or logger panics
			job.Abort()
		}
	}()
	t := &Timer{Job: job, memtables: memtables, tree: tree, now: now, logger: logger, begin: now(), before: tree.Counters()}
	if memtables > 0 {
		logger.Debug("flush begins", "memtables", memtables, "run", job.Run)
	} else {
		logger.Debug("compaction begins", "job", job.What, "inputs", Inputs(job.Inputs))
	}
	started = true
	return t
}

// Inputs are the numbers of sstables. The text of a log has how many there are.
type Inputs []uint64

// LogValue implements slog.LogValuer.
func (i Inputs) LogValue() slog.Value { return slog.IntValue(len(i)) }

// Numbers returns the numbers, for a handler that shows the sstables.
func (i Inputs) Numbers() []uint64 { return i }

func (t *Timer) seconds() float64 { return t.now().Sub(t.begin).Seconds() }

// LogDone logs what the flush or compaction did. At most one of each kind is under way.
func (t *Timer) LogDone() {
	now := t.tree.Counters()
	if t.memtables > 0 {
		t.logger.Debug("flushed memtables", "memtables", t.memtables, "files", now.FlushedFiles-t.before.FlushedFiles,
			"bytes", now.FlushedBytes-t.before.FlushedBytes, "seconds", t.seconds())
		return
	}
	t.logger.Debug("compacted sstables", "job", t.What,
		"inputs", now.ReadFiles-t.before.ReadFiles, "outputs", now.CompactedFiles-t.before.CompactedFiles,
		"bytes_read", now.ReadBytes-t.before.ReadBytes, "bytes_written", now.CompactedBytes-t.before.CompactedBytes,
		"seconds", t.seconds())
}

// Abort ends the job without a result and logs that.
func (t *Timer) Abort() {
	t.Job.Abort()
	t.logger.Debug(map[bool]string{true: "flush aborted", false: "compaction aborted"}[t.memtables > 0])
}
