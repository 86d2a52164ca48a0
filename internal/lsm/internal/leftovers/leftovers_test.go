package leftovers

import (
	"errors"
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// TestEmptyFiles finds the empty sstables that kills left, and no file that somebody else may
// need.
func TestEmptyFiles(t *testing.T) {
	disk := vfs.NewMem()
	for name, content := range map[string]string{"000001.sst": "", "000002.sst": "", "000003.sst": "foreign", "000009.sst": "", "notes.sst": ""} {
		f, err := disk.Create(name)
		if err == nil && content != "" {
			_, err = f.WriteAt([]byte(content), 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	l, err := Find(disk, ".", [16]byte{1}, map[uint64]bool{2: true}, 9)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Check(0, 0); err != nil {
		t.Errorf("Check: %v", err)
	}
	if removed, err := l.Remove(); err != nil || fmt.Sprint(removed) != "[000001.sst]" {
		t.Errorf("removed %v, %v; want the empty file that is not listed", removed, err)
	}
}

// finished returns a disk with a finished file of the database 1, whose last entry has the sequence number 5
// and the Timestamp 100.
func finished(t *testing.T) *vfs.Mem {
	t.Helper()
	disk := vfs.NewMem()
	f, err := disk.Create("000001.sst")
	if err != nil {
		t.Fatal(err)
	}
	w := sstable.NewWriter(f, sstable.WriterOptions{DBID: [16]byte{1}, Number: 1})
	shape := codec.NewShape(nil)
	var row codec.Row
	user := codec.AppendKey(nil, 16, "p", "r")
	row.Reset(user, 100, shape, false, nil)
	if err := w.Add(codec.AppendTrailer(user, 5, codec.KindPut), &row); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	return disk
}

// TestCheck checks a finished file.
func TestCheck(t *testing.T) {
	l, err := Find(finished(t), ".", [16]byte{1}, nil, 9)
	if err != nil || len(l.files) != 1 {
		t.Fatalf("found %v, %v", l.files, err)
	}
	for _, c := range []struct {
		seq   uint64
		stamp edm.Ticks
		ok    bool
	}{{5, 100, true}, {6, 101, true}, {4, 100, false}, {5, 99, false}} {
		if err := l.Check(c.seq, c.stamp); errors.Is(err, corrupt.ErrCorrupt) == c.ok || (err == nil) != c.ok {
			t.Errorf("manifest and logs end at %d of %d: %v", c.seq, c.stamp, err)
		}
	}
}

// TestReadErrors fails each read of a file with newer entries than manifest and logs. The file must not pass
// for an unfinished one, which Remove may remove.
func TestReadErrors(t *testing.T) {
	broken := errors.New("the disk is broken")
	disk := finished(t)
	for n := uint64(1); ; n++ {
		failed := false
		fail := errorfs.FailNth(n, func(op vfs.Op) bool { return op.Kind == "read" }, errorfs.Fault{Err: broken}, false)
		l, err := Find(errorfs.Wrap(disk, func(op vfs.Op) *errorfs.Fault {
			f := fail(op)
			failed = failed || f != nil
			return f
		}), ".", [16]byte{1}, nil, 9)
		if err == nil {
			err = l.Check(4, 99)
		}
		if !failed {
			if n < 8 || !errors.Is(err, corrupt.ErrCorrupt) {
				t.Errorf("%d reads, then %v", n-1, err)
			}
			return
		}
		if !errors.Is(err, broken) {
			t.Errorf("read %d failed: %v", n, err)
		}
	}
}
