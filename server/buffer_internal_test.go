package server

import (
	"bytes"
	"testing"
)

// TestChunkList adds chunks of several sizes, joins them and frees them.
func TestChunkList(t *testing.T) {
	var l chunkList
	var want []byte
	chunk := newChunk()
	for i, n := range []int{chunkBytes, 0, chunkCap, 3 * chunkCap, 1} {
		chunk = append(chunk, bytes.Repeat([]byte{byte(i)}, n)...)
		want = append(want, chunk...)
		if chunk = l.add(chunk); len(chunk) != 0 || cap(chunk) != chunkCap {
			t.Fatalf("a new chunk has %d bytes and a capacity of %d, want 0 and %d", len(chunk), cap(chunk), chunkCap)
		}
	}
	if l.bytes != len(want) || !bytes.Equal(bytes.Join(l.full, nil), want) {
		t.Errorf("the list has %d bytes, or others than were added; want %d", l.bytes, len(want))
	}
	for range 2 {
		if got := l.join([]byte("last")); !bytes.Equal(got, append(want[:len(want):len(want)], "last"...)) {
			t.Errorf("join returned %d bytes, or others than were added; want %d", len(got), len(want)+len("last"))
		}
	}
	l.free(0)
	l.reset()
	if l.bytes != 0 || len(l.full) != 0 || len(l.join(nil)) != 0 {
		t.Errorf("after reset: %d bytes in %d chunks, want none", l.bytes, len(l.full))
	}
}
