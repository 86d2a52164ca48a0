package engine_test

import (
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// counting is a file system that counts open handles.
type counting struct {
	vfs.FS
	mu   sync.Mutex
	open map[string]int
}

func newCounting(under vfs.FS) *counting { return &counting{FS: under, open: map[string]int{}} }

// left returns how many handles of each file are open.
func (c *counting) left() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.open)
}

func (c *counting) count(name string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[name] += n; c.open[name] == 0 {
		delete(c.open, name)
	}
}

func (c *counting) track(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	c.count(name, 1)
	return &countedFile{f, sync.OnceFunc(func() { c.count(name, -1) })}, nil
}

func (c *counting) Create(name string) (vfs.File, error) {
	f, err := c.FS.Create(name)
	return c.track(name, f, err)
}

func (c *counting) Open(name string) (vfs.File, error) {
	f, err := c.FS.Open(name)
	return c.track(name, f, err)
}

func (c *counting) OpenReadWrite(name string) (vfs.File, error) {
	f, err := c.FS.OpenReadWrite(name)
	return c.track(name, f, err)
}

func (c *counting) Lock(name string) (io.Closer, error) {
	l, err := c.FS.Lock(name)
	if err != nil {
		return nil, err
	}
	c.count(name, 1)
	return &countedLock{l, sync.OnceFunc(func() { c.count(name, -1) })}, nil
}

type countedFile struct {
	vfs.File
	closed func()
}

func (f *countedFile) Close() error {
	f.closed()
	return f.File.Close()
}

type countedLock struct {
	io.Closer
	closed func()
}

func (l *countedLock) Close() error {
	l.closed()
	return l.Closer.Close()
}

// TestFailedOpenReleases fails every operation of Open in turn. Every handle must be
// closed, nothing acknowledged may be lost, and the error must not be store.ErrCorrupt.
func TestFailedOpenReleases(t *testing.T) {
	race.SkipOneGoroutine(t)
	built := vfs.NewMem()
	db := mustCreate(t, manual(built))
	fill(t, db, "p", 40, 1000)
	check(t, "Flush", db.Flush(t.Context()))
	fill(t, db, "q", 10, 1000)
	want := len(dump(t, db, store.Query{}))
	killed := built.Clone()
	injected := errors.New("injected")
	for _, readOnly := range []bool{false, true} {
		for n := uint64(1); ; n++ {
			disk := killed.Clone()
			faulty := errorfs.Wrap(disk, errorfs.FailNth(n, nil, errorfs.Fault{Err: injected}, false))
			c := newCounting(faulty)
			o := manual(c)
			o.ReadOnly = readOnly
			db, err := engine.Open("db", o)
			ops := faulty.Ops()
			faulty.SetRule(nil)
			if err == nil {
				if got := len(dump(t, db, store.Query{})); got != want {
					t.Errorf("operation %d, read-only %v: %d rows, want %d", n, readOnly, got, want)
				}
				_ = db.Close()
			} else if !errors.Is(err, injected) || errors.Is(err, store.ErrCorrupt) {
				t.Errorf("operation %d, read-only %v: %v, want %v", n, readOnly, err, injected)
			}
			if left := c.left(); len(left) > 0 {
				t.Errorf("operation %d, read-only %v: %v are open after %v", n, readOnly, left, err)
			}
			if err == nil && ops < n {
				break
			}
			db = mustOpen(t, "db", manual(disk))
			if got := len(dump(t, db, store.Query{})); got != want {
				t.Errorf("operation %d, read-only %v: %d rows after the next open, want %d", n, readOnly, got, want)
			}
			check(t, "Close", db.Close())
		}
	}
}

// TestDescriptors opens, uses and closes a database, and counts the file descriptors
// of the process that are files of it.
func TestDescriptors(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc/self/fd")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	check(t, "EvalSymlinks", err)
	fds := func() (names []string) {
		list, err := os.ReadDir("/proc/self/fd")
		check(t, "ReadDir", err)
		for _, fd := range list {
			if name, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(name, dir) {
				names = append(names, name)
			}
		}
		return names
	}
	for round := range 5 {
		o := small(nil)
		c := newCounting(vfs.OS())
		o.FS = c
		db := mustOpen(t, dir+"/db", o)
		if err := db.CreateTable(t.Context(), table); err != nil && !errors.Is(err, store.ErrTableExists) {
			t.Fatal(err)
		}
		fill(t, db, "p", 100, 2000)
		cur := db.Query(t.Context(), table, store.Query{})
		cur.Next()
		snap, err := db.Snapshot()
		check(t, "Snapshot", err)
		check(t, "Compact", db.Compact(t.Context()))
		if len(fds()) == 0 {
			t.Fatal("an open database has no descriptor: the test proves nothing")
		}
		check(t, "Close", db.Close())
		check(t, "Close of a cursor", cur.Close())
		check(t, "Close of a snapshot", snap.Close())
		if left := c.left(); len(left) > 0 {
			t.Errorf("round %d: %v are open after Close", round, left)
		}
		if names := fds(); len(names) > 0 {
			t.Errorf("round %d: the process has descriptors of %v after Close", round, names)
		}
	}
}

// TestNoSyncHandles closes a database whose log is empty and has a file.
func TestNoSyncHandles(t *testing.T) {
	handles := newCounting(vfs.NewMem())
	o := manual(handles)
	o.NoSync = true
	db := mustCreate(t, o)
	check(t, "Flush", db.Flush(t.Context()))
	check(t, "Checkpoint", db.Checkpoint(t.Context(), "copy"))
	check(t, "Close", db.Close())
	if left := handles.left(); len(left) > 0 {
		t.Errorf("open after Close: %v", left)
	}
}
