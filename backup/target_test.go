package backup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/tablerock-db/tablerock/backup"
	"github.com/tablerock-db/tablerock/backup/backuptest"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// noLinks is a file system without hard links.
func noLinks(fsys vfs.FS) vfs.FS {
	return errorfs.Wrap(fsys, func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "link" {
			return &errorfs.Fault{Err: errors.ErrUnsupported}
		}
		return nil
	})
}

// read returns the bytes of an object.
func read(t *testing.T, target backup.Target, name string) string {
	t.Helper()
	r, err := target.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestPutIfAbsentCannotLook fails the look at a name on a file system without hard links: the
// error does not say that the object exists.
func TestPutIfAbsentCannotLook(t *testing.T) {
	looks := 0
	d := backup.NewDir(errorfs.Wrap(noLinks(vfs.NewMem()), func(op vfs.Op) *errorfs.Fault {
		if op.Kind != "stat" || op.Name != "d/object" {
			return nil
		}
		if looks++; looks == 1 {
			return nil
		}
		return &errorfs.Fault{Err: syscall.EIO}
	}), "d")
	err := d.PutIfAbsent(t.Context(), "object", strings.NewReader("text"))
	if !errors.Is(err, syscall.EIO) || errors.Is(err, fs.ErrExist) {
		t.Errorf("PutIfAbsent returns %v, want EIO and not fs.ErrExist", err)
	}
}

func put(t *testing.T, target backup.Target, name, text string) {
	t.Helper()
	if err := target.Put(t.Context(), name, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
}

// TestTargets checks the contract of Target on each implementation.
func TestTargets(t *testing.T) {
	for name, target := range map[string]func() backup.Target{
		"memory":           func() backup.Target { return backuptest.NewTarget(1, 0) },
		"directory":        func() backup.Target { return backup.NewDir(vfs.OS(), t.TempDir()+"/a/b") },
		"no hard links":    func() backup.Target { return backup.NewDir(noLinks(vfs.NewMem()), "b") },
		"memory directory": func() backup.Target { return backup.NewDir(vfs.NewMem(), "/") },
	} {
		t.Run(name, func(t *testing.T) {
			testObjects(t, target())
			testNames(t, target())
			testFailedPut(t, target())
			testConcurrentPutIfAbsent(t, target())
		})
	}
}

func testObjects(t *testing.T, target backup.Target) {
	ctx := t.Context()
	for _, name := range []string{"b", "a/2", "a/1", "a-b", "a/1.x/y"} {
		put(t, target, name, "first")
	}
	put(t, target, "a/1", "replaced")
	if err := target.PutIfAbsent(ctx, "a/2", strings.NewReader("other")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("PutIfAbsent of an existing object: %v, want fs.ErrExist", err)
	}
	if err := target.PutIfAbsent(ctx, "c", strings.NewReader("absent")); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{"a/1": "replaced", "a/2": "first", "c": "absent"} {
		if got := read(t, target, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for range 2 {
		if err := target.Delete(ctx, "b"); err != nil {
			t.Errorf("Delete: %v", err)
		}
	}
	if _, err := target.Get(ctx, "b"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Get of a deleted object: %v, want fs.ErrNotExist", err)
	}
	for prefix, want := range map[string]string{
		"": "a-b:5 a/1:8 a/1.x/y:5 a/2:5 c:6", "a/": "a/1:8 a/1.x/y:5 a/2:5", "a/1": "a/1:8 a/1.x/y:5", "a": "a-b:5 a/1:8 a/1.x/y:5 a/2:5", "x/": "",
	} {
		objects, err := target.List(ctx, prefix)
		if err != nil {
			t.Error(err)
		}
		var got []string
		for _, o := range objects {
			got = append(got, fmt.Sprintf("%s:%d", o.Name, o.Size))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("List(%q) = %q, want %q", prefix, got, want)
		}
	}
}

func testNames(t *testing.T, target backup.Target) {
	ctx := t.Context()
	long := strings.Repeat("a", 201)
	for _, name := range []string{"", "/a", "a/", "a//b", "..", "a/../b", ".tmp/1", "a/.b", "a b", "a\\b", "ä", "a\x00", long, strings.Repeat("a/", 600)} {
		_, getErr := target.Get(ctx, name)
		for what, err := range map[string]error{
			"Put": target.Put(ctx, name, strings.NewReader("")), "PutIfAbsent": target.PutIfAbsent(ctx, name, strings.NewReader("")),
			"Get": getErr, "Delete": target.Delete(ctx, name),
		} {
			if err == nil || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s(%q): %v, want an error of the name", what, name, err)
			}
		}
	}
}

// testFailedPut checks that a put whose reader fails or whose ctx ends changes nothing.
func testFailedPut(t *testing.T, target backup.Target) {
	put(t, target, "a", "first")
	broken := func() io.Reader {
		return io.MultiReader(bytes.NewReader(make([]byte, 3<<20)), iotest.ErrReader(io.ErrUnexpectedEOF))
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, name := range []string{"a", "b"} {
		if err := target.Put(t.Context(), name, broken()); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("Put of a broken reader: %v", err)
		}
		if err := target.Put(ended, name, strings.NewReader("x")); !errors.Is(err, context.Canceled) {
			t.Errorf("Put with an ended ctx: %v", err)
		}
	}
	if err := target.PutIfAbsent(t.Context(), "b", broken()); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("PutIfAbsent of a broken reader: %v", err)
	}
	objects, err := target.List(t.Context(), "")
	if want := []backup.Object{{Name: "a", Size: 5}}; err != nil || !slices.Equal(objects, want) {
		t.Errorf("objects are %v, %v; want %v", objects, err, want)
	}
}

func testConcurrentPutIfAbsent(t *testing.T, target backup.Target) {
	var stored atomic.Int32
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			switch err := target.PutIfAbsent(t.Context(), "a/b", strings.NewReader("x")); {
			case err == nil:
				stored.Add(1)
			case !errors.Is(err, fs.ErrExist):
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := stored.Load(); n != 1 {
		t.Errorf("%d of 8 concurrent calls stored the object, want 1", n)
	}
}

// TestDirAfterCrash crashes a directory at each operation that changes it, in all the ways
// that the file system allows, and checks that each object is whole and that no finished
// change is lost.
func TestDirAfterCrash(t *testing.T) {
	disk := vfs.NewCrashMem()
	target := backup.NewDir(disk, "x/y")
	done := map[string]string{"a/1": "", "a/2": "", "b": ""} // what each finished call left
	next := map[string]string{}                              // what the call under way leaves
	var states int
	check := func(vfs.Op) {
		for _, mode := range []string{"min", "max", "prefix", "subset", "sector", "dirs"} {
			states++
			after := backup.NewDir(disk.Crash(vfs.CrashOptions{Mode: mode, Seed: uint64(states)}), "x/y")
			lock, err := after.Lock()
			if err != nil {
				t.Fatal(err)
			}
			for name, text := range done {
				got := ""
				if r, err := after.Get(t.Context(), name); err == nil {
					b, err := io.ReadAll(r)
					if err != nil {
						t.Fatal(err)
					}
					got = string(b)
				}
				if want, ok := next[name]; got != text && (!ok || got != want) {
					t.Errorf("mode %s: %s is %q after a crash, the last finished call left %q", mode, name, got, text)
				}
			}
			if names, err := after.List(t.Context(), ""); err != nil || slices.ContainsFunc(names, func(o backup.Object) bool { return path.Base(o.Name)[0] == '.' }) {
				t.Errorf("List after a crash: %v, %v", names, err)
			}
			lock.Close()
		}
	}
	disk.OnOp(check)
	do := func(name, text string, call func(name string) error) {
		next = map[string]string{name: text}
		if err := call(name); err != nil {
			t.Fatal(err)
		}
		done[name], next = text, nil
		check(vfs.Op{})
	}
	putText := func(text string) func(string) error {
		return func(name string) error { return target.Put(t.Context(), name, strings.NewReader(text)) }
	}
	do("a/1", "one", putText("one"))
	do("a/1", "two", putText("two"))
	do("a/2", "absent", func(name string) error {
		return target.PutIfAbsent(t.Context(), name, strings.NewReader("absent"))
	})
	do("b", "gone", putText("gone"))
	do("b", "", func(name string) error { return target.Delete(t.Context(), name) })
	if states < 100 {
		t.Errorf("%d states, want more", states)
	}
}

// TestDirLock checks that one holder at a time locks a directory, and that Lock removes
// temporary files.
func TestDirLock(t *testing.T) {
	disk := vfs.NewMem()
	target := backup.NewDir(disk, "b")
	lock, err := target.Lock()
	if err != nil {
		t.Fatal(err)
	}
	var locked *vfs.LockedError
	if _, err := backup.NewDir(disk, "b").Lock(); !errors.As(err, &locked) {
		t.Errorf("second Lock: %v, want a LockedError", err)
	}
	put(t, target, "a", "x")
	if f, err := disk.Create("b/.tmp/7"); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if lock, err = target.Lock(); err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if names, err := disk.List("b/.tmp"); err != nil || len(names) > 0 {
		t.Errorf("temporary files after Lock: %q, %v", names, err)
	}
}

// TestDirOfVolume has a volume as the directory, with the lost+found of its file system.
func TestDirOfVolume(t *testing.T) {
	mem := vfs.NewMem()
	if err := mem.MkdirAll("b/lost+found"); err != nil {
		t.Fatal(err)
	}
	disk := errorfs.Wrap(mem, func(op vfs.Op) *errorfs.Fault {
		if op.Name == "b/lost+found" && op.Kind != "stat" {
			return &errorfs.Fault{Err: syscall.EACCES}
		}
		return nil
	})
	target := backup.NewDir(disk, "b")
	lock, err := target.Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if _, err := backup.Init(t.Context(), target); err != nil {
		t.Errorf("Init: %v", err)
	}
}

// TestDirOfLongObject stores an object of 70 MiB: no sync has more than 32 MiB to write, and the end is
// synced too.
func TestDirOfLongObject(t *testing.T) {
	syncs, longest, unsynced := 0, int64(0), int64(0)
	d := backup.NewDir(errorfs.Wrap(vfs.NewMem(), func(op vfs.Op) *errorfs.Fault {
		switch {
		case op.Done != 0:
		case op.Kind == "write":
			unsynced += op.Len
			longest = max(longest, unsynced)
		case op.Kind == "sync":
			syncs, unsynced = syncs+1, 0
		}
		return nil
	}), "backups")
	if err := d.Put(t.Context(), "object", bytes.NewReader(make([]byte, 70<<20))); err != nil {
		t.Fatal(err)
	}
	if syncs != 3 || longest != 32<<20 || unsynced != 0 {
		t.Errorf("%d syncs, up to %d bytes before one, %d after the last", syncs, longest, unsynced)
	}
}
