package vfs_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/internal/crash"
)

// history is a random sequence of operations on a few files. A shadow of each file
// records its states since the last sync, independently of the file system.
type history struct {
	t     *testing.T
	rng   *rand.Rand
	m     *vfs.Mem
	files []*shadow
}

type shadow struct {
	name   string
	f      vfs.File
	states [][]byte // the first is durable, the last is current
	sizes  map[int]bool
}

func newHistory(t *testing.T, seed uint64) *history {
	h := &history{t: t, rng: rand.New(rand.NewPCG(seed, 0)), m: vfs.NewCrashMem()}
	for i := range 3 {
		s := &shadow{name: fmt.Sprintf("f%d", i), states: [][]byte{nil}, sizes: map[int]bool{0: true}}
		f, err := h.m.Create(s.name)
		h.ok(err)
		s.f = f
		h.files = append(h.files, s)
	}
	h.ok(h.m.SyncDir("/"))
	return h
}

func (h *history) ok(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// step does one random operation; span limits the bytes of a write.
func (h *history) step(span int) {
	s := h.files[h.rng.IntN(len(h.files))]
	now := slices.Clone(s.states[len(s.states)-1])
	switch h.rng.IntN(8) {
	default:
		off := h.rng.IntN(len(now) + span/4)
		p := bytes.Repeat([]byte{byte('A' + h.rng.IntN(26))}, 1+h.rng.IntN(span))
		_, err := s.f.WriteAt(p, int64(off))
		h.ok(err)
		s.sizes[off+len(p)] = true
		if n := off + len(p) - len(now); n > 0 {
			now = append(now, make([]byte, n)...)
		}
		copy(now[off:], p)
	case 0:
		h.ok(s.f.Sync())
		s.states, s.sizes = [][]byte{now}, map[int]bool{len(now): true}
		return
	case 1, 2:
		end := h.rng.IntN(len(now) + span)
		h.ok(s.f.Preallocate(0, int64(end)))
		now = append(now, make([]byte, max(end-len(now), 0))...)
	}
	s.sizes[len(now)] = true
	s.states = append(s.states, now)
}

// allows returns an error if got is not a possible state of the file after a crash.
func (s *shadow) allows(got []byte) error {
	if !s.sizes[len(got)] {
		return fmt.Errorf("%s has %d bytes, a size that no operation set", s.name, len(got))
	}
	always := len(s.states[0])
	for _, state := range s.states {
		always = min(always, len(state))
	}
	for at := 0; at < len(got); at += 512 {
		sector := got[at:min(at+512, len(got))]
		known := slices.ContainsFunc(s.states, func(state []byte) bool {
			was := make([]byte, 512)
			if at < len(state) {
				copy(was, state[at:])
			}
			return bytes.Equal(sector, was[:len(sector)])
		})
		if !known && at < always {
			return fmt.Errorf("%s: no write left the sector at %d like this", s.name, at)
		}
	}
	return nil
}

func TestCrashModel(t *testing.T) {
	race.SkipOneGoroutine(t)
	for seed := range uint64(300) {
		h := newHistory(t, seed)
		for range 25 {
			h.step(3000)
		}
		for _, mode := range vfs.CrashModes {
			for k := range uint64(3) {
				c := vfs.CrashOptions{Mode: mode, Seed: k}
				m := h.m.Crash(c)
				for _, s := range h.files {
					got, err := vfs.ReadFile(m, s.name, 1<<20)
					h.ok(err)
					if err := s.allows(got); err != nil {
						t.Fatalf("seed %d, %+v: %v", seed, c, err)
					}
					if mode == "min" && !bytes.Equal(got, s.states[0]) {
						t.Fatalf("seed %d: %s differs from its last synced state", seed, s.name)
					}
					if mode == "max" && !bytes.Equal(got, s.states[len(s.states)-1]) {
						t.Fatalf("seed %d: %s lost changes in mode max", seed, s.name)
					}
				}
			}
		}
	}
}

// TestCrashModesAndStates checks that CrashStates yields the disks of all random modes.
func TestCrashModesAndStates(t *testing.T) {
	race.SkipOneGoroutine(t)
	checked := 0
	for seed := range uint64(60) {
		h := newHistory(t, seed)
		for range 4 {
			h.step(1200)
		}
		h.ok(h.m.Remove("f1"))
		h.ok(h.m.Rename("f2", "f3"))
		if h.m.CrashStateCount() > 1<<10 {
			continue
		}
		states := map[string]bool{}
		for m := range h.m.CrashStates(1 << 10) {
			states[dump(t, m)] = true
		}
		for _, mode := range vfs.CrashModes {
			for k := range uint64(8) {
				c := vfs.CrashChoice{CrashOptions: vfs.CrashOptions{Mode: mode, Seed: k}, Fill: crash.FillZeros}
				if !states[dump(t, h.m.CrashChoice(c))] {
					t.Fatalf("seed %d: %+v gives a disk that CrashStates does not yield\n%s", seed, c, show(t, h.m.CrashChoice(c)))
				}
				checked++
			}
		}
	}
	if checked < 500 {
		t.Errorf("only %d disks were small enough to check", checked)
	}
}

func dump(t *testing.T, m vfs.FS) string {
	t.Helper()
	text, err := vfs.Dump(m, "/")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// fileWith returns a Mem with a durable file a of zeros.
func fileWith(t *testing.T, sectors int) (*vfs.Mem, vfs.File) {
	t.Helper()
	m := vfs.NewCrashMem()
	f, err := m.Create("a")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Preallocate(0, int64(sectors)*512); err != nil {
		t.Fatal(err)
	}
	syncAll(t, m, f)
	return m, f
}

func syncAll(t *testing.T, m *vfs.Mem, f vfs.File) {
	t.Helper()
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := m.SyncDir("/"); err != nil {
		t.Fatal(err)
	}
}

func TestCrashStatesCount(t *testing.T) {
	for n := range 11 {
		m, f := fileWith(t, n)
		if _, err := f.WriteAt(bytes.Repeat([]byte("x"), n*512), 0); err != nil {
			t.Fatal(err)
		}
		want := 1 << n
		if got := m.CrashStateCount(); got != uint64(want) {
			t.Errorf("%d sectors: %d ways, want %d", n, got, want)
		}
		distinct, disks := map[string]bool{}, 0
		for state := range m.CrashStates(1 << 10) {
			distinct[dump(t, state)] = true
			disks++
		}
		if disks != want || len(distinct) != want {
			t.Errorf("%d sectors: %d disks, %d distinct, want %d", n, disks, len(distinct), want)
		}
		if got := m.Pending(); got != n {
			t.Errorf("%d sectors: %d pending", n, got)
		}
	}
}

func TestCrashStatesSample(t *testing.T) {
	m, f := fileWith(t, 20)
	if _, err := f.WriteAt(bytes.Repeat([]byte("x"), 20*512), 0); err != nil {
		t.Fatal(err)
	}
	var all []string
	for state := range m.CrashStates(100) {
		all = append(all, dump(t, state))
	}
	if len(all) != 100 {
		t.Fatalf("%d disks, want 100", len(all))
	}
	if all[0] != dump(t, m.Crash(vfs.CrashOptions{Mode: "min"})) || all[1] != dump(t, m.Crash(vfs.CrashOptions{Mode: "max"})) {
		t.Error("the sample does not begin with all changes lost and all kept")
	}
	slices.Sort(all)
	if n := len(slices.Compact(all)); n < 60 {
		t.Errorf("only %d of 100 disks differ", n)
	}
}

func TestCrashStatesIgnoresLaterChanges(t *testing.T) {
	m, f := fileWith(t, 4)
	if _, err := f.WriteAt(bytes.Repeat([]byte("x"), 4*512), 0); err != nil {
		t.Fatal(err)
	}
	states := m.CrashStates(16)
	var first, second []string
	for s := range states {
		first = append(first, dump(t, s))
		if _, err := f.WriteAt([]byte("later"), 0); err != nil {
			t.Fatal(err)
		}
	}
	for s := range states {
		second = append(second, dump(t, s))
	}
	if len(first) != 16 || !slices.Equal(first, second) {
		t.Errorf("got %d then %d disks, or different ones; want 16 twice", len(first), len(second))
	}
}

func TestCrashDeterministic(t *testing.T) {
	race.SkipOneGoroutine(t)
	for _, mode := range append(slices.Clone(vfs.CrashModes), "lying") {
		distinct := map[string]bool{}
		for seed := range uint64(40) {
			c := vfs.CrashOptions{Mode: mode, Seed: seed}
			one, two := dump(t, smallDB(t).Crash(c)), dump(t, smallDB(t).Crash(c))
			if one != two {
				t.Fatalf("%s seed %d: two runs differ:\n%s\n%s", mode, seed, one, two)
			}
			distinct[one] = true
		}
		want := map[string]int{"min": 1, "max": 1, "dirs": 2}[mode]
		if want == 0 {
			want = 10
		}
		if len(distinct) < want || want <= 2 && len(distinct) > want {
			t.Errorf("%s: %d distinct disks of 40, want %d", mode, len(distinct), want)
		}
	}
}

func TestCopiesAreIndependent(t *testing.T) {
	m := smallDB(t)
	before := dump(t, m)
	copies := []*vfs.Mem{m.Clone(), m.Crash(vfs.CrashOptions{Mode: "max"}), m.Crash(vfs.CrashOptions{Mode: "min"})}
	dumps := make([]string, len(copies))
	var wg sync.WaitGroup
	for i, c := range copies {
		dumps[i] = dump(t, c)
		wg.Add(1)
		go func() {
			defer wg.Done()
			f, err := c.OpenReadWrite("000000.sst")
			if err != nil {
				t.Error(err)
				return
			}
			for off := range int64(80) {
				if _, err := f.WriteAt([]byte{byte(i)}, off*512); err != nil {
					t.Error(err)
				}
			}
			if err := c.Remove("MANIFEST"); err != nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	if after := dump(t, m); after != before {
		t.Errorf("changing copies changed the original:\n%s\n%s", before, after)
	}
	for i, c := range copies {
		if dump(t, c) == dumps[i] {
			t.Errorf("copy %d did not change", i)
		}
	}
}

// TestCloneKeepsUnsynced compares a clone, the result of a killed process, with the
// original.
func TestCloneKeepsUnsynced(t *testing.T) {
	m := smallDB(t)
	c := m.Clone()
	if got, want := dump(t, c), dump(t, m); got != want {
		t.Errorf("clone is\n%swant\n%s", got, want)
	}
	if got, want := c.CrashStateCount(), m.CrashStateCount(); got != want {
		t.Errorf("clone has %d crash states, want %d", got, want)
	}
	min := vfs.CrashOptions{Mode: "min"}
	if got, want := dump(t, c.Crash(min)), dump(t, m.Crash(min)); got != want {
		t.Errorf("power cut of the clone leaves\n%swant\n%s", got, want)
	}
	after := c.Crash(vfs.CrashOptions{Mode: "sector"})
	if n := after.CrashStateCount(); n != 1 {
		t.Errorf("%d states after a second power cut at once, want 1", n)
	}
	if c.Used() != m.Used() {
		t.Errorf("clone uses %d bytes, want %d", c.Used(), m.Used())
	}
}

// TestCrashLying checks that all kinds of lost syncs occur, and only for the selected
// file.
func TestCrashLying(t *testing.T) {
	m := vfs.NewCrashMem()
	for _, name := range []string{"a", "b"} {
		f, err := m.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range int64(5) {
			if _, err := f.WriteAt(bytes.Repeat([]byte{byte('1' + i)}, 1024), i*1024); err != nil {
				t.Fatal(err)
			}
			syncAll(t, m, f)
		}
	}
	seen := map[string]bool{}
	for seed := range uint64(600) {
		state := m.CrashChoice(vfs.CrashChoice{
			CrashOptions: vfs.CrashOptions{Mode: "lying", Seed: seed, File: "a"}, Fill: crash.FillZeros,
		})
		b, err := vfs.ReadFile(state, "b", 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if want := " 1*1024 2*1024 3*1024 4*1024 5*1024"; runs(b) != want {
			t.Fatalf("seed %d: b is%s, want%s", seed, runs(b), want)
		}
		a, err := vfs.ReadFile(state, "a", 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		seen[runs(a)] = true
	}
	for _, want := range []string{
		" 1*1024",                                  // four syncs were lost
		" 1*1024 2*1024",                           // three
		" 1*1024 2*1024 3*1024",                    // two
		" 1*1024 2*1024 3*1024 4*1024",             // one
		" 1*1024 2*1024 3*1024 4*1024 5*512 0*512", // one sector of the last
		" 1*1024 0*512 2*512 3*1024 4*1024 5*1024", // one of the second
	} {
		if !seen[want] {
			t.Errorf("no disk has%s", want)
		}
	}
	if seen[" nothing"] {
		t.Error("more syncs were lost than are recorded")
	}
}

// TestCrashDataBeyondSize grows a file whose data survived a crash without its size: the
// data must not reappear.
func TestCrashDataBeyondSize(t *testing.T) {
	for _, sectors := range []int64{1, 20} {
		m, f := fileWith(t, 0)
		if _, err := f.WriteAt(bytes.Repeat([]byte("x"), int(sectors)*512), 0); err != nil {
			t.Fatal(err)
		}
		for state := range m.CrashStates(64) {
			g, err := state.OpenReadWrite("a")
			if err != nil {
				t.Fatal(err)
			}
			size, err := g.Size()
			if err != nil {
				t.Fatal(err)
			}
			if err := g.Preallocate(size, sectors*512); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, sectors*512)
			if _, err := g.ReadAt(got, size); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, make([]byte, len(got))) {
				t.Fatalf("%d sectors: after growth from %d bytes, lost data reappears", sectors, size)
			}
		}
	}
}

func TestCrashNeedsTracking(t *testing.T) {
	for name, call := range map[string]func(m *vfs.Mem){
		"Crash":       func(m *vfs.Mem) { m.Crash(vfs.CrashOptions{Mode: "min"}) },
		"CrashStates": func(m *vfs.Mem) { m.CrashStates(1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s of a plain Mem: no panic", name)
				}
			}()
			call(vfs.NewMem())
		}()
	}
}
