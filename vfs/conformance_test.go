package vfs_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// backends are the file systems that must behave equally. open returns one with an empty
// directory.
var backends = []struct {
	name string
	open func(t *testing.T) (vfs.FS, string)
}{
	{"os", func(t *testing.T) (vfs.FS, string) { return vfs.OS(), filepath.ToSlash(t.TempDir()) }},
	{"mem", func(t *testing.T) (vfs.FS, string) { return vfs.NewMem(), "/" }},
	{"crashmem", func(t *testing.T) (vfs.FS, string) { return vfs.NewCrashMem(), "/" }},
	{"hookedmem", func(t *testing.T) (vfs.FS, string) {
		m := vfs.NewCrashMem()
		m.OnOp(func(vfs.Op) { m.Crash(vfs.CrashOptions{Mode: "sector"}) })
		return m, "/"
	}},
	{"errorfs", func(t *testing.T) (vfs.FS, string) { return errorfs.Wrap(vfs.NewMem(), nil), "/" }},
}

func TestConformance(t *testing.T) {
	for _, backend := range backends {
		t.Run(backend.name, func(t *testing.T) {
			for _, test := range conformance {
				t.Run(test.name, func(t *testing.T) {
					fsys, dir := backend.open(t)
					test.run(&env{T: t, fs: fsys, dir: dir})
				})
			}
		})
	}
}

// env is the file system of one test. Its helpers fail the test on an error.
type env struct {
	*testing.T
	fs  vfs.FS
	dir string
}

func (e *env) path(name string) string { return e.dir + "/" + name }

func (e *env) ok(err error) {
	e.Helper()
	if err != nil {
		e.Fatalf("got error %v", err)
	}
}

func (e *env) fails(err, want error) {
	e.Helper()
	if !errors.Is(err, want) {
		e.Fatalf("got error %v, want %v", err, want)
	}
}

func (e *env) create(name, text string) vfs.File {
	e.Helper()
	f, err := e.fs.Create(e.path(name))
	e.ok(err)
	if text != "" {
		n, err := f.WriteAt([]byte(text), 0)
		e.ok(err)
		if n != len(text) {
			e.Fatalf("wrote %d of %d bytes", n, len(text))
		}
	}
	return f
}

func (e *env) put(name, text string) {
	e.Helper()
	e.ok(e.create(name, text).Close())
}

func (e *env) want(name, text string) {
	e.Helper()
	got, err := vfs.ReadFile(e.fs, e.path(name), 1<<20)
	e.ok(err)
	if string(got) != text {
		e.Fatalf("%s holds %q, want %q", name, got, text)
	}
}

func (e *env) wantNames(names ...string) {
	e.Helper()
	got, err := e.fs.List(e.dir)
	e.ok(err)
	if !slices.Equal(got, names) {
		e.Fatalf("names are %q, want %q", got, names)
	}
}

var conformance = []struct {
	name string
	run  func(e *env)
}{
	{"create", func(e *env) {
		e.put("a", "one")
		_, err := e.fs.Create(e.path("a"))
		e.fails(err, fs.ErrExist)
		_, err = e.fs.Create(e.path("missing/a"))
		e.fails(err, fs.ErrNotExist)
		_, err = e.fs.Create(e.path("a/b"))
		e.fails(err, syscall.ENOTDIR)
		e.want("a", "one")
	}},
	{"open", func(e *env) {
		_, err := e.fs.Open(e.path("a"))
		e.fails(err, fs.ErrNotExist)
		_, err = e.fs.OpenReadWrite(e.path("a"))
		e.fails(err, fs.ErrNotExist)
		_, err = e.fs.Open(e.dir)
		e.fails(err, vfs.ErrNotRegular)
		_, err = e.fs.OpenReadWrite(e.dir)
		e.fails(err, vfs.ErrNotRegular)
		_, err = e.fs.Open("")
		e.fails(err, fs.ErrNotExist)
	}},
	{"read", func(e *env) {
		e.put("a", "0123456789")
		f, err := e.fs.Open(e.path("a"))
		e.ok(err)
		for _, c := range []struct {
			off, n int
			want   string
			err    error
		}{
			{0, 10, "0123456789", nil},
			{3, 4, "3456", nil},
			{8, 4, "89", io.EOF},
			{10, 1, "", io.EOF},
			{99, 1, "", io.EOF},
			{5, 0, "", nil},
		} {
			p := make([]byte, c.n)
			n, err := f.ReadAt(p, int64(c.off))
			if string(p[:n]) != c.want || !errors.Is(err, c.err) {
				e.Errorf("read %d bytes at %d: got %q, %v; want %q, %v", c.n, c.off, p[:n], err, c.want, c.err)
			}
		}
		if _, err := f.ReadAt(make([]byte, 1), -1); err == nil || err == io.EOF {
			e.Errorf("read at -1: got %v, want an error", err)
		}
		if _, err := f.WriteAt([]byte("x"), 0); err == nil {
			e.Error("write through a handle for reading: got nil")
		}
		if err := f.Preallocate(0, 1); err == nil {
			e.Error("preallocate through a handle for reading: got nil")
		}
		e.ok(f.Close())
		e.want("a", "0123456789")
	}},
	{"write", func(e *env) {
		f := e.create("a", "aaaa")
		_, err := f.WriteAt([]byte("bb"), 2)
		e.ok(err)
		_, err = f.WriteAt([]byte("cc"), 7)
		e.ok(err)
		_, err = f.WriteAt(nil, 100)
		e.ok(err)
		e.want("a", "aabb\x00\x00\x00cc")
		if _, err := f.WriteAt([]byte("x"), -1); err == nil {
			e.Error("write at -1: got nil")
		}
		big := bytes.Repeat([]byte("0123456789abcde"), 1000)
		_, err = f.WriteAt(big, 4090)
		e.ok(err)
		got := make([]byte, len(big))
		_, err = f.ReadAt(got, 4090)
		e.ok(err)
		if !bytes.Equal(got, big) {
			e.Error("a large write reads back differently")
		}
		size, err := f.Size()
		e.ok(err)
		if want := int64(4090 + len(big)); size != want {
			e.Errorf("size is %d, want %d", size, want)
		}
		e.ok(f.Sync())
		e.ok(f.Close())
	}},
	{"preallocate", func(e *env) {
		f := e.create("a", "0123")
		e.ok(f.Preallocate(0, 2))
		e.want("a", "0123")
		e.ok(f.Preallocate(2, 6))
		e.want("a", "0123\x00\x00\x00\x00")
		e.ok(f.Preallocate(0, 0))
		if err := f.Preallocate(-1, 1); err == nil {
			e.Error("preallocate at -1: got nil")
		}
		e.ok(f.Close())
	}},
	{"next data", func(e *env) {
		const size, at = 4 << 20, 1<<20 + 5
		f := e.create("a", "x")
		e.ok(f.Preallocate(0, size))
		_, err := f.WriteAt([]byte("y"), at)
		e.ok(err)
		var first, second bool
		for off := int64(0); off < size; {
			from, to, err := vfs.NextData(f, off)
			e.ok(err)
			if from < off || to > size || from >= to && to < size {
				e.Fatalf("the data at or after %d is from %d to %d", off, from, to)
			}
			first, second = first || from == 0, second || from <= at && at < to
			off = to
		}
		if !first || !second {
			e.Errorf("bytes 0 and %d are data: %t and %t", at, first, second)
		}
		e.ok(f.Close())
	}},
	{"close", func(e *env) {
		f := e.create("a", "x")
		e.ok(f.Close())
		e.ok(f.Close())
		_, err := f.ReadAt(make([]byte, 1), 0)
		e.fails(err, fs.ErrClosed)
		_, err = f.WriteAt([]byte("y"), 0)
		e.fails(err, fs.ErrClosed)
		e.fails(f.Sync(), fs.ErrClosed)
		e.fails(f.Preallocate(0, 1), fs.ErrClosed)
		_, err = f.Size()
		e.fails(err, fs.ErrClosed)
	}},
	{"rename", func(e *env) {
		e.put("a", "one")
		e.put("b", "two")
		e.ok(e.fs.Rename(e.path("a"), e.path("b")))
		e.wantNames("b")
		e.want("b", "one")
		e.ok(e.fs.Rename(e.path("b"), e.path("b")))
		e.want("b", "one")
		e.fails(e.fs.Rename(e.path("a"), e.path("c")), fs.ErrNotExist)
		e.fails(e.fs.Rename(e.path("b"), e.path("missing/b")), fs.ErrNotExist)
		e.ok(e.fs.MkdirAll(e.path("d")))
		e.fails(e.fs.Rename(e.path("b"), e.path("d")), fs.ErrExist)
		e.fails(e.fs.Rename(e.path("d"), e.path("b")), syscall.ENOTDIR)
		e.ok(e.fs.Rename(e.path("b"), e.path("d/b")))
		e.want("d/b", "one")
		e.ok(e.fs.Rename(e.path("d"), e.path("e")))
		e.want("e/b", "one")
		e.fails(e.fs.Rename(e.path("e"), e.path("e/f")), syscall.EINVAL)
		e.wantNames("e")
	}},
	{"link", func(e *env) {
		e.put("a", "one")
		e.ok(e.fs.Link(e.path("a"), e.path("b")))
		e.fails(e.fs.Link(e.path("a"), e.path("b")), fs.ErrExist)
		e.fails(e.fs.Link(e.path("x"), e.path("c")), fs.ErrNotExist)
		f, err := e.fs.OpenReadWrite(e.path("b"))
		e.ok(err)
		_, err = f.WriteAt([]byte("two"), 0)
		e.ok(err)
		e.ok(f.Close())
		e.want("a", "two")
		e.ok(e.fs.Rename(e.path("a"), e.path("b")))
		e.wantNames("a", "b")
		e.ok(e.fs.Remove(e.path("a")))
		e.want("b", "two")
		e.ok(e.fs.MkdirAll(e.path("d")))
		e.fails(e.fs.Link(e.path("d"), e.path("e")), fs.ErrPermission)
	}},
	{"remove", func(e *env) {
		f := e.create("a", "one")
		e.ok(e.fs.Remove(e.path("a")))
		e.wantNames()
		p := make([]byte, 3)
		_, err := f.ReadAt(p, 0)
		e.ok(err)
		e.ok(f.Close())
		e.fails(e.fs.Remove(e.path("a")), fs.ErrNotExist)
		e.ok(e.fs.MkdirAll(e.path("d/e")))
		e.fails(e.fs.Remove(e.path("d")), syscall.ENOTEMPTY)
		e.ok(e.fs.Remove(e.path("d/e")))
		e.ok(e.fs.Remove(e.path("d")))
		e.wantNames()
	}},
	{"directories", func(e *env) {
		e.ok(e.fs.MkdirAll(e.path("d/e/f")))
		e.ok(e.fs.MkdirAll(e.path("d/e")))
		e.put("c", "")
		e.put("d/a", "xyz")
		e.wantNames("c", "d")
		e.fails(e.fs.MkdirAll(e.path("c/d")), syscall.ENOTDIR)
		e.fails(e.fs.MkdirAll(e.path("c")), syscall.ENOTDIR)
		_, err := e.fs.List(e.path("c"))
		e.fails(err, syscall.ENOTDIR)
		_, err = e.fs.List(e.path("x"))
		e.fails(err, fs.ErrNotExist)
		e.ok(e.fs.SyncDir(e.path("d")))
		e.fails(e.fs.SyncDir(e.path("x")), fs.ErrNotExist)
		e.fails(e.fs.SyncDir(e.path("c")), syscall.ENOTDIR)
	}},
	{"stat", func(e *env) {
		e.put("a", "xyz")
		for name, want := range map[string]vfs.Info{"a": {Size: 3, Regular: true}, ".": {Dir: true}} {
			got, err := e.fs.Stat(e.path(name))
			e.ok(err)
			got.Size *= int64(btoi(got.Regular)) // a directory's size is the system's
			if got != want {
				e.Errorf("stat %s: got %+v, want %+v", name, got, want)
			}
		}
		_, err := e.fs.Stat(e.path("x"))
		e.fails(err, fs.ErrNotExist)
	}},
	{"lock", func(e *env) {
		lock, err := e.fs.Lock(e.path("LOCK"))
		e.ok(err)
		e.ok(e.fs.Link(e.path("LOCK"), e.path("alias")))
		for _, name := range []string{"LOCK", "./LOCK", "alias"} {
			_, err = e.fs.Lock(e.path(name))
			var locked *vfs.LockedError
			if !errors.As(err, &locked) || locked.Holder == "" || locked.Name != e.path(name) {
				e.Fatalf("second lock of %s: got %v, want a LockedError that names it and its holder", name, err)
			}
		}
		e.ok(lock.Close())
		e.ok(lock.Close())
		again, err := e.fs.Lock(e.path("LOCK"))
		e.ok(err)
		e.ok(lock.Close()) // must not release the new lock
		_, err = e.fs.Lock(e.path("LOCK"))
		var locked *vfs.LockedError
		if !errors.As(err, &locked) {
			e.Fatalf("after closing an old lock twice: got %v, want a LockedError", err)
		}
		e.ok(again.Close())
		e.wantNames("LOCK", "alias")
		_, err = e.fs.Lock(e.path("missing/LOCK"))
		e.fails(err, fs.ErrNotExist)
		_, err = e.fs.Lock(e.dir)
		e.fails(err, vfs.ErrNotRegular)
	}},
	{"locked", func(e *env) {
		want := func(name string, want bool) {
			e.Helper()
			holder, held, err := e.fs.Locked(e.path(name))
			e.ok(err)
			if held != want || held != (holder != "") {
				e.Fatalf("Locked(%s) is %q, %v; want %v, and a holder only then", name, holder, held, want)
			}
		}
		want("LOCK", false)
		want("missing/LOCK", false)
		e.wantNames() // Locked creates no file
		lock, err := e.fs.Lock(e.path("LOCK"))
		e.ok(err)
		before, err := vfs.Dump(e.fs, e.dir)
		e.ok(err)
		want("LOCK", true)
		want("LOCK", true)
		after, err := vfs.Dump(e.fs, e.dir)
		e.ok(err)
		if before != after {
			e.Error("Locked changed the directory")
		}
		_, err = e.fs.Lock(e.path("LOCK"))
		var locked *vfs.LockedError
		if !errors.As(err, &locked) {
			e.Fatalf("Locked released the lock: got %v, want a LockedError", err)
		}
		e.ok(lock.Close())
		want("LOCK", false)
		again, err := e.fs.Lock(e.path("LOCK"))
		e.ok(err)
		e.ok(again.Close())
		_, _, err = e.fs.Locked(e.dir)
		e.fails(err, vfs.ErrNotRegular)
	}},
	{"read file", func(e *env) {
		e.put("a", "0123")
		e.want("a", "0123")
		_, err := vfs.ReadFile(e.fs, e.path("a"), 3)
		e.fails(err, syscall.EFBIG)
	}},
	{"dump", func(e *env) {
		e.put("b", "x")
		e.ok(e.fs.MkdirAll(e.path("a/c")))
		e.put("a/d", "")
		got, err := vfs.Dump(e.fs, e.dir)
		e.ok(err)
		want := `"a" dir
"a/c" dir
"a/d" 0 e3b0c44298fc1c14
"b" 1 2d711642b726b044
`
		if got != want {
			e.Errorf("got\n%swant\n%s", got, want)
		}
		before, err := vfs.Dump(e.fs, e.dir)
		e.ok(err)
		f, err := e.fs.OpenReadWrite(e.path("b"))
		e.ok(err)
		_, err = f.WriteAt([]byte("y"), 0)
		e.ok(err)
		e.ok(f.Close())
		after, err := vfs.Dump(e.fs, e.dir)
		e.ok(err)
		if before == after {
			e.Error("the dump of a changed directory is the same")
		}
	}},
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
