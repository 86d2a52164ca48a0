package crash

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// history applies a script to a file: a letter writes a sector of that letter at the
// next offset, < sets the offset to 0, + grows the file by a sector, and ! syncs. It
// also returns the image that readers see.
func history(script string) (f File, cache Image) {
	off, sector := int64(0), int64(SectorBytes)
	for i, c := range script {
		seq := uint64(i + 1)
		switch c {
		case '<':
			off = 0
		case '+':
			cache.Grow(cache.Size + sector)
			f.Grow(seq, cache.Size)
		case '!':
			f.Sync(true, 1<<30)
		default:
			cache.Write([]byte(strings.Repeat(string(c), SectorBytes)), off)
			f.Write(seq, &cache, off, off+sector)
			off += sector
		}
	}
	return f, cache
}

// letters returns the first byte of each sector, with a dot for 0.
func letters(im Image) string {
	b := make([]byte, im.Size)
	im.Read(b, 0)
	var s []byte
	for at := 0; at < len(b); at += SectorBytes {
		s = append(s, b[at])
	}
	return strings.ReplaceAll(string(s), "\x00", ".")
}

func zeros(im *Image, at int64) { im.Put(make([]byte, SectorBytes), at) }

func TestPicks(t *testing.T) {
	for _, c := range []struct {
		script string
		lost   int    // syncs that the device dropped
		want   string // the distinct states
	}{
		{"", 0, "-"},
		{"A!", 0, "A"},
		{"A", 0, "-, ., A"},
		{"A!<B", 0, "A, B"},
		{"A!<B<C", 0, "A, B, C"},
		{"AB!<CD", 0, "AB, AD, CB, CD"},
		{"A!B", 0, "A, A., AB"},
		{"A!+", 0, "A, A."},
		{"A!+<B", 0, "A, A., B, B."},
		{"A!<B!", 1, "A, B"},
		{"A!<B!", 2, "-, ., A, B"},
	} {
		t.Run(c.script, func(t *testing.T) {
			f, cache := history(c.script)
			var p Plan
			if !p.AddFile(&f, c.lost) {
				if got := letters(f.Durable); c.want != got && c.want != "-" {
					t.Errorf("nothing is pending and the file is %q; want %s", got, c.want)
				}
				return
			}
			n, states := uint64(0), []string{}
			for pick := range p.Picks() {
				n++
				state := letters(p.Contents(0, pick, zeros))
				if state == "" {
					state = "-"
				}
				states = append(states, state)
			}
			slices.Sort(states)
			if got := strings.Join(slices.Compact(states), ", "); got != c.want || n != p.Count() {
				t.Errorf("%d picks give %s; want %d and %s", n, got, p.Count(), c.want)
			}
			if got, want := letters(p.Contents(0, p.Everything(), zeros)), letters(cache); got != want {
				t.Errorf("everything kept gives %q; readers see %q", got, want)
			}
		})
	}
}

// TestDraws checks the states that each kind of draw reaches.
func TestDraws(t *testing.T) {
	f, _ := history("AB!<CD")
	var p Plan
	if !p.AddFile(&f, 0) || !p.AddNames([]uint64{7, 8}) {
		t.Fatal("nothing is pending")
	}
	if p.Pending() != 4 {
		t.Fatalf("%d are pending, want two sectors and two names", p.Pending())
	}
	state := func(pick []int) string {
		return letters(p.Contents(0, pick, zeros)) + fmt.Sprint(p.Names(1, pick))
	}
	all := "AB[] AB[0] AB[1] AB[0 1] AD[] AD[0] AD[1] AD[0 1] CB[] CB[0] CB[1] CB[0 1] CD[] CD[0] CD[1] CD[0 1]"
	for _, c := range []struct {
		name string
		draw func(d *Draw) []int
		want string
	}{
		{"prefix of 1", func(d *Draw) []int { return d.Prefix(&p, 1) }, "CB[]"},
		{"prefix of 3", func(d *Draw) []int { return d.Prefix(&p, 3) }, "CD[0]"},
		{"prefix", func(d *Draw) []int { return d.Prefix(&p, 0) }, "AB[] CB[] CD[] CD[0] CD[0 1]"},
		{"names", func(d *Draw) []int { return d.Names(&p) }, "CD[] CD[0] CD[1] CD[0 1]"},
		{"subset", func(d *Draw) []int { return d.Subset(&p) }, all},
		{"sectors", func(d *Draw) []int { return d.Sectors(&p) }, all},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen := map[string]bool{}
			for seed := range uint64(500) {
				one, two := NewDraw(seed, 0), NewDraw(seed, 0)
				got := state(c.draw(&one))
				seen[got] = true
				if again := state(c.draw(&two)); again != got {
					t.Errorf("seed %d gives %s, and then %s", seed, got, again)
				}
			}
			want := strings.Count(c.want, "[")
			for s := range seen {
				if !strings.Contains(c.want, s) {
					t.Errorf("got %s, want one of %s", s, c.want)
				}
			}
			if len(seen) != want {
				t.Errorf("500 draws gave %v, want each of %s", seen, c.want)
			}
		})
	}
}

// TestPartialSync syncs sector by sector, and then drops the sync.
func TestPartialSync(t *testing.T) {
	f, _ := history("ABC")
	for i, want := range []string{"A", "AB", "ABC", "ABC"} {
		f.Sync(i == 0, 1)
		if got := letters(f.Durable); got != want {
			t.Errorf("after %d sectors: %q, want %q", i+1, got, want)
		}
	}
	if f.Pending() != 0 || f.Syncs() != 1 {
		t.Errorf("%d pending after %d syncs, want none after one", f.Pending(), f.Syncs())
	}
	var p Plan
	if !p.AddFile(&f, 1) {
		t.Fatal("nothing is pending after a dropped sync")
	}
	if got := letters(p.Contents(0, p.Nothing(), zeros)); got != "" {
		t.Errorf("without the sync the file is %q, want nothing", got)
	}
	c := f.Clone()
	f.Write(9, &f.Durable, 0, SectorBytes)
	f.Forget()
	if c.Pending() != 0 || f.Pending() != 0 || letters(c.Durable) != "ABC" {
		t.Errorf("a copy changed, or forgotten changes are pending")
	}
}
