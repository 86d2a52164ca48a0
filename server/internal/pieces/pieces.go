// Package pieces gathers an answer of many entities in pieces of memory, which
// later answers use again: one growing buffer of a page costs a third of a scan in
// copies and garbage.
package pieces

import (
	"slices"
	"sync"
)

const (
	// Bytes is how much makes a piece full.
	Bytes = 64 << 10
	// Room is what a piece has room for, with the entity that fills it.
	Room = Bytes + 16<<10
)

var free = sync.Pool{New: func() any { return new([Room]byte) }}

// New returns an empty piece.
func New() []byte { return free.Get().(*[Room]byte)[:0] }

// List is the full pieces of an answer, in order.
type List struct {
	full  [][]byte
	bytes int
}

// Put takes a full piece and returns an empty one.
func (l *List) Put(b []byte) []byte {
	l.full = append(l.full, b)
	l.bytes += len(b)
	return New()
}

// Len returns how many bytes were put.
func (l *List) Len() int { return l.bytes }

// All returns the pieces.
func (l *List) All() [][]byte { return l.full }

// Join returns a copy of all pieces with last behind them.
func (l *List) Join(last []byte) []byte {
	return slices.Concat(append(slices.Clip(l.full), last)...)
}

// Drop lets go of piece i.
func (l *List) Drop(i int) {
	if b := l.full[i]; cap(b) == Room {
		free.Put((*[Room]byte)(b[:Room]))
	}
	l.full[i] = nil
}

// Release lets go of all pieces.
func (l *List) Release() {
	for i := range l.full {
		l.Drop(i)
	}
	l.full, l.bytes = l.full[:0], 0
}
