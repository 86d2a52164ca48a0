package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

func stats(tb testing.TB, db *engine.DB) engine.Stats {
	tb.Helper()
	s, err := db.Stats()
	check(tb, "Stats", err)
	return s
}

// stall fills memtables until the writer had to flush.
func stall(tb testing.TB, db *engine.DB, partition string) {
	tb.Helper()
	for i := 0; stats(tb, db).Flushes == 0; i++ {
		apply(tb, db, store.InsertOrReplace(entity(partition, fmt.Sprintf("%06d", i), 0, 10<<10)))
	}
}

// TestCounters does what each counter of Stats counts.
func TestCounters(t *testing.T) {
	o := manual(vfs.NewMem())
	o.Testing.Clock = new(tick)
	db := mustCreate(t, o)
	before := stats(t, db)
	apply(t, db, store.Insert(entity("p", "r", 1, 1000)))
	s := stats(t, db)
	if n := s.LogBytesWritten - before.LogBytesWritten; n < 1000 || n > 2000 || s.LogSyncs != before.LogSyncs+1 {
		t.Errorf("a write of 1000 bytes: %d bytes and %d syncs of the log, want about 1000 and 1", n, s.LogSyncs-before.LogSyncs)
	}
	if s.Flushes+s.Compactions+s.Stalls != 0 || s.FlushBytesWritten+s.CompactionBytesRead+s.CompactionBytesWritten+int64(s.StallTime) != 0 {
		t.Errorf("after one write: %+v, want no flush, compaction or stall", s)
	}

	stall(t, db, "q")
	s = stats(t, db)
	if s.Stalls != 1 || s.StallTime <= 0 {
		t.Errorf("after a stall: %d stalls of %v", s.Stalls, s.StallTime)
	}
	if s.Flushes != 1 || s.FlushBytesWritten < 1000 {
		t.Errorf("after a flush: %d flushes of %d bytes", s.Flushes, s.FlushBytesWritten)
	}

	check(t, "Compact", db.Compact(t.Context()))
	s = stats(t, db)
	if s.Compactions == 0 || s.CompactionBytesRead < 1000 || s.CompactionBytesWritten < 1000 {
		t.Errorf("after a compaction: %d compactions, %d bytes read, %d written", s.Compactions, s.CompactionBytesRead, s.CompactionBytesWritten)
	}

	get := func() (hits, misses uint64) {
		before := stats(t, db)
		_, err := db.Get(t.Context(), table, edm.Key{Partition: "q", Row: "000001"})
		check(t, "Get", err)
		s := stats(t, db)
		return s.CacheHits - before.CacheHits, s.CacheMisses - before.CacheMisses
	}
	if _, misses := get(); misses == 0 {
		t.Error("the first get has no cache miss")
	}
	if hits, misses := get(); hits == 0 || misses != 0 {
		t.Errorf("the second get has %d cache hits and %d misses", hits, misses)
	}

	check(t, "Close", closeAtOnce(db))
	db = mustOpen(t, "db", o)
	s = stats(t, db)
	if s.Flushes+s.Compactions+s.Stalls != 0 || s.LogBytesWritten != 0 || s.LogSyncs != 0 {
		t.Errorf("after Open: %+v, want counters of zero", s)
	}
}

// TestCountersNoSync counts the writes and syncs of the log in NoSync mode. A flush needs
// neither: what it writes is durable without the log. A checkpoint copies the log.
func TestCountersNoSync(t *testing.T) {
	o := manual(vfs.NewMem())
	o.NoSync = true
	db := mustCreate(t, o)
	fill(t, db, "p", 30, 1000)
	written := stats(t, db)
	if written.LogBytesWritten < 20_000 || written.LogBytesWritten > 60_000 || written.LogSyncs != 1 {
		t.Errorf("%d bytes and %d syncs of the log, want about 30 KB, and one sync, of the header", written.LogBytesWritten, written.LogSyncs)
	}
	check(t, "Flush", db.Flush(t.Context()))
	if s := stats(t, db); s.LogBytesWritten != written.LogBytesWritten || s.LogSyncs != 1 {
		t.Errorf("after the flush: %d bytes and %d syncs of the log, want %d and 1", s.LogBytesWritten, s.LogSyncs, written.LogBytesWritten)
	}
	fill(t, db, "q", 30, 1000)
	check(t, "Checkpoint", db.Checkpoint(t.Context(), "copy"))
	if s := stats(t, db); s.LogBytesWritten < 50_000 || s.LogBytesWritten > 120_000 || s.LogSyncs != 3 {
		t.Errorf("after the checkpoint: %d bytes and %d syncs of the log, want about 60 KB, and 3: of two headers and of the records", s.LogBytesWritten, s.LogSyncs)
	}
}

// TestLogger does everything that is logged, and compares the lines.
func TestLogger(t *testing.T) {
	var out bytes.Buffer
	disk := vfs.NewMem()
	bad := errors.New("bad sync")
	fsys := errorfs.Wrap(disk, nil)
	o := manual(fsys)
	o.Testing.Clock = new(tick)
	o.Logger = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	expect := func(what string, want ...string) {
		t.Helper()
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		out.Reset()
		if len(lines) != len(want) {
			t.Fatalf("%s logs %d lines, want %d:\n%s", what, len(lines), len(want), strings.Join(lines, "\n"))
		}
		for i := range want {
			if !regexp.MustCompile(`^time=\S+ ` + want[i] + `$`).MatchString(lines[i]) {
				t.Errorf("%s logs\n%s\nwant\n%s", what, lines[i], want[i])
			}
		}
	}
	const number, seconds = `[1-9]\d*`, `seconds=\S*[1-9]\S*`
	closed := `level=INFO msg="database closed" dir=db`

	db := mustCreate(t, o)
	expect("Open", `level=INFO msg="database opened" dir=db read_only=false retries=0 segments=0 entries=0 `+seconds)
	flush := `level=DEBUG msg="flush begins" memtables=` + number + ` run=` + number
	flushed := `level=DEBUG msg="flushed memtables" memtables=` + number + ` files=` + number + ` bytes=` + number + ` ` + seconds
	stall(t, db, "p")
	expect("a stall",
		`level=INFO msg="write stall begins" cause="memtables wait for a flush"`,
		flush, flushed,
		`level=INFO msg="write stall ended" cause="memtables wait for a flush" `+seconds)
	check(t, "Compact", db.Compact(t.Context()))
	expect("Compact", flush, flushed, `level=DEBUG msg="compaction begins" job="full compaction" inputs=`+number,
		`level=DEBUG msg="compacted sstables" job="full compaction" inputs=`+number+` outputs=`+number+
			` bytes_read=`+number+` bytes_written=`+number+` `+seconds)
	for range 4 {
		fill(t, db, "p", 3, 100)
		check(t, "Flush", db.Flush(t.Context()))
	}
	out.Reset()
	drain(t, db)
	if got := out.String(); !strings.Contains(got, `level=DEBUG msg="compaction begins" job="compaction (`) ||
		!strings.Contains(got, `level=DEBUG msg="compacted sstables" job="compaction (`) {
		t.Errorf("compactions of tiers log\n%s", got)
	}
	out.Reset()

	fill(t, db, "q", 5, 100)
	check(t, "Close", closeAtOnce(db))
	expect("Close", closed)
	db = mustOpen(t, "db", o)
	expect("Open with a log", `level=INFO msg="database opened" dir=db read_only=false retries=0 segments=1 entries=5 `+seconds)

	fsys.SetRule(errorfs.FailNth(1, func(op vfs.Op) bool { return op.Kind == "sync" }, errorfs.Fault{Err: bad}, true))
	if _, err := db.Apply(t.Context(), table, store.Insert(entity("new", "r", 1, 1))); !errors.Is(err, store.ErrOutcomeUnknown) {
		t.Errorf("Apply: %v, want %v", err, store.ErrOutcomeUnknown)
	}
	expect("a failed sync", `level=ERROR msg="log failed, database is read-only until it is opened again" cause="[^"]*bad sync[^"]*"`)
	fsys.SetRule(nil)
	check(t, "Close", closeAtOnce(db))
	expect("Close", closed)

	o.Logger = nil
	db = mustOpen(t, "db", o)
	stall(t, db, "r")
	check(t, "Close", closeAtOnce(db))
	if out.Len() > 0 {
		t.Errorf("without a Logger the database logs %s", out.String())
	}
}

// TestLoggerOfWorker fails a flush of the background goroutine.
func TestLoggerOfWorker(t *testing.T) {
	logged := make(chan string, 100)
	o := small(errorfs.Wrap(vfs.NewMem(), func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "create" && strings.HasSuffix(op.Name, ".sst") {
			return &errorfs.Fault{Err: errors.New("bad create")}
		}
		return nil
	}))
	o.Logger = slog.New(slog.NewTextHandler(lineWriter(logged), nil))
	db := mustCreate(t, o)
	<-logged // opened
	fill(t, db, "p", 10, 10<<10)
	if line := <-logged; !strings.Contains(line, `level=ERROR msg="background work failed" cause=`) || !strings.Contains(line, "bad create") {
		t.Errorf("a failed flush logs %s", line)
	}
}

// lineWriter sends each line to a channel, and drops it if nobody receives.
type lineWriter chan<- string

func (w lineWriter) Write(b []byte) (int, error) {
	select {
	case w <- string(b):
	default:
	}
	return len(b), nil
}

// TestIdleLogOnFullDisk has an idle log whose end the manifest cannot list. A full disk is a warning.
func TestIdleLogOnFullDisk(t *testing.T) {
	for cause, level := range map[error]string{syscall.ENOSPC: "WARN", syscall.EIO: "ERROR"} {
		synctest.Test(t, func(t *testing.T) {
			var logged bytes.Buffer
			o := manual(errorfs.Wrap(vfs.NewMem(), nil))
			o.Testing.Manual = false
			o.Logger = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelWarn}))
			db := mustCreate(t, o)
			apply(t, db, store.Insert(entity("p", "r", 1, 10)))
			o.FS.(*errorfs.FS).SetRule(func(op vfs.Op) *errorfs.Fault {
				if op.Kind == "create" && path.Base(op.Name) == "MANIFEST.tmp" {
					return &errorfs.Fault{Err: cause}
				}
				return nil
			})
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if want := "level=" + level + ` msg="listing the end of the idle log in the manifest failed"`; strings.Count(logged.String(), "level=") != 1 ||
				!strings.Contains(logged.String(), want) {
				t.Errorf("after %v the log is\n%swant one line, with %s", cause, &logged, want)
			}
			o.FS.(*errorfs.FS).SetRule(nil)
			check(t, "Close", db.Close())
		})
	}
}
