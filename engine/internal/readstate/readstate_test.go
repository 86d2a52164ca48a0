package readstate

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tablerock-db/tablerock/engine/internal/commitlog"
	"github.com/tablerock-db/tablerock/internal/lsm"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/vfs"
)

func openTree(t *testing.T) *lsm.Tree {
	t.Helper()
	tree, err := lsm.Open(lsm.Options{FS: vfs.NewMem(), Dir: "db"}, &manifest.Manifest{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
	})
	return tree
}

// TestPinnedStateIsKept replaces the state while readers pin it, through few and many
// shards. No state may be freed while it is pinned, and all must be freed at the end.
func TestPinnedStateIsKept(t *testing.T) {
	const readers = 4
	replaced := 30_000
	if testing.Short() {
		replaced = 10_000
	}
	tree := openTree(t)
	for _, shards := range []uint64{1, readers} {
		var c Current
		c.Start(New(nil, tree.Version()))
		var ended, early atomic.Int64
		var wg sync.WaitGroup
		for r := range uint64(readers) {
			wg.Go(func() {
				for s := c.Pin(r % shards); s != nil; s = c.Pin(r % shards) {
					if s.freed.Load() {
						early.Add(1)
					}
					s.Unpin(r % shards)
				}
				ended.Add(1)
			})
		}
		states := []*State{c.Load()}
		for range replaced {
			c.Replace(func([]*commitlog.Segment) *State {
				s := New(nil, tree.Version())
				states = append(states, s)
				return s
			})
			c.Retire()
		}
		c.End()
		c.Retire()
		wg.Wait()
		if c.Load() != nil || ended.Load() != readers {
			t.Errorf("%d shards: there is a state after the end, or only %d of %d readers noticed the end", shards, ended.Load(), readers)
		}
		if n := early.Load(); n > 0 {
			t.Errorf("%d shards: a state was freed %d times while it was pinned", shards, n)
		}
		for i, s := range states {
			if !s.freed.Load() {
				t.Fatalf("%d shards: state %d of %d was never freed", shards, i, len(states))
			}
		}
	}
}

// TestLastUnpinFrees retires a pinned state. The last unpin must free it.
func TestLastUnpinFrees(t *testing.T) {
	tree := openTree(t)
	var c Current
	if c.Pin(1) != nil {
		t.Fatal("the zero Current has a state")
	}
	c.Start(New(nil, tree.Version()))
	for _, shard := range []uint64{3, 3, 3 + pinShards, 4} {
		if c.Pin(shard) == nil {
			t.Fatal("no state")
		}
	}
	s := c.Load()
	c.End()
	c.Retire()
	for i, shard := range []uint64{3, 3 + pinShards, 4, 3} {
		if s.freed.Load() {
			t.Fatalf("freed with %d pins left", 4-i)
		}
		s.Unpin(shard)
	}
	if !s.freed.Load() {
		t.Error("not freed by the last unpin")
	}
}

// TestReplaceFreesNothing replaces states that nothing pins. They are freed by Retire and not
// before, because a caller of Replace may hold the lock of the log.
func TestReplaceFreesNothing(t *testing.T) {
	tree := openTree(t)
	var c Current
	c.Start(New(nil, tree.Version()))
	var states []*State
	for range 3 {
		states = append(states, c.Load())
		c.Replace(func([]*commitlog.Segment) *State { return New(nil, tree.Version()) })
	}
	for i, s := range states {
		if s.freed.Load() {
			t.Errorf("Replace freed state %d", i)
		}
	}
	c.Retire()
	for i, s := range states {
		if !s.freed.Load() {
			t.Errorf("Retire did not free state %d", i)
		}
	}
	c.End()
	c.Retire()
}
