package lsm

import (
	"bytes"
	"errors"
	"testing"

	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestBoundsAreKeys opens a manifest whose sums are right and whose bounds are
// no keys: what plans merges takes table ids from them.
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
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, vfs.NewMem(), smallOptions(), 1)
			for i := range 50 {
				w.put(i, 20)
			}
			w.flush()
			w.close()
			m, err := manifest.Read(w.fs, testDir)
			must(t, err)
			m.Files = m.Files[:1]
			f := &m.Files[0]
			c.edit(f)
			if bytes.Compare(f.Smallest, f.Largest) > 0 {
				f.Largest = bytes.Repeat([]byte{0xff}, 12)
			}
			must(t, manifest.Write(w.fs, testDir, m))
			o := w.opts
			o.FS, o.Dir = w.fs, testDir
			tree, err := Open(o, m)
			if err == nil {
				// What a background merge would do next.
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
