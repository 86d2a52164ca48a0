package lsm

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestBoundsAreKeys opens a manifest with valid checksums whose bounds are not keys:
// the picker would read table ids from them.
func TestBoundsAreKeys(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(f *manifest.File)
	}{
		{"no table id", func(f *manifest.File) { f.Smallest = f.Smallest[len(f.Smallest)-9:] }},
		{"no partition", func(f *manifest.File) { f.Smallest = make([]byte, 12) }},
		{"control character", func(f *manifest.File) {
			f.Largest = append([]byte("\xff\xff\xff\xff\x02\x01\x01"), f.Largest[len(f.Largest)-8:]...)
		}},
		{"no Timestamp of a load", func(f *manifest.File) { f.Stamp, f.MinSeq = math.MaxUint64, f.MaxSeq }},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t, vfs.NewMem(), smallOptions(), 1)
			for i := range 50 {
				h.put(i, 20)
			}
			h.flush()
			h.close()
			m, err := manifest.Read(h.fs, testDir)
			must(t, err)
			m.HighWater = math.MaxUint64
			m.Files = m.Files[:1]
			f := &m.Files[0]
			c.edit(f)
			if bytes.Compare(f.Smallest, f.Largest) > 0 {
				f.Largest = bytes.Repeat([]byte{0xff}, 12)
			}
			must(t, manifest.Write(h.fs, testDir, m))
			o := h.opts
			o.FS, o.Dir = h.fs, testDir
			tree, err := Open(o, m)
			if err == nil {
				// The background work of the engine would do this next.
				if job := tree.PickCompaction(); job != nil {
					job.Abort()
				}
				must(t, tree.Close())
			}
			var damage *corrupt.Error
			if !errors.As(err, &damage) || damage.File != filename.Manifest {
				t.Fatalf("got %v, want damage of the manifest", err)
			}
		})
	}
}
