package errorfs_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// workload calls each method at least once and returns the first error. It closes all
// handles.
func workload(fsys vfs.FS) (err error) {
	lock, err := fsys.Lock("LOCK")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if _, _, err := fsys.Locked("LOCK"); err != nil {
		return err
	}
	if err := fsys.MkdirAll("d"); err != nil {
		return err
	}
	if err := writeSynced(fsys, "d/a"); err != nil {
		return err
	}
	if err := fsys.Link("d/a", "d/b"); err != nil {
		return err
	}
	if err := fsys.Rename("d/b", "d/c"); err != nil {
		return err
	}
	if err := fsys.SyncDir("d"); err != nil {
		return err
	}
	if _, err := vfs.ReadFile(fsys, "d/c", 1<<10); err != nil {
		return err
	}
	f, err := fsys.OpenReadWrite("d/a")
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if _, err := fsys.List("d"); err != nil {
		return err
	}
	if _, err := fsys.Stat("d/a"); err != nil {
		return err
	}
	return fsys.Remove("d/a")
}

func writeSynced(fsys vfs.FS, name string) (err error) {
	f, err := fsys.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Preallocate(0, 100); err != nil {
		return err
	}
	if _, err := f.WriteAt([]byte("0123456789"), 0); err != nil {
		return err
	}
	if _, err := f.Size(); err != nil {
		return err
	}
	return f.Sync()
}

// TestFailEachOperation fails each operation of the workload, once or from then on. The
// workload has each kind of operation, and no handle may stay open.
func TestFailEachOperation(t *testing.T) {
	kinds := map[string]bool{}
	clean := errorfs.Wrap(vfs.NewMem(), func(op vfs.Op) *errorfs.Fault {
		kinds[op.Kind] = true
		return nil
	})
	if err := workload(clean); err != nil {
		t.Fatal(err)
	}
	total := clean.Ops()
	for _, sticky := range []bool{false, true} {
		for n := uint64(1); n <= total; n++ {
			m := vfs.NewMem()
			rule := errorfs.FailNth(n, nil, errorfs.Fault{Err: syscall.EIO}, sticky)
			failed := 0
			err := workload(errorfs.Wrap(m, func(op vfs.Op) *errorfs.Fault {
				fault := rule(op)
				if fault != nil {
					failed++
				}
				return fault
			}))
			var pathErr *fs.PathError
			if !errors.Is(err, syscall.EIO) || !errors.As(err, &pathErr) {
				t.Fatalf("operation %d of %d, sticky %v: got %v, want EIO in a PathError", n, total, sticky, err)
			}
			if failed == 0 || failed > 1 && !sticky {
				t.Fatalf("operation %d, sticky %v: %d operations failed", n, sticky, failed)
			}
			lock, err := m.Lock("LOCK")
			if err != nil {
				t.Fatalf("operation %d: the lock is still held: %v", n, err)
			}
			_ = lock.Close()
		}
		err := workload(errorfs.Wrap(vfs.NewMem(), errorfs.FailNth(total+1, nil, errorfs.Fault{Err: syscall.EIO}, sticky)))
		if err != nil {
			t.Errorf("failure after the last operation: got %v", err)
		}
	}
	for _, k := range slices.Concat(changing, []string{"open", "open-rw", "list", "stat", "locked", "read", "size", "close"}) {
		if !kinds[k] {
			t.Errorf("the workload has no %s", k)
		}
		delete(kinds, k)
	}
	if len(kinds) > 0 {
		t.Errorf("unknown kinds of operations: %v", kinds)
	}
}

// changing holds the kinds of operations that can change a file system.
var changing = []string{"create", "rename", "link", "remove", "mkdir", "sync-dir", "lock", "write", "sync", "preallocate"}

// TestOnOpSeesChanges compares the operations that reach the hook of a Mem with those
// that can change it.
func TestOnOpSeesChanges(t *testing.T) {
	m := vfs.NewMem()
	seen := map[string]bool{}
	m.OnOp(func(op vfs.Op) { seen[op.Kind] = true })
	if err := workload(m); err != nil {
		t.Fatal(err)
	}
	for _, k := range changing {
		if !seen[k] {
			t.Errorf("the hook did not see %s", k)
		}
		delete(seen, k)
	}
	if len(seen) > 0 {
		t.Errorf("the hook saw operations that change nothing: %v", seen)
	}
}

func TestFaultEffects(t *testing.T) {
	is := func(kind string) func(vfs.Op) bool { return func(op vfs.Op) bool { return op.Kind == kind } }
	for _, c := range []struct {
		name  string
		kind  string
		fault errorfs.Fault
		do    func(x vfs.FS, f vfs.File) (int, error)
		n     int
		left  string
	}{
		{"write none", "write", errorfs.Fault{Err: syscall.ENOSPC}, writeXYZ, 0, "abcdef"},
		{"write short", "write", errorfs.Fault{Err: syscall.ENOSPC, Short: 2}, writeXYZ, 2, "xycdef"},
		{"write past the end of the request", "write", errorfs.Fault{Err: syscall.EIO, Short: 9}, writeXYZ, 3, "xyzdef"},
		{"write applied", "write", errorfs.Fault{Err: syscall.EIO, Applied: true}, writeXYZ, 3, "xyzdef"},
		{"preallocate", "preallocate", errorfs.Fault{Err: syscall.EIO}, preallocate8, 0, "abcdef"},
		{"preallocate applied", "preallocate", errorfs.Fault{Err: syscall.EIO, Applied: true}, preallocate8, 0, "abcdef\x00\x00"},
		{"read short", "read", errorfs.Fault{Err: syscall.EIO, Short: 2}, read4, 2, "abcdef"},
		{"rename", "rename", errorfs.Fault{Err: syscall.EIO}, rename, 0, "abcdef"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := vfs.NewMem()
			e := &env{t, m}
			e.put("a", "abcdef")
			x := errorfs.Wrap(m, errorfs.FailNth(1, is(c.kind), c.fault, false))
			f, err := x.OpenReadWrite("/a")
			e.ok(err)
			n, err := c.do(x, f)
			e.fails(err, c.fault.Err)
			if n != c.n {
				t.Errorf("got %d bytes, want %d", n, c.n)
			}
			e.want("a", c.left)
			e.ok(f.Close())
		})
	}
	t.Run("rename applied", func(t *testing.T) {
		m := vfs.NewMem()
		e := &env{t, m}
		e.put("a", "")
		x := errorfs.Wrap(m, errorfs.FailNth(1, is("rename"), errorfs.Fault{Err: syscall.EIO, Applied: true}, false))
		e.fails(x.Rename("/a", "/b"), syscall.EIO)
		e.wantNames("b")
	})
}

func writeXYZ(_ vfs.FS, f vfs.File) (int, error)     { return f.WriteAt([]byte("xyz"), 0) }
func preallocate8(_ vfs.FS, f vfs.File) (int, error) { return 0, f.Preallocate(0, 8) }
func read4(_ vfs.FS, f vfs.File) (int, error)        { return f.ReadAt(make([]byte, 4), 0) }
func rename(x vfs.FS, _ vfs.File) (int, error)       { return 0, x.Rename("/a", "/b") }

// TestFailedClose checks that a failed close releases the handle.
func TestFailedClose(t *testing.T) {
	m := vfs.NewMem()
	m.SetCapacity(100)
	x := errorfs.Wrap(m, errorfs.FailNth(1, func(op vfs.Op) bool { return op.Kind == "close" }, errorfs.Fault{Err: syscall.EIO}, true))
	e := &env{t, x}
	f := e.create("a", "xyz")
	e.ok(x.Remove("/a"))
	e.fails(f.Close(), syscall.EIO)
	e.ok(f.Close())
	if got := m.Used(); got != 0 {
		t.Errorf("after a failed close %d bytes are in use", got)
	}
}

// TestFailedSync checks the three kinds of SyncFailure.
func TestFailedSync(t *testing.T) {
	for _, c := range []struct {
		name              string
		how               errorfs.SyncFailure
		sticky            bool
		second            error
		read, min, max    string
		afterMore, crash2 string // after another write and sync
	}{
		{"keeps", errorfs.SyncKeeps, false, nil, " B*512", " B*512", " B*512", " B*512 C*512", " B*512 C*512"},
		{"forgets", errorfs.SyncForgets, false, nil, " B*512", " A*512", " A*512", " B*512 C*512", " A*512 C*512"},
		{"reverts", errorfs.SyncReverts, false, nil, " A*512", " A*512", " A*512", " A*512 C*512", " A*512 C*512"},
		{"persistent", errorfs.SyncKeeps, true, syscall.EIO, " B*512", " A*512", " B*512", " B*512 C*512", " A*512"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := vfs.NewCrashMem()
			x := errorfs.Wrap(m, nil)
			e := &env{t, x}
			read := func(fsys vfs.FS, want string) {
				t.Helper()
				got, err := vfs.ReadFile(fsys, "a", 1<<20)
				e.ok(err)
				if runs(got) != want {
					t.Errorf("got%s, want%s", runs(got), want)
				}
			}
			f := e.create("a", strings.Repeat("A", 512))
			e.ok(f.Sync())
			e.ok(m.SyncDir("/"))
			_, err := f.WriteAt(bytes.Repeat([]byte("B"), 512), 0)
			e.ok(err)
			x.SetRule(errorfs.FailNth(1, func(op vfs.Op) bool { return op.Kind == "sync" },
				errorfs.Fault{Err: syscall.EIO, Sync: c.how}, c.sticky))
			e.fails(f.Sync(), syscall.EIO)
			e.fails(f.Sync(), c.second)
			read(m, c.read)
			read(m.Crash(vfs.CrashOptions{Mode: "min"}), c.min)
			read(m.Crash(vfs.CrashOptions{Mode: "max"}), c.max)
			_, err = f.WriteAt(bytes.Repeat([]byte("C"), 512), 512)
			e.ok(err)
			e.fails(f.Sync(), c.second)
			read(m, c.afterMore)
			read(m.Crash(vfs.CrashOptions{Mode: "min"}), c.crash2)
		})
	}
}

// TestCorrupt changes a byte of a file in the reads that cover it: in the first
// of them, as an error on the way from the disk, or in all.
func TestCorrupt(t *testing.T) {
	for _, sticky := range []bool{false, true} {
		m := vfs.NewMem()
		e := &env{t, m}
		e.put("a", "0123456789")
		covers := func(op vfs.Op) bool { return op.Kind == "read" && op.Off <= 5 && 5 < op.Off+op.Len }
		flip := func(p []byte, off int64) {
			if 5-off < int64(len(p)) {
				p[5-off] ^= 0x40
			}
		}
		x := errorfs.Wrap(m, errorfs.FailNth(1, covers, errorfs.Fault{Corrupt: flip}, sticky))
		f, err := x.Open("/a")
		e.ok(err)
		for i, want := range []struct {
			off  int64
			text string
			hit  bool
		}{{0, "01234", false}, {6, "6789", false}, {3, "34u67", true}, {3, "34u67", true}} {
			text := want.text
			if want.hit && i == 3 && !sticky {
				text = "34567"
			}
			p := make([]byte, len(text))
			_, err := f.ReadAt(p, want.off)
			e.ok(err)
			if string(p) != text {
				t.Errorf("sticky %v, read %d: got %q, want %q", sticky, i, p, text)
			}
		}
		e.want("a", "0123456789")
		p := make([]byte, 20) // covers the byte, and ends early
		if n, err := f.ReadAt(p, 8); n != 2 || err != io.EOF {
			t.Errorf("got %d, %v; want 2, EOF", n, err)
		}
		e.ok(f.Close())
	}
}

// TestHangingDisk blocks one operation while another passes.
func TestHangingDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		x := errorfs.Wrap(vfs.NewMem(), func(op vfs.Op) *errorfs.Fault {
			if op.Kind == "sync" {
				<-release
			}
			return nil
		})
		e := &env{t, x}
		f := e.create("a", "x")
		synced := make(chan error, 1)
		go func() { synced <- f.Sync() }()
		synctest.Wait()
		e.want("a", "x")
		select {
		case err := <-synced:
			t.Fatalf("sync returned %v while the rule blocked", err)
		default:
		}
		close(release)
		e.ok(<-synced)
		e.ok(f.Close())
	})
}
