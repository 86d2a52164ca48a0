package disk

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

const pageBytes = 4 << 10

// coldFile writes n random bytes to a file, evicts it from the page cache and opens it. It
// skips the test where the file system keeps it.
func coldFile(t *testing.T, n int) (f *File, data []byte) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "f")
	data = make([]byte, n)
	r := rand.NewChaCha8([32]byte{})
	r.Read(data)
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(name, os.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	evict(t, f)
	return f, data
}

func evict(t *testing.T, f *File) {
	t.Helper()
	err := f.control("evict", func(fd uintptr) error {
		if err := unix.Fsync(int(fd)); err != nil {
			return err
		}
		return unix.Fadvise(int(fd), 0, 0, unix.FADV_DONTNEED)
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := resident(t, f); n > 0 {
		t.Skipf("the file system keeps %d pages of an evicted file", n)
	}
}

// resident returns how many pages of a file are in the page cache.
func resident(t *testing.T, f *File) int {
	t.Helper()
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	var stat unix.Cachestat_t
	err = f.control("ask", func(fd uintptr) error {
		return unix.Cachestat(uint(fd), &unix.CachestatRange{Len: uint64(size)}, &stat, 0)
	})
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EPERM) {
		t.Skipf("the system does not tell what it has in memory: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return int(stat.Cache)
}

// TestColdReads reads a cold file at random, from several goroutines, and compares bytes and
// errors, at the end of the file too.
func TestColdReads(t *testing.T) {
	const size, seed = 1<<20 + 123, 7
	for round := range 3 {
		f, data := coldFile(t, size)
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(seed, uint64(8*round+g)))
				for range 300 {
					off, n := r.Int64N(size+5000), r.IntN(40<<10)
					got := make([]byte, n)
					m, err := f.ReadAt(got, off)
					want := data[min(off, size):min(off+int64(n), size)]
					if m != len(want) || !bytes.Equal(got[:m], want) || (err == nil) != (m == n) || err != nil && err != io.EOF {
						t.Errorf("%d bytes at %d: read %d, %v (seed %d)", n, off, m, err, seed)
						return
					}
				}
			})
		}
		wg.Wait()
		if _, err := f.ReadAt(make([]byte, 1), -1); err == nil {
			t.Error("a read at -1 has no error")
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		for range 2 * tryEach {
			if _, err := f.ReadAt(make([]byte, 1), 0); !errors.Is(err, fs.ErrClosed) {
				t.Fatalf("a read of a closed file: %v", err)
			}
		}
	}
}

// TestReadAhead reads a cold file at random and in order: the system reads ahead in the
// second case only.
func TestReadAhead(t *testing.T) {
	const size, n = 8 << 20, 2 * pageBytes
	f, _ := coldFile(t, size)
	p := make([]byte, n)
	read := func(off int64) {
		t.Helper()
		if _, err := f.ReadAt(p, off); err != nil {
			t.Fatal(err)
		}
	}
	const reads = 10
	for i := range int64(reads) {
		read((i * 7 % reads) * size / reads / n * n)
	}
	if got := resident(t, f); got > 2*reads*n/pageBytes {
		t.Errorf("after %d reads of %d pages at random, %d are in memory", reads, n/pageBytes, got)
	}
	evict(t, f)
	for i := range int64(reads) {
		read(i * n)
	}
	if got := resident(t, f); got <= reads*n/pageBytes {
		t.Errorf("after %d reads of %d pages in order, %d are in memory, want more", reads, n/pageBytes, got)
	}
}

// needTries skips the test where the file system has no reads that do not wait. The calls
// here do not depend on what the reader found.
func needTries(t *testing.T, f *File) {
	t.Helper()
	var err error
	cerr := f.control("try", func(fd uintptr) error {
		_, err = unix.Preadv2(int(fd), [][]byte{make([]byte, pageBytes)}, 0, unix.RWF_NOWAIT)
		return nil
	})
	if cerr != nil {
		t.Fatal(cerr)
	}
	if err == unix.EOPNOTSUPP || err == unix.ENOSYS {
		t.Skipf("a read that must not wait: %v", err)
	}
}

// TestFewTries reads a file from memory, after which few reads are tried without waiting, and
// then from the disk, after which all are.
func TestFewTries(t *testing.T) {
	f, _ := coldFile(t, 1<<20)
	p := make([]byte, pageBytes)
	read := func() {
		t.Helper()
		if _, err := f.ReadAt(p, 0); err != nil {
			t.Fatal(err)
		}
	}
	needTries(t, f)
	tried := func() { // by the next read
		f.reader.reads.Store(tryEach - 1)
	}
	evict(t, f)
	tried()
	read()
	if f.reader.refused.Load() {
		t.Error("reads that do not wait were given up, and the file system has them")
	}
	if got := f.reader.waits.Load(); got != waitReads {
		t.Errorf("%d waits after a cold read, want %d", got, waitReads)
	}
	for range waitReads {
		tried()
		read()
	}
	if got := f.reader.waits.Load(); got != 0 {
		t.Errorf("%d waits after warm reads, want none", got)
	}
	evict(t, f)
	for i := range tryEach {
		read()
		evict(t, f)
		if f.reader.waits.Load() > 0 {
			return
		}
		if i == tryEach-1 {
			t.Errorf("%d cold reads did not find out that they wait", tryEach)
		}
	}
}

// TestTriesBesideOthers reads a cold file alone, which is not tried, and beside another reader.
func TestTriesBesideOthers(t *testing.T) {
	f, _ := coldFile(t, 1<<20)
	needTries(t, f)
	p := make([]byte, pageBytes)
	for _, others := range []bool{false, true, false} {
		if others {
			reading.Add(1)
		}
		evict(t, f)
		f.reader.reads.Store(0)
		f.reader.waits.Store(1)
		if _, err := f.ReadAt(p, 0); err != nil {
			t.Fatal(err)
		}
		if others {
			reading.Add(-1)
		}
		if got, want := f.reader.waits.Load() == waitReads, others; got != want {
			t.Errorf("beside others %v: tried %v", others, got)
		}
	}
	if n := reading.Load(); n != 0 {
		t.Errorf("%d reads are under way, want none", n)
	}
}

// TestReadAllocs reads a file from memory, always by tries.
func TestReadAllocs(t *testing.T) {
	f, _ := coldFile(t, 1<<20)
	p := make([]byte, 3*pageBytes)
	read := func() {
		f.reader.waits.Store(waitReads)
		f.reader.reads.Store(tryEach - 1)
		if _, err := f.ReadAt(p, 5000); err != nil {
			t.Fatal(err)
		}
	}
	read()
	if n := testing.AllocsPerRun(1000, read); n >= 1 {
		t.Errorf("%.1f allocations a read", n)
	}
}
