package leftovers

import (
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/vfs"
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
