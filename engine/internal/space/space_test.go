package space

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

const dir = "db"

// disk returns a disk of the given size with an empty directory.
func disk(t *testing.T, capacity int64) *vfs.Mem {
	t.Helper()
	m := vfs.NewMem()
	m.SetCapacity(capacity)
	check(t, m.MkdirAll(dir))
	return m
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write creates a file of n bytes and returns how many were written.
func write(t *testing.T, fsys vfs.FS, name string, n int64) (written int, err error) {
	t.Helper()
	f, err := fsys.Create(name)
	check(t, err)
	defer func() { check(t, f.Close()) }()
	return f.WriteAt(make([]byte, n), 0)
}

// fill leaves free bytes of the disk.
func fill(t *testing.T, m *vfs.Mem, name string, free int64) {
	t.Helper()
	s, err := m.Space(dir)
	check(t, err)
	if n, err := write(t, m, name, s.Free-free); err != nil {
		t.Fatalf("fill: %d bytes, %v", n, err)
	}
}

func TestRefill(t *testing.T) {
	m := disk(t, 1<<20)
	r := New(m, dir, MaxBytes, 1<<20)
	check(t, r.adopt())
	if r.Full() || r.Bytes() != 0 {
		t.Errorf("new: full %t, %d bytes", r.Full(), r.Bytes())
	}
	check(t, r.Refill())
	if !r.Full() || r.Bytes() != 64<<10 || m.Used() != 64<<10 {
		t.Errorf("filled: full %t, %d bytes, %d on disk, want %d", r.Full(), r.Bytes(), m.Used(), 64<<10)
	}
	for _, want := range []bool{true, true, false} {
		if released := r.release(1, 6); released != want {
			t.Errorf("release: %t, want %t", released, want)
		}
	}
	if r.Bytes() != 48<<10 || r.Full() {
		t.Errorf("released: full %t, %d bytes", r.Full(), r.Bytes())
	}
	fill(t, m, "other", 9<<10)
	if err := r.Refill(); !errors.Is(err, syscall.ENOSPC) || r.Bytes() != 56<<10 {
		t.Errorf("Refill with space for one file: %v, %d bytes", err, r.Bytes())
	}
	check(t, m.Remove("other"))
	check(t, r.Refill())
	names, err := m.List(dir)
	check(t, err)
	if len(names) != files || names[0] != "000001.reserve" || !r.Full() {
		t.Errorf("refilled: %q, full %t", names, r.Full())
	}
}

// TestRefillAfterLostAnswer creates a file of the reserve, but the answer is an error.
func TestRefillAfterLostAnswer(t *testing.T) {
	m := disk(t, 1<<20)
	create := func(op vfs.Op) bool { return op.Kind == "create" }
	r := New(errorfs.Wrap(m, errorfs.FailNth(3, create, errorfs.Fault{Err: syscall.EIO, Applied: true}, false)), dir, MaxBytes, 1<<20)
	check(t, r.adopt())
	if err := r.Refill(); !errors.Is(err, syscall.EIO) || r.Full() {
		t.Fatalf("Refill: %v, full %t", err, r.Full())
	}
	check(t, r.Refill())
	if !r.Full() || r.Bytes() != 64<<10 || m.Used() != 64<<10 {
		t.Errorf("filled: full %t, %d bytes, %d on disk, want %d", r.Full(), r.Bytes(), m.Used(), 64<<10)
	}
}

// TestNoReserve has reserves that are too small to be of use.
func TestNoReserve(t *testing.T) {
	m := disk(t, 1<<20)
	for _, r := range []*Reserve{New(m, dir, -1, 1<<20), New(m, dir, 4<<10, 1<<20), New(m, dir, MaxBytes, 256<<10), New(m, dir, MaxBytes, 0)} {
		check(t, r.Refill())
		if !r.Full() || r.Bytes() != 0 || m.Used() != 0 || r.FS() != vfs.FS(m) {
			t.Errorf("full %t, %d bytes, %d on disk", r.Full(), r.Bytes(), m.Used())
		}
	}
	m.SetCapacity(0)
	if err := New(m, dir, MaxBytes, 0).Admit(Write, 1<<40, 1<<40, 1<<40); err != nil {
		t.Errorf("without a limit: %v", err)
	}
}

// TestAdopt finds the files of an earlier process, some of them of other sizes.
func TestAdopt(t *testing.T) {
	m := disk(t, 4<<20)
	for i, size := range []int64{8 << 10, 4 << 10, 0, 1, 64 << 10, 8<<10 + 1} {
		if _, err := write(t, m, dir+"/"+filename.Make(filename.Reserve, uint64(i+1)), size); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"000009.reserve", "1.reserve", "x"} {
		if _, err := write(t, m, dir+"/"+name, 8<<10); err != nil {
			t.Fatal(err)
		}
	}
	check(t, m.MkdirAll(dir+"/000010.reserve"))
	r := New(m, dir, 64<<10, 4<<20)
	check(t, r.adopt())
	names, err := m.List(dir)
	check(t, err)
	want := []string{"000001.reserve", "000002.reserve", "000003.reserve", "000004.reserve", "000010.reserve", "1.reserve", "x"}
	if !slices.Equal(names, want) || r.Bytes() != 32<<10 || r.Full() {
		t.Errorf("%q, %d bytes, full %t; want %q", names, r.Bytes(), r.Full(), want)
	}

	check(t, m.Remove(dir+"/000010.reserve"))
	small := New(m, dir, 32<<10, 4<<20)
	check(t, errors.Join(small.adopt(), small.Refill()))
	fill(t, m, "other", 8<<10-1)
	r = New(m, dir, 64<<10, 4<<20)
	if err := errors.Join(r.adopt(), r.Refill()); err != nil || !r.Full() || r.Bytes() != 32<<10 {
		t.Errorf("smaller files on a full disk: %v, %d bytes", err, r.Bytes())
	}
	check(t, m.Remove("other"))
	r = New(m, dir, 64<<10, 4<<20)
	if err := errors.Join(r.adopt(), r.Refill()); err != nil || !r.Full() || r.Bytes() != 64<<10 {
		t.Errorf("smaller files on a larger disk: %v, %d bytes", err, r.Bytes())
	}
}

// TestAdoptSparse finds a file that has the size of a reserve and not its space, on a
// full disk.
func TestAdoptSparse(t *testing.T) {
	m := disk(t, 1<<20)
	f, err := m.Create(dir + "/000001.reserve")
	check(t, err)
	_, err = f.WriteAt([]byte{0}, 8<<10-1)
	check(t, errors.Join(err, f.Close()))
	fill(t, m, "filler", 0)
	fsys := failing{m}
	r := New(fsys, dir, MaxBytes, 1<<20)
	check(t, r.adopt())
	if r.Bytes() != 0 {
		t.Errorf("%d bytes are kept", r.Bytes())
	}
}

// failing is a full disk for every preallocation.
type failing struct{ *vfs.Mem }

func (f failing) OpenReadWrite(name string) (vfs.File, error) {
	file, err := f.Mem.OpenReadWrite(name)
	return failingFile{file}, err
}

type failingFile struct{ vfs.File }

func (failingFile) Preallocate(int64, int64) error { return syscall.ENOSPC }

// TestWritesOnFullDisk writes files of each kind to a disk without free space.
func TestWritesOnFullDisk(t *testing.T) {
	const file = 8 << 10
	for _, c := range []struct {
		name string
		want int64 // bytes that can be written
	}{
		{dir + "/" + filename.ManifestTemp, 8 * file},
		{dir + "/000001.wal", 8 * file},
		{dir + "/000001.sst", 7 * file},
		{dir + "/other", 0},
		{"000001.wal", 0},
	} {
		for _, n := range []int64{1, c.want - 1, c.want, c.want + 1} {
			if n < 1 {
				continue
			}
			m := disk(t, 1<<20)
			r := New(m, dir, MaxBytes, 1<<20)
			check(t, r.Refill())
			fill(t, m, "filler", 0)
			written, err := write(t, r.FS(), c.name, n)
			if want := min(n, c.want); int64(written) != want || (err == nil) != (n <= c.want) || err != nil && !NoSpace(err) {
				t.Errorf("%s: %d of %d bytes are written, %v, want %d", c.name, written, n, err, want)
			}
			if used := 8*file - r.Bytes(); used-int64(written) >= file {
				t.Errorf("%s: %d bytes of the reserve are used for %d", c.name, used, written)
			}
		}
	}
}

// TestLogBesideSSTable writes a record to the log when an sstable has used all of the
// reserve that it may use. Otherwise the log would fail.
func TestLogBesideSSTable(t *testing.T) {
	m := disk(t, 1<<20)
	r := New(m, dir, MaxBytes, 1<<20)
	check(t, r.Refill())
	fill(t, m, "filler", 0)
	if n, err := write(t, r.FS(), dir+"/000001.sst", 1<<20); !NoSpace(err) {
		t.Fatalf("an sstable of %d bytes: %v", n, err)
	}
	if n, err := write(t, r.FS(), dir+"/000001.wal", 4<<10); err != nil {
		t.Errorf("%d bytes of the log are written: %v", n, err)
	}
}

// TestRefillWithoutSpace must not preallocate a file that does not fit: on ext4 that
// takes all the space for a moment.
func TestRefillWithoutSpace(t *testing.T) {
	m := disk(t, 1<<20)
	fill(t, m, "filler", 8<<10-1)
	r := New(m, dir, MaxBytes, 1<<20)
	created := false
	m.OnOp(func(vfs.Op) { created = true })
	if err := r.Refill(); !NoSpace(err) || created {
		t.Errorf("Refill: %v, created a file: %t", err, created)
	}
}

// TestDropWithoutReserve admits drops when the reserve of a large volume is used up and
// 1 MiB is free.
func TestDropWithoutReserve(t *testing.T) {
	m := disk(t, 512<<20)
	r := New(m, dir, MaxBytes, 512<<20)
	f, err := m.Create("filler")
	check(t, err)
	check(t, errors.Join(f.Preallocate(0, 511<<20), f.Close()))
	if err := r.Admit(Drop, 512<<10, 0, 0); err != nil {
		t.Error(err)
	}
	if err := r.Admit(Drop, 512<<10+1, 0, 0); !NoSpace(err) {
		t.Errorf("a drop that leaves nothing for manifests: %v", err)
	}
}

// TestPreallocation must not use the reserve: it asks for more than is needed.
func TestPreallocation(t *testing.T) {
	m := disk(t, 1<<20)
	r := New(m, dir, MaxBytes, 1<<20)
	check(t, r.Refill())
	fill(t, m, "filler", 0)
	f, err := r.FS().Create(dir + "/000001.wal")
	check(t, err)
	if err := f.Preallocate(0, 100); !NoSpace(err) || !r.Full() {
		t.Errorf("Preallocate: %v, full %t", err, r.Full())
	}
	check(t, f.Close())
}

func TestAdmit(t *testing.T) {
	const file = 8 << 10
	for _, c := range []struct {
		free, taken int64 // bytes of the disk, files of the reserve
		write       int64 // the greatest growth that is admitted, -1 for none
		del, drop   int64
	}{
		{100_000, 0, 100_000 - 5_000 - 3_000, 100_000 + 3*file, 100_000 + 15*file/2},
		{8_000, 0, 0, 8_000 + 3*file, 8_000 + 15*file/2},
		{7_999, 0, -1, 7_999 + 3*file, 7_999 + 15*file/2},
		{100_000, 1, -1, 100_000 + 2*file, 100_000 + 13*file/2},
		{0, 0, -1, 3 * file, 15 * file / 2},
		{0, 3, -1, 0, 9 * file / 2},
		{0, 8, -1, -1, -1},
		{file / 2, 8, -1, -1, 0},
		{file/2 + 100, 8, -1, -1, 100},
	} {
		m := disk(t, 1<<20)
		r := New(m, dir, MaxBytes, 1<<20)
		check(t, r.Refill())
		for range c.taken {
			r.release(1, 0)
		}
		fill(t, m, "filler", c.free)
		for use, limit := range map[Use]int64{Write: c.write, Delete: c.del, Drop: c.drop} {
			for _, grow := range []int64{limit, limit + 1} {
				err := r.Admit(use, grow, 5_000, 3_000+r.Bytes()/2)
				if grow >= 0 && (err == nil) != (grow == limit) || err != nil && !errors.Is(err, syscall.ENOSPC) {
					t.Errorf("%+v: use %d, growth of %d: %v", c, use, grow, err)
				}
			}
		}
	}
}

// TestAdmitOneMore has a reserve without the share of deletes. One is admitted each time that
// everything is reclaimed, unless only a quarter of the reserve is left.
func TestAdmitOneMore(t *testing.T) {
	const file = 8 << 10
	for taken, want := range map[int]int64{3: 3 * file, 5: file, 6: -1} {
		m := disk(t, 1<<20)
		r := New(m, dir, MaxBytes, 1<<20)
		check(t, r.Refill())
		r.release(int64(taken)*file, 0)
		fill(t, m, "filler", 0)
		r.setReclaimed(true)
		if err := r.Admit(Delete, max(want, 0)+1, 0, 0); err == nil {
			t.Errorf("%d files are taken: a delete of more than %d bytes is admitted", taken, want)
		}
		for range 2 {
			r.setReclaimed(true)
			if err := r.Admit(Delete, max(want, 1), 0, 0); (err == nil) != (want > 0) {
				t.Errorf("%d files are taken: a delete of %d bytes: %v", taken, want, err)
			}
		}
		if err := r.Admit(Delete, 1, 0, 0); err == nil {
			t.Errorf("%d files are taken: a second delete is admitted", taken)
		}
	}
}

func TestSizes(t *testing.T) {
	for _, c := range []struct{ limit, volume, segment, file int64 }{
		{64 << 20, 0, 64 << 20, 64 << 20},
		{64 << 20, 1 << 40, 64 << 20, 64 << 20},
		{64 << 20, 1 << 30, 16 << 20, 2 << 20},
		{1 << 20, 1 << 30, 1 << 20, 1 << 20},
	} {
		if s, f := SegmentBytes(c.limit, c.volume), FileBytes(c.limit, c.volume); s != c.segment || f != c.file {
			t.Errorf("%+v: segments of %d, files of %d", c, s, f)
		}
	}
}

// TestCrash loses power while the reserve is made. Whatever is left can be adopted and
// filled again.
func TestCrash(t *testing.T) {
	m := vfs.NewCrashMem()
	m.SetCapacity(1 << 20)
	check(t, m.MkdirAll(dir))
	check(t, m.SyncDir("."))
	states := 0
	m.OnOp(func(op vfs.Op) {
		if !strings.HasSuffix(op.Name, ".reserve") {
			return
		}
		for _, mode := range []string{"min", "max"} {
			states++
			after := m.Crash(vfs.CrashOptions{Mode: mode})
			r := New(after, dir, MaxBytes, 1<<20)
			err := errors.Join(r.adopt(), r.Refill())
			if err != nil || !r.Full() || r.Bytes() != 64<<10 {
				t.Errorf("%v, %s: %v, full %t, %d bytes", op, mode, err, r.Full(), r.Bytes())
			}
		}
	})
	r := New(m, dir, MaxBytes, 1<<20)
	check(t, r.Refill())
	r.release(1<<20, 0)
	if states < 4*files || r.Bytes() != 0 {
		t.Errorf("%d states, %d bytes", states, r.Bytes())
	}
}

// TestShortFiles finds files of the reserve that are too short, as after a kill while zeros
// were written or on a volume that was enlarged. With space on the disk the reserve gets
// its size.
func TestShortFiles(t *testing.T) {
	for _, size := range []int64{1, 4 << 10} {
		m := disk(t, 1<<20)
		for i := range files {
			if _, err := write(t, m, dir+"/"+filename.Make(filename.Reserve, uint64(i+1)), size); err != nil {
				t.Fatal(err)
			}
		}
		full := m.Clone()
		s, err := full.Space(dir)
		check(t, err)
		full.SetCapacity(s.Total - s.Free)
		for _, c := range []struct {
			disk *vfs.Mem
			want int64
		}{{m, 64 << 10}, {full, files * (size / fileUnit * fileUnit)}} {
			r := New(c.disk, dir, MaxBytes, 1<<20)
			check(t, r.adopt())
			if err := r.Refill(); err != nil && !NoSpace(err) {
				t.Error(err)
			}
			if r.Bytes() != c.want {
				t.Errorf("files of %d bytes: the reserve has %d, want %d", size, r.Bytes(), c.want)
			}
		}
	}
}

// TestRemovedFiles removes files of the reserve in use, as an operator does who needs
// space.
func TestRemovedFiles(t *testing.T) {
	m := disk(t, 1<<20)
	r := New(m, dir, MaxBytes, 1<<20)
	check(t, r.Refill())
	for i := range 6 {
		check(t, m.Remove(dir+"/"+filename.Make(filename.Reserve, uint64(i+1))))
	}
	fill(t, m, "filler", 0)
	if err := r.Refill(); !NoSpace(err) || r.Full() || r.Bytes() != 16<<10 {
		t.Errorf("Refill: %v, full %t, %d bytes, want %d", err, r.Full(), r.Bytes(), 16<<10)
	}
	if err := r.Admit(Delete, 1, 0, 0); err == nil {
		t.Error("a delete is admitted, but the disk is full")
	}
}

// TestForeignName has a directory of the name of a file of the reserve.
func TestForeignName(t *testing.T) {
	m := disk(t, 1<<20)
	check(t, m.MkdirAll(dir+"/000002.reserve"))
	err := New(m, dir, MaxBytes, 1<<20).adopt()
	if err == nil || !strings.Contains(err.Error(), "000002.reserve is not a regular file: move it away") {
		t.Errorf("adopt: %v", err)
	}
	check(t, New(m, dir, -1, 1<<20).adopt())
}

// TestOpen fails to ask for the size of a volume. The files of the reserve must stay.
func TestOpen(t *testing.T) {
	m := disk(t, 1<<20)
	r, volume, err := Open(m, dir, MaxBytes)
	check(t, err)
	if check(t, r.Refill()); volume != 1<<20 || !r.Full() {
		t.Fatalf("volume of %d bytes, full %t", volume, r.Full())
	}
	failing := errorfs.Wrap(m, errorfs.FailNth(1, nil, errorfs.Fault{Err: syscall.EIO}, false))
	if _, _, err := Open(failing, dir, MaxBytes); !errors.Is(err, syscall.EIO) {
		t.Errorf("Open: %v, want %v", err, syscall.EIO)
	}
	if r, _, err = Open(failing, dir, MaxBytes); err != nil || !r.Full() {
		t.Errorf("the next Open: %v, full %t", err, r.Full())
	}
	if r, volume, err = Open(vfs.NewMem(), ".", MaxBytes); err != nil || volume != 0 || r.Bytes() != 0 {
		t.Errorf("without a limit: a volume of %d bytes, %v", volume, err)
	}
}
