package space

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// gateTest is a Gate of a disk of 8 MiB, where the flush of the log takes 256 KiB.
type gateTest struct {
	*Gate
	disk  *vfs.Mem
	log   bytes.Buffer
	woken int
}

func newGate(t *testing.T) *gateTest {
	t.Helper()
	g := &gateTest{disk: disk(t, 8<<20)}
	g.Gate = &Gate{
		Reserve:      New(g.disk, dir, MaxBytes, 8<<20),
		SegmentBytes: 256 << 10,
		Needs:        func() (flush, compaction int64) { return 256 << 10, 0 },
		Wake:         func() { g.woken++ },
		Logger:       slog.New(slog.NewTextHandler(&g.log, nil)),
	}
	check(t, g.Reserve.Refill())
	return g
}

// TestGate fills a disk and empties it.
func TestGate(t *testing.T) {
	g := newGate(t)
	for _, use := range []Use{Write, Delete, Drop} {
		if upto, err := g.Admit(use, 10, 20, 4096); upto != 4096 || err != nil {
			t.Errorf("use %d of an empty disk: admitted up to %d, %v", use, upto, err)
		}
	}
	fill(t, g.disk, "other", 260<<10)
	if upto, err := g.Admit(Write, 10, 20, 4096); upto != 4096 || err != nil {
		t.Errorf("a write with space for it and its flush: admitted up to %d, %v", upto, err)
	}
	for range 2 {
		if upto, err := g.Admit(Write, 10, 20, 8192); upto != 10 || !errors.Is(err, store.ErrNoSpace) {
			t.Errorf("a write without space for its flush: admitted up to %d, %v", upto, err)
		}
	}
	if n := strings.Count(g.log.String(), "the disk is full"); !g.Full() || g.Freed() != 1 || g.woken != 1 || n != 1 {
		t.Errorf("full %t, freed %d, woken %d times, %d lines of log; want 1 of each", g.Full(), g.Freed(), g.woken, n)
	}
	for _, use := range []Use{Delete, Drop} {
		if upto, err := g.Admit(use, 10, 20, 8192); upto != 20 || err != nil {
			t.Errorf("use %d of a full disk: admitted up to %d, %v", use, upto, err)
		}
	}
	if _, err := g.Admit(Delete, 0, 4<<20, 4<<20); !errors.Is(err, store.ErrNoSpace) {
		t.Errorf("a delete beyond the reserve: %v", err)
	}
	g.Committed(Write)
	g.Committed(Delete)
	if g.Freed() != 2 || g.woken != 2 {
		t.Errorf("after a write and a delete: freed %d, woken %d times", g.Freed(), g.woken)
	}
	g.Repeat()
	g.Repeat()
	if g.Freed() != 3 {
		t.Errorf("after two calls of Repeat: freed %d", g.Freed())
	}
	if g.Accept() || !g.Full() {
		t.Error("Accept without space")
	}
	check(t, g.disk.Remove("other"))
	if !g.Accept() || g.Full() || !strings.Contains(g.log.String(), "writes are accepted") {
		t.Errorf("Accept with space: full %t, log %s", g.Full(), &g.log)
	}
	if g.Committed(Delete); g.Freed() != 3 {
		t.Error("a delete counts after the disk was full")
	}
}

// TestGateAfterLargeWrite refuses a write that no reclaim can make room for.
func TestGateAfterLargeWrite(t *testing.T) {
	g := newGate(t)
	fill(t, g.disk, "other", 2<<20)
	// A record of more than a segment has one of its own, whose flush takes as much.
	if _, err := g.Admit(Write, 0, 1280<<10, 1280<<10); !errors.Is(err, store.ErrNoSpace) || !g.Full() {
		t.Fatalf("a record of 1.25 MiB with 2 MiB of space: %v, full %t", err, g.Full())
	}
	if g.NoteReclaimed(false) || g.Accept() {
		t.Error("accepted before a reclaim")
	}
	if !g.NoteReclaimed(true) || !g.Accept() || g.Full() {
		t.Error("a refused large write keeps usual ones from being accepted")
	}
	if g.NoteReclaimed(true) {
		t.Error("the write counts as a large one again")
	}
}
