package engine_test

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// TestLocked opens a database that this process, or another one, has open.
func TestLocked(t *testing.T) {
	wantLocked := func(dir string, o engine.Options, holder string) {
		t.Helper()
		_, err := engine.Open(dir, o)
		var locked *vfs.LockedError
		if !errors.Is(err, store.ErrLocked) || !errors.As(err, &locked) || !strings.Contains(locked.Holder, holder) {
			t.Errorf("Open: %v, want %v, held by %q", err, store.ErrLocked, holder)
		}
	}
	t.Run("memory", func(t *testing.T) {
		o := manual(vfs.NewMem())
		db := mustCreate(t, o)
		wantLocked("db", o, "process")
		check(t, "Close", closeAtOnce(db))
		mustOpen(t, "db", o)
	})
	t.Run("process", func(t *testing.T) {
		dir := t.TempDir()
		db := mustOpen(t, dir, engine.Options{})
		wantLocked(dir, engine.Options{}, fmt.Sprint("pid ", os.Getpid()))
		check(t, "Close", closeAtOnce(db))
	})
	t.Run("other process", func(t *testing.T) {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), openChild+"="+dir)
		in, err := cmd.StdinPipe()
		check(t, "StdinPipe", err)
		out, err := cmd.StdoutPipe()
		check(t, "StdoutPipe", err)
		check(t, "Start", cmd.Start())
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil || line != "open\n" {
			t.Fatalf("the other process says %q, %v", line, err)
		}
		wantLocked(dir, engine.Options{}, fmt.Sprint("pid ", cmd.Process.Pid))
		check(t, "Close", in.Close())
		check(t, "Wait", cmd.Wait())
		mustOpen(t, dir, engine.Options{})
	})
}

// TestForeignDirectory opens directories that are not a database. Nothing in them may
// change.
func TestForeignDirectory(t *testing.T) {
	other := vfs.NewMem()
	db := mustCreate(t, manual(other))
	fill(t, db, "p", 3, 10)
	check(t, "Close", closeAtOnce(db))
	segment := readFile(t, other, "db/"+files(t, other, "db", ".wal")[0])
	for _, c := range []struct {
		name  string
		file  string
		bytes []byte
	}{
		{"a file", "notes.txt", []byte("mine")},
		{"an empty file", "x", nil},
		{"a segment with records", "000001.wal", segment},
		{"an sstable", "000001.sst", nil},
		{"a manifest of another name", "MANIFEST.old", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			disk := vfs.NewMem()
			check(t, "MkdirAll", disk.MkdirAll("db"))
			writeFile(t, disk, "db/"+c.file, c.bytes)
			before := treeOf(t, disk, "db")
			if _, err := engine.Open("db", manual(disk)); !errors.Is(err, store.ErrNotDatabase) || !strings.Contains(fmt.Sprint(err), c.file) {
				t.Errorf("Open: %v, want %v that names %s", err, store.ErrNotDatabase, c.file)
			}
			if after := treeOf(t, disk, "db"); after != before {
				t.Errorf("the directory was\n%s and is\n%s", before, after)
			}
		})
	}
	t.Run("a file instead of the directory", func(t *testing.T) {
		disk := vfs.NewMem()
		writeFile(t, disk, "db", []byte("mine"))
		if _, err := engine.Open("db", manual(disk)); err == nil {
			t.Error("Open of a file succeeded")
		}
		if string(readFile(t, disk, "db")) != "mine" {
			t.Error("the file changed")
		}
	})
}

// TestInterruptedCreation interrupts the creation of a database at every operation, by
// a kill and by a power cut. The next Open must complete it.
func TestInterruptedCreation(t *testing.T) {
	disk := vfs.NewCrashMem()
	var states []*vfs.Mem
	disk.OnOp(func(vfs.Op) {
		states = append(states, disk.Clone())
		for mode, m := range vfs.CrashModes {
			states = append(states, disk.Crash(vfs.CrashOptions{Mode: m, Seed: uint64(mode)}))
		}
	})
	db := mustOpen(t, "a/db", manual(disk))
	check(t, "CreateTable", db.CreateTable(t.Context(), table))
	disk.OnOp(nil)
	check(t, "Close", closeAtOnce(db))
	if len(states) < 7*8 {
		t.Fatalf("%d states, want more", len(states))
	}
	for i, after := range states {
		db, err := engine.Open("a/db", manual(after))
		if err != nil {
			t.Errorf("state %d: %v\n%s", i, err, treeOf(t, after, "/"))
			continue
		}
		if err := db.CreateTable(t.Context(), table); err != nil && !errors.Is(err, store.ErrTableExists) {
			t.Errorf("state %d: CreateTable: %v", i, err)
		}
		check(t, "Close", closeAtOnce(db))
	}
}

// TestCreationIsDurable cuts the power right after the first write to a database
// whose directory has new parents.
func TestCreationIsDurable(t *testing.T) {
	for _, dir := range []string{"db", "a/b/db", "/a/db/", "./db"} {
		disk := vfs.NewCrashMem()
		db := mustOpen(t, dir, manual(disk))
		check(t, "CreateTable", db.CreateTable(t.Context(), table))
		db = mustOpen(t, dir, manual(disk.Crash(vfs.CrashOptions{Mode: "min"})))
		if tables, err := db.Tables(t.Context(), "", 0); err != nil || len(tables) != 1 {
			t.Errorf("%s: tables %v, %v after a power cut, want one", dir, tables, err)
		}
	}
}

// TestMissingReadOnly opens a missing and an empty directory for reading. Nothing may
// be created.
func TestMissingReadOnly(t *testing.T) {
	disk := vfs.NewMem()
	o := manual(disk)
	o.ReadOnly = true
	check(t, "MkdirAll", disk.MkdirAll("empty"))
	for _, dir := range []string{"db", "empty"} {
		before := treeOf(t, disk, "/")
		if _, err := engine.Open(dir, o); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Open(%s): %v, want %v", dir, err, fs.ErrNotExist)
		}
		if after := treeOf(t, disk, "/"); after != before {
			t.Errorf("the disk was\n%s and is\n%s", before, after)
		}
	}
}

// TestSharedCache opens databases with the same file numbers, and even the same id,
// with one cache.
func TestSharedCache(t *testing.T) {
	cache := engine.NewCache(1 << 20)
	source := vfs.NewMem()
	check(t, "Close", closeAtOnce(mustCreate(t, manual(source))))
	var dbs []*engine.DB
	for i := range 3 {
		o := manual(source.Clone())
		o.Cache = cache
		db := mustOpen(t, "db", o)
		apply(t, db, store.Insert(entity("p", "r", int64(i), 10)))
		check(t, "Flush", db.Flush(t.Context()))
		dbs = append(dbs, db)
	}
	for range 2 {
		for i, db := range dbs {
			e, err := db.Get(t.Context(), table, edm.Key{Partition: "p", Row: "r"})
			if err != nil || !e.Properties.Get("N").Equal(edm.Int64(int64(i))) {
				t.Errorf("database %d: %v, %v", i, e.Properties.Get("N"), err)
			}
		}
	}
	check(t, "Close", closeAtOnce(dbs[0]))
	if got := dump(t, dbs[1], store.Query{}); len(got) != 1 {
		t.Errorf("after another one was closed: %q", got)
	}
}

// TestBadOptions opens databases with invalid options. Nothing may be created.
func TestBadOptions(t *testing.T) {
	for _, o := range []engine.Options{
		{SegmentBytes: 1},
		{SegmentBytes: 2 << 30},
		{FileBytes: 1},
		{FileBytes: 128 << 20},
		{TierRuns: 1},
		{TierRuns: 17},
		{CacheBytes: -1},
		{MemoryBytes: -1},
		{MemoryBytes: 1 << 10},
		{MemoryBytes: 8 << 20, CacheBytes: 8 << 20},
		{MemoryBytes: 8 << 20, SegmentBytes: 8 << 20},
		{MemoryBytes: 8 << 20, CacheBytes: math.MaxInt64},
		{CacheBytes: math.MaxInt64},
	} {
		disk := vfs.NewMem()
		o.FS = disk
		if _, err := engine.Open("db", o); err == nil || !strings.HasPrefix(err.Error(), "options: ") {
			t.Errorf("Open with %+v: %v", o, err)
		}
		if names, _ := disk.List("/"); len(names) > 0 {
			t.Errorf("Open with %+v created %v", o, names)
		}
	}
}

// TestEmptyPath opens databases without a path, in a directory with a database.
func TestEmptyPath(t *testing.T) {
	disk := vfs.NewMem()
	db, err := engine.Open(".", manual(disk))
	check(t, "Open", err)
	check(t, "Close", closeAtOnce(db))
	for _, readOnly := range []bool{false, true} {
		o := manual(disk)
		o.ReadOnly = readOnly
		if _, err := engine.Open("", o); err == nil || !strings.Contains(err.Error(), "the path of the directory is empty") {
			t.Errorf("ReadOnly %t: %v", readOnly, err)
		}
	}
}

// TestUnwritableDirectory opens databases in a directory in which no file can be created. Open
// must say so, before a write is accepted. On a full disk it must succeed.
func TestUnwritableDirectory(t *testing.T) {
	for _, left := range []bool{false, true} { // a temporary manifest by a crash
		disk := vfs.NewMem()
		db := mustCreate(t, manual(disk))
		fill(t, db, "p", 3, 10)
		check(t, "Close", db.Close())
		if left {
			writeFile(t, disk, "db/MANIFEST.tmp", []byte("left"))
		}
		before := treeOf(t, disk, "db")
		for _, cause := range []error{fs.ErrPermission, syscall.EROFS, syscall.ENOSPC} {
			fsys := errorfs.Wrap(disk, func(op vfs.Op) *errorfs.Fault {
				if op.Kind == "create" || op.Kind == "remove" && left && cause != syscall.ENOSPC {
					return &errorfs.Fault{Err: cause}
				}
				return nil
			})
			db, err := engine.Open("db", manual(fsys))
			if cause == syscall.ENOSPC {
				check(t, "Open on a full disk", err)
				check(t, "Close", closeAtOnce(db))
				continue
			}
			if !errors.Is(err, cause) || !strings.Contains(fmt.Sprint(err), "open db: no file can be created in the directory: ") {
				t.Errorf("Open: %v, want %v and the directory", err, cause)
			}
			if after := treeOf(t, disk, "db"); after != before {
				t.Errorf("the directory was\n%s and is\n%s", before, after)
			}
		}
		mustOpen(t, "db", manual(disk)) // the lock is free
	}
}

// TestLeftovers opens a database whose flush was interrupted, in a directory with
// foreign files. The leftovers of the flush must be removed and never be used; the
// foreign files must stay, and Verify must name them.
func TestLeftovers(t *testing.T) {
	race.SkipOneGoroutine(t)
	disk := vfs.NewMem()
	db := mustCreate(t, manual(disk))
	fill(t, db, "p", 100, 1000)
	want := dump(t, db, store.Query{})
	var states []*vfs.Mem
	disk.OnOp(func(vfs.Op) { states = append(states, disk.Clone()) })
	check(t, "Flush", db.Flush(t.Context()))
	disk.OnOp(nil)
	check(t, "Close", closeAtOnce(db))
	leftovers := 0
	strays := []string{"000001.wal", "000003.sst", "000099.sst", "1.wal", "MANIFEST.old", "notes.txt"}
	for i, after := range states {
		leftovers += len(files(t, after, "db", ".sst")) + len(files(t, after, "db", ".tmp"))
		expected := []string(nil)
		for _, name := range strays {
			if err := fsCreate(after, "db/"+name); err == nil {
				expected = append(expected, name)
			}
		}
		db := mustOpen(t, "db", manual(after))
		if got := dump(t, db, store.Query{}); !slices.Equal(got, want) {
			t.Fatalf("state %d: %d rows, want %d", i, len(got), len(want))
		}
		fill(t, db, "q", 100, 1000)
		check(t, "Compact", db.Compact(t.Context()))
		r, err := db.Verify(t.Context())
		if err != nil || len(r.Findings) > 0 || !slices.Equal(r.Unknown, expected) {
			t.Errorf("state %d: Verify: %+v, %v, want unknown files %q", i, r, err, expected)
		}
		stats, err := db.Stats()
		check(t, "Stats", err)
		if n := len(files(t, after, "db", ".sst")); n > stats.SSTables+len(strays) {
			t.Errorf("state %d: %d sstables, %d of the database", i, n, stats.SSTables)
		}
		check(t, "Close", closeAtOnce(db))
		if tmp := files(t, after, "db", ".tmp"); len(tmp) > 0 {
			t.Errorf("state %d: %v is left", i, tmp)
		}
		for _, name := range expected {
			if len(readFile(t, after, "db/"+name)) != 5 {
				t.Errorf("state %d: %s has changed", i, name)
			}
		}
	}
	if leftovers == 0 {
		t.Error("no state had a leftover")
	}
}

func fsCreate(fsys vfs.FS, name string) error {
	f, err := fsys.Create(name)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte("stray"), 0)
	return errors.Join(err, f.Close())
}
