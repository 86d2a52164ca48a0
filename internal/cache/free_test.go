package cache

import (
	"runtime"
	"testing"
	"weak"
)

// TestFreeEntryLimit checks that free entries keep no large values, because their
// memory is outside the budget.
func TestFreeEntryLimit(t *testing.T) {
	for _, admit := range []bool{false, true} {
		for _, c := range []struct {
			name  string
			extra int
			fail  bool
			kept  bool
		}{
			{"small", 1 << 10, false, true},
			{"large", 1 << 20, false, false},
			// A failed loader may have grown the value.
			{"failed", 1 << 10, true, false},
		} {
			s := New(0)
			if admit {
				s = New(500 << 10) // one shard
			}
			value := new([1]byte)
			first, loaded := s.Acquire(key(1), 100, admit)
			if loaded || first.Value() != nil {
				t.Fatal("the first block is cached or has a value")
			}
			first.Fill(value, c.extra)
			first.Release()
			s.Drop(key(1).DB, key(1).File)
			if c.fail {
				again, _ := s.Acquire(key(3), 100, admit)
				if again.Value() != any(value) {
					t.Fatal("the value is not reused")
				}
				again.Fail()
			}
			next, _ := s.Acquire(key(5), 100, admit)
			if got := next.Value() != nil; got != c.kept {
				t.Errorf("admit %t, %s value: kept %t, want %t", admit, c.name, got, c.kept)
			}
			next.Fail()
		}
	}
}

// TestHintKeepsNothing evicts blocks that are too large for a free entry. A Hint may refer to
// them for long, and must not keep their memory.
func TestHintKeepsNothing(t *testing.T) {
	for _, c := range []struct {
		name        string
		size, extra int
	}{
		{"value", 100, freeMaxBytes + 1},
		{"block on the heap", 300 << 10, 0},
	} {
		s := New(500 << 10) // one shard
		var hint Hint
		value, block := func() (weak.Pointer[[64]byte], weak.Pointer[byte]) {
			v := new([64]byte)
			h, _ := s.Acquire(key(1), c.size, true)
			h.Fill(v, c.extra)
			h.Release()
			h, ok := s.GetAt(key(1), &hint)
			if !ok {
				t.Fatalf("%s: the block is not in the cache", c.name)
			}
			defer h.Release()
			if c.extra > 0 {
				return weak.Make(v), weak.Pointer[byte]{}
			}
			if h.e.chunk != 0 {
				t.Fatalf("%s: it is in a region", c.name)
			}
			return weak.Make(v), weak.Make(&h.Bytes()[0])
		}()
		s.Drop(key(1).DB, key(1).File)
		runtime.GC()
		if value.Value() != nil {
			t.Errorf("%s: the hint keeps the value", c.name)
		}
		if block.Value() != nil {
			t.Errorf("%s: the hint keeps the block", c.name)
		}
		if _, ok := s.GetAt(key(1), &hint); ok {
			t.Errorf("%s: the block is still in the cache", c.name)
		}
	}
}

// TestFreeKinds evicts blocks of one kind. A loader of another kind must not get their values,
// because it could not use them again.
func TestFreeKinds(t *testing.T) {
	const size, heads, chunks = 1000, 0, 4 // as in package sstable
	c := New(0)
	for i := range freeBlocks {
		h, _ := c.Acquire(Key{Offset: uint64(i), Kind: heads}, size, false)
		h.Fill("a head", 0)
		h.Release()
	}
	chunk, _ := c.Acquire(Key{Kind: chunks}, size, false)
	if v := chunk.Value(); v != nil {
		t.Errorf("the loader of a chunk gets %q", v)
	}
	head, _ := c.Acquire(Key{Offset: 100, Kind: heads}, size, false)
	if v := head.Value(); v != "a head" {
		t.Errorf("the loader of a head gets %v", v)
	}
	for _, h := range []Handle{chunk, head} {
		h.Fill(nil, 0)
		h.Release()
	}
}
