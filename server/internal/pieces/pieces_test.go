package pieces

import (
	"bytes"
	"testing"
)

// TestList puts pieces of all sizes, joins them and lets go of them.
func TestList(t *testing.T) {
	var l List
	var want []byte
	piece := New()
	for i, n := range []int{Bytes, 0, Room, 3 * Room, 1} {
		piece = append(piece, bytes.Repeat([]byte{byte(i)}, n)...)
		want = append(want, piece...)
		if piece = l.Put(piece); len(piece) != 0 || cap(piece) != Room {
			t.Fatalf("an empty piece has %d bytes and room for %d", len(piece), cap(piece))
		}
	}
	if l.Len() != len(want) || !bytes.Equal(bytes.Join(l.All(), nil), want) {
		t.Errorf("%d bytes are put, or others; want %d", l.Len(), len(want))
	}
	for range 2 {
		if got := l.Join([]byte("last")); !bytes.Equal(got, append(want[:len(want):len(want)], "last"...)) {
			t.Errorf("%d bytes are joined, or others; want %d", len(got), len(want)+len("last"))
		}
	}
	l.Drop(0)
	l.Release()
	if l.Len() != 0 || len(l.All()) != 0 || len(l.Join(nil)) != 0 {
		t.Errorf("%d bytes are left in %d pieces", l.Len(), len(l.All()))
	}
}
