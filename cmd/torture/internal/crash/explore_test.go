package crash

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/workload"
	"github.com/tablerock-db/tablerock/vfs"
)

func TestExplore(t *testing.T) {
	for _, p := range workload.Profiles() {
		t.Run(fmt.Sprintf("profile=%v", p), func(t *testing.T) {
			const seed = 1
			var c Counts
			if err := Explore(t.Context(), Options{Seed: seed, Profile: p, Steps: 4}, &c); err != nil {
				t.Fatal(err)
			}
			if c.Points.Load() == 0 || c.States.Load() < c.Points.Load() || c.Nested.Load() == 0 {
				t.Errorf("seed %d: checked %d points, %d states, %d nested", seed, c.Points.Load(), c.States.Load(), c.Nested.Load())
			}
		})
	}
}

// TestPointRepeats finds a violation and then repeats it with its seed and point.
func TestPointRepeats(t *testing.T) {
	o := Options{Seed: 2, Steps: 20, Depth: 1, Wrap: func(m *vfs.Mem) vfs.FS { return noSync{m} }}
	var first, second *Violation
	var c Counts
	if err := Explore(t.Context(), o, &c); !errors.As(err, &first) || first.Point == 0 {
		t.Fatalf("got %v, want a violation at a point", err)
	}
	o.Point = first.Point
	if err := Explore(t.Context(), o, &c); !errors.As(err, &second) || second.Point != first.Point || second.Path != first.Path {
		t.Errorf("got %v, want %v", second, first)
	}
}

// noSync is a disk that never syncs a log.
type noSync struct{ *vfs.Mem }

func (n noSync) Create(name string) (vfs.File, error) {
	f, err := n.Mem.Create(name)
	if err != nil || !strings.HasSuffix(name, ".wal") {
		return f, err
	}
	return noSyncFile{f}, nil
}

type noSyncFile struct{ vfs.File }

func (noSyncFile) Sync() error { return nil }
