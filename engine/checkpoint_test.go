package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// TestCheckpoint copies a database whose data is in the log, in sstables and in both,
// and compares the copy with the source at the time of the copy.
func TestCheckpoint(t *testing.T) {
	for _, noSync := range []bool{false, true} {
		t.Run(fmt.Sprintf("nosync=%v", noSync), func(t *testing.T) {
			disk := vfs.NewCrashMem()
			o := manual(disk)
			o.NoSync = noSync
			db := mustCreate(t, o)
			check(t, "SetTableMeta", db.SetTableMeta(t.Context(), table, []byte("meta")))
			copies := map[string][]string{}
			take := func(dest string) {
				check(t, "Checkpoint", db.Checkpoint(t.Context(), dest))
				copies[dest] = dump(t, db, store.Query{})
			}
			take("empty")
			fill(t, db, "p", 30, 1000)
			take("deep/er/log") // its parents are new as well
			check(t, "Flush", db.Flush(t.Context()))
			take("file")
			fill(t, db, "p", 100, 2000) // several segments
			take("segments")
			check(t, "Compact", db.Compact(t.Context()))
			fill(t, db, "q", 3, 10)
			take("all")
			check(t, "Close", db.Close())

			after := disk.Crash(vfs.CrashOptions{Mode: "min"})
			for dest, want := range copies {
				c := mustOpen(t, dest, manual(after))
				if got := dump(t, c, store.Query{}); !slices.Equal(got, want) {
					t.Errorf("%s has %d rows, want %d: %q\nwant %q", dest, len(got), len(want), got, want)
				}
				if meta, err := c.TableMeta(t.Context(), table); err != nil || string(meta) != "meta" {
					t.Errorf("%s: metadata %q, %v", dest, meta, err)
				}
				if r, err := c.Verify(t.Context()); err != nil || len(r.Findings)+len(r.Unknown) > 0 {
					t.Errorf("%s: Verify: %+v, %v", dest, r, err)
				}
				apply(t, c, store.Insert(entity("new", "r", 1, 10)))
				check(t, "Close", c.Close())
				c = mustOpen(t, dest, manual(after))
				if got := dump(t, c, store.Query{}); len(got) != len(want)+1 {
					t.Errorf("%s has %d rows after a write, want %d", dest, len(got), len(want)+1)
				}
			}
		})
	}
}

// TestCheckpointBesideWriters copies a database while writers fill segments. Every
// copy must have a prefix of the rows of each writer, and at least those that were
// acknowledged before.
func TestCheckpointBesideWriters(t *testing.T) {
	disk := vfs.NewMem()
	db := mustCreate(t, small(disk))
	const writers, rows = 4, 600
	copies := 25
	if testing.Short() {
		copies = 12 // a segment is full after eight rows, so that flushes run beside the first
	}
	var wg sync.WaitGroup
	stop := make(chan struct{})
	var mu sync.Mutex
	acked := make([]int, writers)
	for w := range writers {
		wg.Go(func() {
			for i := range rows {
				select {
				case <-stop:
					return
				default:
				}
				apply(t, db, store.InsertOrReplace(entity(fmt.Sprint("p", w), fmt.Sprintf("%06d", i), int64(i), 8000)))
				mu.Lock()
				acked[w] = i + 1
				mu.Unlock()
			}
		})
	}
	for i := range copies {
		mu.Lock()
		least := slices.Clone(acked)
		mu.Unlock()
		dest := fmt.Sprint("copy", i)
		check(t, "Checkpoint", db.Checkpoint(t.Context(), dest))
		c := mustOpen(t, dest, manual(disk))
		for w := range writers {
			n := 0
			from := edm.Key{Partition: fmt.Sprint("p", w)}
			for e, err := range store.Entities(c.Query(t.Context(), table, store.Query{From: &from})) {
				check(t, "Query", err)
				if e.Key.Partition != from.Partition {
					break
				}
				if e.Key.Row != fmt.Sprintf("%06d", n) {
					t.Fatalf("%s: row %d of %s is %s", dest, n, from.Partition, e.Key.Row)
				}
				n++
			}
			if n < least[w] {
				t.Fatalf("%s: %d rows of %s, %d were acknowledged before", dest, n, from.Partition, least[w])
			}
		}
		check(t, "Close", c.Close())
		for _, name := range files(t, disk, dest, "") {
			check(t, "Remove", disk.Remove(dest+"/"+name))
		}
	}
	close(stop)
	wg.Wait()
}

// TestCheckpointRefusals makes checkpoints into directories with files, which must
// stay as they are.
func TestCheckpointRefusals(t *testing.T) {
	disk := vfs.NewMem()
	db := mustCreate(t, manual(disk))
	check(t, "MkdirAll", disk.MkdirAll("full"))
	writeFile(t, disk, "full/file", []byte("mine"))
	before := treeOf(t, disk, "full")
	if err := db.Checkpoint(t.Context(), "full"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("into a directory with a file: %v, want %v", err, fs.ErrExist)
	}
	if after := treeOf(t, disk, "full"); after != before {
		t.Errorf("the directory was\n%s and is\n%s", before, after)
	}
	if err := db.Checkpoint(t.Context(), "db"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("into itself: %v, want %v", err, fs.ErrExist)
	}
	if err := db.Checkpoint(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "the path of the directory is empty") {
		t.Errorf("without a path: %v", err)
	}
	check(t, "MkdirAll", disk.MkdirAll("db/empty"))
	before = treeOf(t, disk, "/")
	for _, dest := range []string{"db/copy", "db/empty", "/db/deep/copy", "other/../db/copy", "db/../db/./copy/"} {
		if err := db.Checkpoint(t.Context(), dest); !errors.Is(err, fs.ErrInvalid) || !strings.Contains(err.Error(), "db, which is a database") {
			t.Errorf("into %s: %v, want %v with the directory of the database", dest, err, fs.ErrInvalid)
		}
		if after := treeOf(t, disk, "/"); after != before {
			t.Fatalf("after a refused checkpoint into %s the files were\n%s and are\n%s", dest, before, after)
		}
	}
	check(t, "MkdirAll", disk.MkdirAll("project"))
	writeFile(t, disk, "project/MANIFEST", []byte("of another program"))
	for _, dest := range []string{"empty", "project/copy"} {
		check(t, "MkdirAll", disk.MkdirAll(dest))
		check(t, "Checkpoint", db.Checkpoint(t.Context(), dest))
	}
	check(t, "Close", db.Close())
	if err := db.Checkpoint(t.Context(), "late"); !errors.Is(err, store.ErrClosed) {
		t.Errorf("after Close: %v, want %v", err, store.ErrClosed)
	}
}

// TestCheckpointLinks links the sstables of the source if the file system can, and
// copies them otherwise. The copy must not need the source.
func TestCheckpointLinks(t *testing.T) {
	for _, linked := range []bool{true, false} {
		t.Run(fmt.Sprintf("linked=%v", linked), func(t *testing.T) {
			dir := t.TempDir()
			links := 0
			fsys := errorfs.Wrap(vfs.OS(), func(op vfs.Op) *errorfs.Fault {
				if op.Kind != "link" {
					return nil
				}
				links++
				if linked {
					return nil
				}
				return &errorfs.Fault{Err: errors.New("cross-device link")}
			})
			db := mustOpen(t, dir+"/db", manual(fsys))
			check(t, "CreateTable", db.CreateTable(t.Context(), table))
			fill(t, db, "p", 50, 1000)
			check(t, "Compact", db.Compact(t.Context()))
			fill(t, db, "q", 10, 1000)
			want := dump(t, db, store.Query{})
			check(t, "Checkpoint", db.Checkpoint(t.Context(), dir+"/copy"))
			if links == 0 {
				t.Error("no link was tried")
			}
			check(t, "Compact", db.Compact(t.Context())) // removes the source's files
			check(t, "Close", db.Close())
			c := mustOpen(t, dir+"/copy", engine.Options{})
			if got := dump(t, c, store.Query{}); !slices.Equal(got, want) {
				t.Errorf("the copy has %q\nwant %q", got, want)
			}
		})
	}
}

// TestCheckpointOfDamage makes checkpoints of a database with a damaged sstable. A copy of the
// file must fail, and the checkpoint must not be a database. A link is made without reading the
// file, and Verify of the checkpoint finds the damage.
func TestCheckpointOfDamage(t *testing.T) {
	disk := vfs.NewMem()
	unlinked := errors.New("cross-device link")
	var fault *errorfs.Fault
	db := mustCreate(t, manual(errorfs.Wrap(disk, func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "link" {
			return fault
		}
		return nil
	})))
	fill(t, db, "p", 500, 1000)
	check(t, "Compact", db.Compact(t.Context()))
	names := files(t, disk, "db", ".sst")
	name := names[len(names)-1] // the first has the catalog, which Open reads
	b := readFile(t, disk, "db/"+name)
	off := int64(len(b) / 2)
	check(t, "Patch", disk.Patch("db/"+name, off, []byte{b[off] ^ 1}))

	fault = &errorfs.Fault{Err: unlinked}
	var damage *store.CorruptError
	if err := db.Checkpoint(t.Context(), "copied"); !errors.Is(err, store.ErrCorrupt) || !errors.As(err, &damage) || damage.File != name {
		t.Errorf("Checkpoint: %v, want damage of %s", err, name)
	}
	if _, err := disk.Stat("copied/MANIFEST"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the failed checkpoint has a manifest: %v", err)
	}
	fault = nil
	check(t, "Checkpoint", db.Checkpoint(t.Context(), "linked"))
	c := mustOpen(t, "linked", manual(disk))
	if r, err := c.Verify(t.Context()); err != nil || len(r.Findings) == 0 || r.Findings[0].File != name {
		t.Errorf("Verify of the checkpoint: %+v, %v, want damage of %s", r, err, name)
	}
}

// TestCheckpointLetsFlushesRun flushes and compacts while a checkpoint copies sstables
// to a file system without links. Writers would wait for such flushes.
func TestCheckpointLetsFlushesRun(t *testing.T) {
	disk := vfs.NewMem()
	var db *engine.DB
	copying := make(chan struct{})
	flushed := make(chan error, 2)
	var once sync.Once
	limited := errorfs.Wrap(disk, func(op vfs.Op) *errorfs.Fault {
		switch {
		case op.Kind == "link":
			return &errorfs.Fault{Err: errors.ErrUnsupported}
		case op.Kind == "create" && strings.HasPrefix(op.Name, "dest/") && strings.HasSuffix(op.Name, ".sst"):
			once.Do(func() {
				close(copying)
				select {
				case err := <-flushed:
					flushed <- err
				case <-time.After(5 * time.Minute):
					flushed <- errors.New("flush waits for the checkpoint")
				}
			})
		}
		return nil
	})
	db = mustCreate(t, manual(limited))
	fill(t, db, "p", 30, 1000)
	check(t, "Flush", db.Flush(t.Context()))
	fill(t, db, "p", 40, 1000)
	want := dump(t, db, store.Query{})
	var group sync.WaitGroup
	group.Go(func() {
		<-copying
		fill(t, db, "q", 50, 1000)
		flushed <- errors.Join(db.Flush(t.Context()), db.Compact(t.Context()))
	})
	check(t, "Checkpoint", db.Checkpoint(t.Context(), "dest"))
	group.Wait()
	check(t, "flush while the checkpoint copies", <-flushed)
	check(t, "Close", db.Close())
	c := mustOpen(t, "dest", manual(disk))
	if got := dump(t, c, store.Query{}); !slices.Equal(got, want) {
		t.Errorf("the checkpoint has %d rows, want %d", len(got), len(want))
	}
	check(t, "Close", c.Close())
}

// TestCheckpointThatFails makes checkpoints to another file system, and fails each operation on the copies and reads of sstables.
// Every one must fail, leave no manifest and close the files that it reads. The next attempt says why the directory is not empty.
// The checkpoint without a fault is durable.
func TestCheckpointThatFails(t *testing.T) {
	disk := vfs.NewCrashMem()
	fsys := errorfs.Wrap(disk, nil)
	db := mustCreate(t, manual(fsys))
	fill(t, db, "p", 3, 1000)
	check(t, "Flush", db.Flush(t.Context()))
	fill(t, db, "q", 3, 1000)
	injected := errors.New("injected")
	kinds := map[string]int{}
	for n, ended := 1, false; !ended; n++ {
		dest := fmt.Sprint("dest", n)
		var failed vfs.Op
		calls, renamed, opened := 0, false, 0
		fsys.SetRule(func(op vfs.Op) *errorfs.Fault {
			switch table := strings.HasPrefix(op.Name, "db/") && strings.HasSuffix(op.Name, ".sst"); {
			case op.Kind == "link":
				return &errorfs.Fault{Err: errors.ErrUnsupported}
			case table && op.Kind == "close":
				opened--
				return nil
			case !table && !strings.HasPrefix(op.Name, dest):
				return nil
			}
			if calls++; calls == n {
				failed = op
				return &errorfs.Fault{Err: injected}
			}
			renamed = renamed || calls < n && op.Kind == "rename"
			if op.Kind == "open" && !strings.HasPrefix(op.Name, dest) {
				opened++
			}
			return nil
		})
		err := db.Checkpoint(t.Context(), dest)
		fsys.SetRule(nil)
		if opened != 0 {
			t.Errorf("%v failed: %d sstables are still open", failed, opened)
		}
		if ended = calls < n; ended {
			check(t, "Checkpoint without a fault", err)
			c := mustOpen(t, dest, manual(disk.Crash(vfs.CrashOptions{Mode: "min"})))
			if got, want := dump(t, c, store.Query{}), dump(t, db, store.Query{}); !slices.Equal(got, want) {
				t.Errorf("after a power cut the checkpoint has %q, want %q", got, want)
			}
			continue
		}
		kinds[failed.Kind]++
		if !errors.Is(err, injected) {
			t.Errorf("%v failed: Checkpoint: %v, want %v", failed, err, injected)
			continue
		}
		if renamed {
			continue // the manifest is there
		}
		if _, err := disk.Stat(dest + "/MANIFEST"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v failed: the manifest exists, %v", failed, err)
		}
		if names, _ := disk.List(dest); len(names) == 0 {
			continue
		}
		if err := db.Checkpoint(t.Context(), dest); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), "did not finish") {
			t.Errorf("%v failed: the next Checkpoint: %v, want that the last one did not finish", failed, err)
		}
	}
	for _, kind := range []string{"open", "read", "create", "write", "sync", "close", "sync-dir", "list", "mkdir"} {
		if kinds[kind] == 0 {
			t.Errorf("no %s failed: %v", kind, kinds)
		}
	}
	check(t, "MkdirAll", disk.MkdirAll("other"))
	writeFile(t, disk, "other/000001.sst", nil)
	writeFile(t, disk, "other/notes", nil)
	if err := db.Checkpoint(t.Context(), "other"); !errors.Is(err, fs.ErrExist) || strings.Contains(err.Error(), "did not finish") {
		t.Errorf("into a directory with another file: %v, want %v, and no guess", err, fs.ErrExist)
	}
}

// TestCheckpointOfLargeFile copies an sstable in several reads, and ends the context after the first of them.
func TestCheckpointOfLargeFile(t *testing.T) {
	disk := vfs.NewMem()
	fsys := errorfs.Wrap(disk, nil)
	o := manual(fsys)
	o.FileBytes, o.SegmentBytes = 8<<20, 4<<20
	db := mustCreate(t, o)
	random, bytes := rand.NewChaCha8([32]byte{}), make([]byte, 60_000)
	for i := range 40 {
		_, _ = random.Read(bytes)
		e := entity("p", fmt.Sprint(i), 1, 1)
		e.Properties[1].Value = edm.Binary(slices.Clone(bytes))
		apply(t, db, store.Insert(e))
	}
	check(t, "Flush", db.Flush(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reads, second, stop, stopped := 0, false, false, 0
	fsys.SetRule(func(op vfs.Op) *errorfs.Fault {
		switch {
		case op.Kind == "link":
			return &errorfs.Fault{Err: errors.ErrUnsupported}
		case op.Kind == "read":
			reads++
			second = second || op.Off == 1<<20
			if stop && op.Len == 1<<20 {
				stopped = reads
				cancel()
			}
		}
		return nil
	})
	check(t, "Checkpoint", db.Checkpoint(ctx, "whole"))
	c := mustOpen(t, "whole", manual(disk))
	if got, want := dump(t, c, store.Query{}), dump(t, db, store.Query{}); !second || !slices.Equal(got, want) {
		t.Errorf("a second read of a file: %t; the checkpoint has %d rows, want %d", second, len(got), len(want))
	}
	stop = true
	if err := db.Checkpoint(ctx, "ended"); !errors.Is(err, context.Canceled) || stopped == 0 || reads != stopped {
		t.Errorf("the context ended: %v, want %v; it ended in read %d of %d", err, context.Canceled, stopped, reads)
	}
}

// TestCheckpointOfLongLog copies a log of 70 MiB with several syncs, and ends the context after a part
// of it was written.
func TestCheckpointOfLongLog(t *testing.T) {
	disk := vfs.NewMem()
	fsys := errorfs.Wrap(disk, nil)
	o := manual(fsys)
	o.SegmentBytes = 256 << 20
	db := mustCreate(t, o)
	e := entity("p", "", 1, 1)
	e.Properties[1].Value = edm.Binary(make([]byte, 60_000))
	const rows = 70 << 20 / 60_000
	for i := range rows {
		e.Key.Row = fmt.Sprint(i)
		apply(t, db, store.Insert(e))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	written, syncs, longest, unsynced, end := int64(0), 0, int64(0), int64(0), int64(math.MaxInt64)
	fsys.SetRule(func(op vfs.Op) *errorfs.Fault {
		switch {
		case !strings.HasSuffix(op.Name, ".wal") || op.Done != 0:
		case op.Kind == "write":
			written, unsynced = written+op.Len, unsynced+op.Len
			longest = max(longest, unsynced)
			if written >= end {
				cancel()
			}
		case op.Kind == "sync":
			syncs, unsynced = syncs+1, 0
		}
		return nil
	})
	check(t, "Checkpoint", db.Checkpoint(ctx, "whole"))
	if written < rows*60_000 || syncs < 3 || longest > 32<<20 || unsynced != 0 {
		t.Errorf("%d bytes with %d syncs, up to %d bytes before one, %d after the last", written, syncs, longest, unsynced)
	}
	c := mustOpen(t, "whole", manual(disk))
	if got := len(dump(t, c, store.Query{})); got != rows {
		t.Errorf("the checkpoint has %d rows, want %d", got, rows)
	}
	written, end = 0, 40<<20
	if err := db.Checkpoint(ctx, "ended"); !errors.Is(err, context.Canceled) || written > end+1<<20 {
		t.Errorf("the context ended: %v after %d bytes, want %v after %d", err, written, context.Canceled, end)
	}
}
