package vfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/vfs"
)

func TestOnOp(t *testing.T) {
	m := vfs.NewCrashMem()
	var ops []string
	m.OnOp(func(op vfs.Op) {
		ops = append(ops, op.String()+" ->"+strings.ReplaceAll(show(t, m.Crash(vfs.CrashOptions{Mode: "min"})), "\n", ""))
	})
	f, err := m.Create("a")
	if err != nil {
		t.Fatal(err)
	}
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ok(m.SyncDir("/"))
	_, err = f.WriteAt(bytes.Repeat([]byte("A"), 2048), 256)
	ok(err)
	_, err = f.ReadAt(make([]byte, 1), 0)
	ok(err)
	ok(f.Sync())
	ok(f.Preallocate(0, 3000))
	ok(m.Rename("a", "b"))
	ok(f.Close())
	m.OnOp(nil)
	ok(m.Remove("b"))

	want := []string{
		"#1 create a ->empty",
		"#2 sync-dir / ->empty",
		"#3 write a [256,2304) ->/a: nothing",
		"#3 write a [256,2304) after 256 ->/a: nothing",
		"#3 write a [256,2304) after 768 ->/a: nothing",
		"#3 write a [256,2304) after 1792 ->/a: nothing",
		"#4 sync a ->/a: nothing",
		"#4 sync a after 1 ->/a: 0*256 A*256",
		"#4 sync a after 2 ->/a: 0*256 A*768",
		"#4 sync a after 4 ->/a: 0*256 A*1792",
		"#5 preallocate a [0,3000) ->/a: 0*256 A*2048",
		"#6 rename a b ->/a: 0*256 A*2048",
	}
	if !slices.Equal(ops, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(ops, "\n"), strings.Join(want, "\n"))
	}
	if got := m.Ops(); got != 7 {
		t.Errorf("%d operations, want 7", got)
	}
}

// TestOnOpInsideWrite checks that a crash inside a write that keeps everything has the
// sectors written so far.
func TestOnOpInsideWrite(t *testing.T) {
	m := vfs.NewCrashMem()
	f, err := m.Create("a")
	if err != nil {
		t.Fatal(err)
	}
	var sizes []int64
	m.OnOp(func(op vfs.Op) {
		info, err := m.Crash(vfs.CrashOptions{Mode: "max"}).Stat("a")
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, info.Size)
	})
	if _, err := f.WriteAt(make([]byte, 5*512), 0); err != nil {
		t.Fatal(err)
	}
	if want := []int64{0, 512, 1024, 2048}; !slices.Equal(sizes, want) {
		t.Errorf("sizes inside the write are %d, want %d", sizes, want)
	}
}

// TestOnOpInsideSync cuts the power inside the sync of one large write.
func TestOnOpInsideSync(t *testing.T) {
	m, f := fileWith(t, 0)
	if _, err := f.WriteAt(bytes.Repeat([]byte("X"), 5*512), 0); err != nil {
		t.Fatal(err)
	}
	var got []string
	m.OnOp(func(op vfs.Op) { got = append(got, show(t, m.Crash(vfs.CrashOptions{Mode: "min"}))) })
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	want := []string{"/a: nothing\n", "/a: X*512\n", "/a: X*1024\n", "/a: X*2048\n"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestCapacity runs a small workload with every capacity.
func TestCapacity(t *testing.T) {
	const need = 300
	for limit := int64(1); limit <= need+1; limit++ {
		m := vfs.NewCrashMem()
		m.SetCapacity(limit)
		f, err := m.Create("a")
		if err != nil {
			t.Fatal(err)
		}
		total := 0
		for off := 0; off < need; off += 100 {
			n, err := f.WriteAt(bytes.Repeat([]byte("x"), 100), int64(off))
			total += n
			if n < 100 != errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("capacity %d: wrote %d bytes, error %v", limit, n, err)
			}
			if err != nil {
				break
			}
		}
		if want := int(min(limit, need)); total != want || m.Used() != int64(want) {
			t.Fatalf("capacity %d: wrote %d bytes, %d in use, want %d", limit, total, m.Used(), want)
		}
	}
}

// TestSpace compares the description of the volume with the files on it.
func TestSpace(t *testing.T) {
	m := vfs.NewMem()
	if s, err := m.Space("."); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("without a capacity: %+v, %v", s, err)
	}
	m.SetCapacity(1000)
	e := &env{T: t, fs: m, dir: ""}
	e.put("a", strings.Repeat("x", 600))
	for _, want := range []vfs.Space{{Total: 1000, Free: 400}, {Total: 500, Free: 0}} {
		m.SetCapacity(want.Total)
		if s, err := m.Space("."); s != want || err != nil {
			t.Errorf("got %+v, %v, want %+v", s, err, want)
		}
	}
}

func TestCapacityIsReleased(t *testing.T) {
	m := vfs.NewMem()
	m.SetCapacity(1000)
	e := &env{T: t, fs: m, dir: ""}
	used := func(want int64) {
		t.Helper()
		if got := m.Used(); got != want {
			t.Errorf("%d bytes in use, want %d", got, want)
		}
	}
	f := e.create("a", strings.Repeat("x", 600))
	_, err := f.WriteAt([]byte(strings.Repeat("y", 600)), 0)
	e.ok(err) // an overwrite needs no space
	used(600)
	e.fails(f.Preallocate(0, 1001), syscall.ENOSPC)
	used(600)
	e.ok(f.Preallocate(0, 1000))
	used(1000)
	_, err = f.WriteAt([]byte(strings.Repeat("z", 400)), 600)
	e.ok(err) // reserved bytes need no space
	_, err = f.WriteAt([]byte("z"), 1000)
	e.fails(err, syscall.ENOSPC)
	m.SetCapacity(1900)
	e.put("b", strings.Repeat("b", 900))
	used(1900)
	_, err = f.WriteAt([]byte("z"), 1000)
	e.fails(err, syscall.ENOSPC)
	e.ok(m.Link("/b", "/c"))
	e.ok(m.Remove("/b"))
	used(1900)
	e.ok(m.Remove("/c"))
	used(1000)
	e.ok(m.Remove("/a"))
	used(1000) // until the last handle is closed
	e.ok(f.Close())
	used(0)
	e.put("d", "d")
	e.put("e", "ee")
	e.ok(m.Rename("/d", "/e"))
	used(1)
	_, err = m.Clone().Create("/x")
	e.ok(err)
	if got := m.Clone().Used(); got != 1 {
		t.Errorf("a clone uses %d bytes, want 1", got)
	}
}

func TestPatch(t *testing.T) {
	m := vfs.NewCrashMem()
	e := &env{T: t, fs: m, dir: ""}
	f := e.create("a", "0123456789")
	syncAll(t, m, f)
	ops, states := m.Ops(), m.CrashStateCount()
	e.ok(m.Patch("/a", 3, []byte("x")))
	e.want("a", "012x456789")
	after := m.Crash(vfs.CrashOptions{Mode: "min"})
	(&env{T: t, fs: after, dir: ""}).want("a", "012x456789")
	if m.Ops() != ops || m.CrashStateCount() != states {
		t.Error("a patch counts as an operation or is pending")
	}
	for _, off := range []int64{-1, 10, 1 << 62} {
		if err := m.Patch("/a", off, []byte("x")); err == nil {
			t.Errorf("patch at %d: got nil", off)
		}
	}
	if err := m.Patch("/", 0, nil); err == nil {
		t.Error("patch of a directory: got nil")
	}
}

func TestMemHugeOffsets(t *testing.T) {
	e := &env{T: t, fs: vfs.NewMem(), dir: ""}
	f := e.create("a", "x")
	for _, off := range []int64{1 << 41, 1<<63 - 1} {
		_, err := f.WriteAt([]byte("x"), off)
		e.fails(err, syscall.EFBIG)
		e.fails(f.Preallocate(off, 1), syscall.EFBIG)
	}
	e.want("a", "x")
}

// TestMemConcurrent runs all operations concurrently for the race detector.
func TestMemConcurrent(t *testing.T) {
	m := vfs.NewCrashMem()
	m.SetCapacity(1 << 20)
	var wg sync.WaitGroup
	spawn := func(work func(rng *rand.Rand) error) {
		rng := rand.New(rand.NewPCG(1, 2))
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 200 {
				if err := work(rng); err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	for i := range 3 {
		f, err := m.Create(fmt.Sprintf("f%d", i))
		if err != nil {
			t.Fatal(err)
		}
		spawn(func(rng *rand.Rand) error {
			if _, err := f.WriteAt(make([]byte, 1+rng.IntN(2000)), int64(rng.IntN(9000))); err != nil {
				return err
			}
			if rng.IntN(8) == 0 {
				if err := f.Preallocate(0, int64(rng.IntN(9000))); err != nil {
					return err
				}
			}
			return f.Sync()
		})
		spawn(func(rng *rand.Rand) error {
			_, _ = f.ReadAt(make([]byte, 1000), int64(rng.IntN(9000)))
			_, err := f.Size()
			return err
		})
	}
	spawn(func(rng *rand.Rand) error {
		f, err := m.Create("tmp")
		if err != nil {
			return err
		}
		if err := m.Rename("tmp", "kept"); err != nil {
			return err
		}
		return errors.Join(f.Close(), m.SyncDir("/"))
	})
	spawn(func(rng *rand.Rand) error {
		c := m.Crash(vfs.CrashOptions{Mode: "lying", Seed: rng.Uint64()})
		_, err := vfs.Dump(c, "/")
		if _, err := vfs.Dump(m.Clone(), "/"); err != nil {
			return err
		}
		return err
	})
	for range 2 {
		spawn(func(*rand.Rand) error {
			lock, err := m.Lock("LOCK")
			var locked *vfs.LockedError
			if errors.As(err, &locked) {
				return nil
			}
			if err != nil {
				return err
			}
			return lock.Close()
		})
	}
	m.OnOp(func(op vfs.Op) { m.CrashStateCount() })
	wg.Wait()
}
