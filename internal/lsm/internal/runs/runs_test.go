package runs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/manifest"
)

// sst returns an sstable of a file with keys from a partition to another one.
func sst(f *File, tier uint32, run uint64, from, to string) *SST {
	key := func(partition string) []byte {
		return codec.AppendTrailer(codec.AppendKey(nil, 16, partition, ""), 1, codec.KindPut)
	}
	return NewSST(f, manifest.File{Number: f.Number, Tier: tier, Run: run, Smallest: key(from), Largest: key(to)}, f.Size)
}

func file(n uint64) *File { return &File{Number: n, Size: 10} }

// TestNew arranges sstables in any order, and lists that no database has.
func TestNew(t *testing.T) {
	const bottom = manifest.BottomTier
	for _, c := range []struct {
		name string
		ssts []*SST
		want string // the files of each run, or an error
	}{
		{"nothing", nil, ""},
		{"newest first, by key", []*SST{
			sst(file(1), bottom, 0, "a", "b"), sst(file(2), 1, 5, "a", "b"), sst(file(3), 0, 7, "c", "d"), sst(file(4), 0, 7, "a", "b"), sst(file(5), 0, 8, "a", "d"),
		}, "5; 4 3; 2; 1"},
		{"overlap in a run", []*SST{sst(file(1), 0, 7, "a", "c"), sst(file(2), 0, 7, "c", "d")}, "files 1 and 2 overlap in run 7 of tier 0"},
		{"two runs at the bottom", []*SST{sst(file(1), bottom, 0, "a", "b"), sst(file(2), bottom, 1, "c", "d")}, "two runs 1 and 0 at the bottom"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := New(c.ssts)
			got := fmt.Sprint(err)
			if err == nil {
				var lines []string
				for _, r := range l {
					var numbers []string
					for _, s := range r.SSTs {
						numbers = append(numbers, fmt.Sprint(s.Number))
					}
					lines = append(lines, strings.Join(numbers, " "))
				}
				got = strings.Join(lines, "; ")
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestOldestRuns takes as many of the oldest runs as there is space for a file of each, and finds them again by the newest of
// them, also when that is gone.
func TestOldestRuns(t *testing.T) {
	l, err := New([]*SST{
		sst(&File{Number: 1, Size: 100}, manifest.BottomTier, 0, "a", "b"), sst(&File{Number: 2, Size: 20}, 1, 9, "a", "b"),
		sst(&File{Number: 3, Size: 5}, 1, 9, "c", "d"), sst(file(4), 0, 7, "a", "b"), sst(file(5), 0, 8, "a", "b"),
	})
	if err != nil {
		t.Fatal(err)
	}
	for space, want := range map[int64]int{0: 2, 129: 2, 130: 3, 139: 3, 140: 4} {
		if got := l.OldestWithin(space); len(got) != want || got[len(got)-1] != l.Bottom() {
			t.Errorf("with space for %d bytes, %d runs, want %d", space, len(got), want)
		}
	}
	for _, c := range []struct {
		tier   uint32
		number uint64
		want   int
	}{{0, 8, 4}, {0, 7, 3}, {0, 6, 2}, {1, 9, 2}, {1, 8, 1}, {manifest.BottomTier, 0, 1}} {
		if got := l.FromRun(c.tier, c.number); len(got) != c.want {
			t.Errorf("from run %d of tier %d: %d runs, want %d", c.number, c.tier, len(got), c.want)
		}
	}
}

// TestReferences replaces a list by one that shares a file with it.
func TestReferences(t *testing.T) {
	gone, kept, added := file(1), file(2), file(3)
	// Two ranges of gone are listed.
	old, err := New([]*SST{sst(gone, 0, 2, "a", "b"), sst(gone, 0, 2, "c", "d"), sst(kept, 0, 1, "a", "d")})
	if err != nil {
		t.Fatal(err)
	}
	next, err := New([]*SST{sst(kept, 0, 1, "a", "d"), sst(added, 1, 3, "a", "d")})
	if err != nil {
		t.Fatal(err)
	}
	if n := old.FileBytes(); n != 20 {
		t.Errorf("the files have %d bytes, want 20: each counts once", n)
	}
	old.Ref()
	next.Ref()
	old.Replaced(next)
	if !gone.Obsolete() || kept.Obsolete() || added.Obsolete() {
		t.Errorf("obsolete: %t, %t, %t, want only the file that the next list does not have", gone.Obsolete(), kept.Obsolete(), added.Obsolete())
	}
	if unused := old.Unref(); len(unused) != 1 || unused[0] != gone {
		t.Errorf("unused after the old list: %v, want file 1 once", unused)
	}
	if unused := next.Unref(); len(unused) != 2 {
		t.Errorf("%d files are unused after both lists, want 2", len(unused))
	}
}

// TestLiveBytes has runs of which some overlap, and new keys above older ones.
func TestLiveBytes(t *testing.T) {
	const bottom = manifest.BottomTier
	run := func(n uint64, tier uint32, bytes int64, newPercent uint32, from, to string) *SST {
		s := sst(&File{Number: n, Size: bytes}, tier, n, from, to)
		s.Meta.NewKeys = newPercent * manifest.AllNewKeys / 100
		return s
	}
	for _, c := range []struct {
		name string
		ssts []*SST
		want int64
	}{
		{"nothing", nil, 0},
		{"overwritten", []*SST{run(1, bottom, 100, 0, "a", "z"), run(2, 0, 60, 0, "b", "c")}, 100},
		{"overwritten by more", []*SST{run(1, bottom, 60, 0, "b", "c"), run(2, 0, 100, 0, "a", "z")}, 100},
		{"apart", []*SST{run(1, bottom, 100, 0, "a", "c"), run(2, 0, 60, 0, "d", "e")}, 160},
		{"one between two", []*SST{run(1, bottom, 100, 0, "a", "c"), run(2, 1, 60, 0, "e", "g"), run(3, 0, 50, 0, "c", "e")}, 160},
		{"new keys", []*SST{run(1, bottom, 100, 0, "a", "z"), run(2, 0, 60, 100, "b", "c")}, 160},
		{"a quarter of them old, which count twice", []*SST{run(1, bottom, 100, 0, "a", "z"), run(2, 0, 60, 75, "b", "c")}, 130},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := New(c.ssts)
			if err != nil {
				t.Fatal(err)
			}
			if got := l.LiveBytes(); got != c.want {
				t.Errorf("%d live bytes, want %d", got, c.want)
			}
		})
	}
}
