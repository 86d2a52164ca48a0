package lsm

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/bound"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/internal/merge"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// closedTree returns the file system of a closed tree of several files, and its manifest.
func closedTree(t *testing.T) (*vfs.Mem, manifest.Manifest) {
	t.Helper()
	h := newHarness(t, vfs.NewMem(), smallOptions(), 31)
	for n := range 300 {
		h.put(n, 60)
	}
	h.flush()
	h.close()
	m := h.tree.Manifest()
	if len(m.Files) < 3 {
		t.Fatalf("%d files, want several", len(m.Files))
	}
	return h.fs.(*vfs.Mem), m
}

func openTree(t *testing.T, fsys vfs.FS) *Tree {
	t.Helper()
	m, err := manifest.Read(fsys, testDir)
	must(t, err)
	tree, err := Open(Options{FS: fsys, Dir: testDir}, m)
	must(t, err)
	t.Cleanup(func() { must(t, tree.Close()) })
	return tree
}

// scanAll counts the entries of the tree.
func scanAll(tree *Tree) (n int, err error) {
	v := tree.Version()
	defer v.Unref()
	var it merge.Iterator
	it.Init(sourcesOf(v, sstable.IterOptions{Snapshot: codec.MaxSeq}), merge.Options{})
	for ok := it.SeekGE(nil); ok; ok = it.Next() {
		n++
	}
	return n, errors.Join(it.Err(), it.Close())
}

// getFirst gets the first key of the file.
func getFirst(tree *Tree, f *manifest.File) (ok bool, err error) {
	v := tree.Version()
	defer v.Unref()
	user, _ := bound.Split(f.Smallest)
	var row sstable.Row
	defer row.Release()
	_, _, ok, err = v.Get(user, codec.KeyHash(user), codec.MaxSeq, &row)
	return ok, err
}

// TestFirstUseFindsDamage damages the parts of a file that its first use reads, and Open
// does not. Each use must find it, Verify too, and uses of other files must not.
func TestFirstUseFindsDamage(t *testing.T) {
	race.SkipOneGoroutine(t)
	disk, m := closedTree(t)
	f, other := &m.Files[len(m.Files)/2], &m.Files[0]
	name := filename.Make(filename.SSTable, f.Number)
	var offsets []int64
	fsys := errorfs.Wrap(disk, func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "read" && strings.HasSuffix(op.Name, name) {
			for off := op.Off; off < op.Off+op.Len; off += max(1, op.Len/30) {
				offsets = append(offsets, off)
			}
		}
		return nil
	})
	tree := openTree(t, fsys)
	for _, s := range tree.current.Load().runs.SSTs() {
		_, err := s.Reader()
		must(t, err)
	}
	if len(offsets) < 3*30 {
		t.Fatalf("the first use reads at %v, want the header, the footer and the sections", offsets)
	}
	for _, off := range offsets {
		path := testDir + "/" + name
		b, err := vfs.ReadFile(disk, path, f.Size)
		must(t, err)
		must(t, disk.Patch(path, off, []byte{b[off] ^ 0x10}))
		tree := openTree(t, disk)
		if ok, err := getFirst(tree, other); !ok || err != nil {
			t.Fatalf("byte %d: Get from another file: %t, %v", off, ok, err)
		}
		isDamage := func(err error) bool {
			var damage *corrupt.Error
			return errors.As(err, &damage) && damage.File == name
		}
		for range 2 {
			if ok, err := getFirst(tree, f); ok || !isDamage(err) && !errors.Is(err, sstable.ErrNewerFormat) {
				t.Fatalf("byte %d: Get: %t, %v, want damage of %s", off, ok, err, name)
			}
			if n, err := scanAll(tree); !isDamage(err) {
				t.Fatalf("byte %d: a scan of %d rows: %v, want damage of %s", off, n, err, name)
			}
		}
		found, err := tree.Verify(context.Background())
		must(t, err)
		if !slices.ContainsFunc(found.Findings, func(e *corrupt.Error) bool { return e.File == name }) {
			t.Fatalf("byte %d: Verify finds %v", off, found.Findings)
		}
		// A wrong read is not remembered.
		must(t, disk.Patch(path, off, b[off:off+1]))
		if n, err := scanAll(tree); n != 300 || err != nil {
			t.Fatalf("byte %d: after the repair a scan returns %d rows, %v", off, n, err)
		}
	}
}

// TestFirstUseFails fails each read of the first use of a file. The use returns the error,
// and the next one succeeds.
func TestFirstUseFails(t *testing.T) {
	disk, m := closedTree(t)
	for n := uint64(1); ; n++ {
		fsys := errorfs.Wrap(disk, nil)
		tree := openTree(t, fsys)
		fsys.SetRule(errorfs.FailNth(n, func(op vfs.Op) bool { return op.Kind == "read" }, errorfs.Fault{Err: syscall.EIO}, false))
		_, err := getFirst(tree, &m.Files[0])
		if err == nil {
			if n < 4 {
				t.Fatalf("the first use has %d reads, want header, footer and sections", n-1)
			}
			return
		}
		if !errors.Is(err, syscall.EIO) || errors.Is(err, corrupt.ErrCorrupt) {
			t.Fatalf("read %d: %v, want %v", n, err, syscall.EIO)
		}
		if ok, err := getFirst(tree, &m.Files[0]); !ok || err != nil {
			t.Fatalf("after the failure of read %d: %t, %v", n, ok, err)
		}
	}
}

// TestVerifyFails fails each operation of Verify, which returns the error: it has not checked all.
func TestVerifyFails(t *testing.T) {
	race.SkipOneGoroutine(t)
	disk, _ := closedTree(t)
	for n := 1; ; n++ {
		fsys := errorfs.Wrap(disk, nil)
		tree := openTree(t, fsys)
		ops := 0
		var failed vfs.Op
		fsys.SetRule(func(op vfs.Op) *errorfs.Fault {
			if ops++; ops != n {
				return nil
			}
			failed = op
			return &errorfs.Fault{Err: syscall.EIO}
		})
		got, err := tree.Verify(context.Background())
		if ops < n {
			must(t, err)
			if n < 10 {
				t.Fatalf("Verify has %d operations", ops)
			}
			return
		}
		if !errors.Is(err, syscall.EIO) {
			t.Fatalf("operation %d, %v: error %v, %d findings, want %v", n, failed, err, len(got.Findings), syscall.EIO)
		}
	}
}

// TestFirstUseConcurrently uses a file for the first time from several goroutines. One of
// them reads its footer.
func TestFirstUseConcurrently(t *testing.T) {
	disk, m := closedTree(t)
	f := &m.Files[0]
	for range 20 {
		var footers atomic.Int64
		fsys := errorfs.Wrap(disk, func(op vfs.Op) *errorfs.Fault {
			if op.Kind == "read" && op.Off+op.Len == f.Size && strings.HasSuffix(op.Name, filename.Make(filename.SSTable, f.Number)) {
				footers.Add(1)
			}
			return nil
		})
		tree := openTree(t, fsys)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if ok, err := getFirst(tree, f); !ok || err != nil {
					t.Errorf("Get: %t, %v", ok, err)
				}
			})
		}
		wg.Wait()
		if n := footers.Load(); n != 1 {
			t.Fatalf("the footer was read %d times, want once", n)
		}
	}
}

// TestOpenReadsNoFile counts the reads of Open: it reads clipped files only, because the
// manifest does not say how much of them is left.
func TestOpenReadsNoFile(t *testing.T) {
	disk, m := closedTree(t)
	open := func() (reads int) {
		openTree(t, errorfs.Wrap(disk, func(op vfs.Op) *errorfs.Fault {
			if op.Kind == "read" && strings.HasSuffix(op.Name, ".sst") {
				reads++
			}
			return nil
		}))
		return reads
	}
	if n := open(); n != 0 {
		t.Errorf("Open reads %d times from sstables, want 0", n)
	}
	f := &m.Files[0]
	user, _ := bound.Split(f.Smallest)
	f.Smallest = bound.Clip(user, bound.ClippedFirst)
	must(t, manifest.Write(disk, testDir, &m))
	if n := open(); n == 0 || n > 10 {
		t.Errorf("Open with a clipped file reads %d times, want its footer and index", n)
	}
}
