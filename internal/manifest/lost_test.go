package manifest

import (
	"errors"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestLost looks for a lost manifest in directories with other files.
func TestLost(t *testing.T) {
	records := append(make([]byte, 5000), 1)
	for name, c := range map[string]struct {
		files map[string][]byte
		lost  string // the file that the error names; "" is no error
	}{
		"no directory":               {nil, ""},
		"other files":                {map[string][]byte{"LOCK": nil, "MANIFEST.tmp": nil, "notes.sst": nil, "000001.reserve": nil}, ""},
		"an interrupted creation":    {map[string][]byte{"LOCK": nil, "000001.wal": make([]byte, 5000)}, ""},
		"a database":                 {map[string][]byte{"MANIFEST": nil, "000002.sst": nil, "000001.wal": records}, ""},
		"an sstable":                 {map[string][]byte{"000008.reserve": nil, "000002.sst": nil, "000001.wal": make([]byte, 10)}, "000002.sst"},
		"a segment with records":     {map[string][]byte{"000001.wal": records, "LOCK": nil}, "000001.wal"},
		"a manifest by another name": {map[string][]byte{"MANIFEST.old": nil, "000002.sst": nil}, "000002.sst"},
	} {
		t.Run(name, func(t *testing.T) {
			disk := vfs.NewMem()
			for file, b := range c.files {
				if err := disk.MkdirAll("db"); err != nil {
					t.Fatal(err)
				}
				f, err := disk.Create("db/" + file)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := f.WriteAt(b, 0); err != nil {
					t.Fatal(err)
				}
			}
			err := Lost(disk, "db")
			var damage *corrupt.Error
			if c.lost == "" && err != nil || c.lost != "" && (!errors.As(err, &damage) || damage.File != "MANIFEST" || !strings.Contains(damage.What, c.lost)) {
				t.Errorf("Lost: %v, want damage that names %q", err, c.lost)
			}
		})
	}
}
