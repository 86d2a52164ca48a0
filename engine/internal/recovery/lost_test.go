package recovery

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
	"github.com/tablerock-db/tablerock/wal"
)

// unsynced writes the segments of three as NoSync mode does: the headers of 3 and 5 state prev3
// and prev5 as the ends of 2 and 3, and 5 is sealed if seal is set.
func unsynced(t *testing.T, prev3, prev5 int64, seal bool) (disk *vfs.Mem, ends [3]int64) {
	t.Helper()
	disk = vfs.NewMem()
	for i, number := range []uint64{2, 3, 5} {
		first, prev := 10*i+1, []int64{0, prev3, prev5}[i]
		ends[i] = segment(t, disk, number, uint64(first), prev, seal && number == 5, []int{4, 6}, record(true, first, 4), record(false, first+4, 6))
	}
	return disk, ends
}

// tear changes the last byte before the end of a segment, so that its last record is torn.
func tear(t *testing.T, disk *vfs.Mem, number uint64, end int64) {
	t.Helper()
	if err := disk.Patch(filename.Make(filename.WAL, number), end-9, []byte("x")); err != nil {
		t.Fatal(err)
	}
}

// TestReadLost reads logs of NoSync mode of which a crash has torn a segment. The segments
// behind it are lost with its end, unless something proves that it was durable.
func TestReadLost(t *testing.T) {
	const none = int64(wal.PrevUnknown)
	_, ends := unsynced(t, none, none, false)
	for _, c := range []struct {
		name         string
		prev3, prev5 int64
		seal         bool
		known        []manifest.Log
		torn         int // index of the torn segment, -1 none
		last         uint64
		lost         []uint64
		file         string // with damage; "" reads well
	}{
		{name: "whole", prev3: none, prev5: none, torn: -1, last: 30},
		{name: "last torn", prev3: none, prev5: none, torn: 2, last: 24},
		{name: "middle torn", prev3: none, prev5: none, torn: 1, last: 14, lost: []uint64{5}},
		{name: "first torn", prev3: none, prev5: none, torn: 0, last: 4, lost: []uint64{3, 5}},
		{name: "first torn, the header of 3 states its end", prev3: ends[0], prev5: none, torn: 0, file: "000002.wal"},
		{name: "first torn, the header of 5 states that 3 was synced", prev3: none, prev5: ends[1], torn: 0, file: "000002.wal"},
		{
			name: "first torn, the manifest states that 5 was synced", prev3: none, prev5: none,
			known: []manifest.Log{{Number: 5, Proven: ends[2]}}, torn: 0, file: "000002.wal",
		},
		{name: "first torn, a record of 5 states that 5 was synced", prev3: none, prev5: none, seal: true, torn: 0, file: "000003.wal"},
		{name: "first torn, 5 follows an empty segment", prev3: none, prev5: wal.HeaderLen, torn: 0, file: "000002.wal"},
		{name: "first torn, 5 follows a load", prev3: none, prev5: 0, torn: 0, file: "000002.wal"},
		{name: "middle torn, the header of 3 states the end of 2", prev3: ends[0], prev5: none, torn: 1, last: 14, lost: []uint64{5}},
	} {
		for _, mode := range []Mode{Own, Idle} {
			t.Run(fmt.Sprintf("%s, mode %d", c.name, mode), func(t *testing.T) {
				disk, _ := unsynced(t, c.prev3, c.prev5, c.seal)
				if c.torn >= 0 {
					tear(t, disk, []uint64{2, 3, 5}[c.torn], ends[c.torn])
				}
				m := &manifest.Manifest{Logs: append([]manifest.Log{{Number: 2}}, c.known...)}
				l, err := read(t, disk, m, mode)
				if c.file != "" {
					var damage *corrupt.Error
					if !errors.As(err, &damage) || damage.File != c.file {
						t.Errorf("Read: %v, want damage of %s", err, c.file)
					}
					return
				}
				if err != nil || l.LastSeq != c.last || fmt.Sprint(l.Lost) != fmt.Sprint(c.lost) || l.Next != 6 {
					t.Fatalf("Read: %+v, %v; want %d sequences, lost %v, next number 6", l, err, c.last, c.lost)
				}
				if mode == Idle {
					return
				}
				// The next Read finds the same without the lost segments.
				if err := errors.Join(l.Repair(), l.RemoveLost(slog.New(slog.DiscardHandler), func() error { return nil })); err != nil {
					t.Fatal(err)
				}
				if l, err = read(t, disk, m, Own); err != nil || l.LastSeq != c.last || len(l.Lost) > 0 {
					t.Errorf("after the repair: Read: %+v, %v; want %d sequences and none lost", l, err, c.last)
				}
			})
		}
	}
}

// TestRemoveLostWithoutRecord removes lost segments while no manifest can be written. They stay, unless that is because the disk is
// full.
func TestRemoveLostWithoutRecord(t *testing.T) {
	for _, c := range []struct {
		err  error
		left []uint64
	}{
		{syscall.ENOSPC, []uint64{2}},
		{syscall.EIO, []uint64{2, 3, 5}},
	} {
		disk, ends := unsynced(t, int64(wal.PrevUnknown), int64(wal.PrevUnknown), false)
		tear(t, disk, 2, ends[0])
		l, err := read(t, disk, &manifest.Manifest{Logs: []manifest.Log{{Number: 2}}}, Own)
		if err != nil {
			t.Fatal(err)
		}
		err = l.RemoveLost(slog.New(slog.DiscardHandler), func() error { return fmt.Errorf("write manifest: %w", c.err) })
		if (err == nil) != (len(c.left) == 1) || err != nil && !errors.Is(err, c.err) {
			t.Errorf("no manifest because of %v: RemoveLost: %v", c.err, err)
		}
		var left []uint64
		for _, number := range []uint64{2, 3, 5} {
			if _, err := disk.Stat(filename.Make(filename.WAL, number)); err == nil {
				left = append(left, number)
			}
		}
		if !slices.Equal(left, c.left) {
			t.Errorf("no manifest because of %v: segments %v are left, want %v", c.err, left, c.left)
		}
	}
}

// TestReadUnsyncedBeside reads a log beside a writer in NoSync mode. It shows only what a crash
// cannot take back.
func TestReadUnsyncedBeside(t *testing.T) {
	disk, _ := unsynced(t, wal.PrevUnknown, wal.PrevUnknown, false)
	m := &manifest.Manifest{Logs: []manifest.Log{{Number: 2}}}
	if l, err := read(t, disk, m, Beside); err != nil || l.LastSeq != 0 {
		t.Errorf("Read: %+v, %v, want nothing", l, err)
	}
	// The seal of 5 proves everything before it.
	disk, _ = unsynced(t, wal.PrevUnknown, wal.PrevUnknown, true)
	if l, err := read(t, disk, m, Beside); err != nil || l.LastSeq != 30 {
		t.Errorf("Read: %+v, %v, want 30 sequences", l, err)
	}
}

// TestRemoveLostFails fails each step that removes lost segments. The error must be returned: records that follow would contradict a
// segment that is left, or that a crash brings back.
func TestRemoveLostFails(t *testing.T) {
	injected := errors.New("injected")
	for n := uint64(1); ; n++ {
		mem := vfs.NewMem()
		for _, name := range []string{"000005.wal", "000006.wal"} {
			f, err := mem.Create(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		rule := errorfs.FailNth(n, func(vfs.Op) bool { return true }, errorfs.Fault{Err: injected}, false)
		l := &Log{fs: errorfs.Wrap(mem, rule), dir: ".", Lost: []uint64{5, 6}}
		err := l.RemoveLost(slog.New(slog.DiscardHandler), func() error { return nil })
		if n == 4 { // two files and the directory
			if err != nil {
				t.Errorf("without a fault: %v", err)
			}
			return
		}
		if !errors.Is(err, injected) {
			t.Errorf("operation %d fails: %v, want %v", n, err, injected)
		}
	}
}
