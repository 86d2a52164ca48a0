// Package partlock has the locks of partitions.
package partlock

import (
	"math/bits"
	"sync"

	"github.com/tablerock-db/tablerock/engine/internal/spinlock"
)

// Locks has one lock for each partition. Partitions share them by hash. A goroutine that
// holds one of them takes no other, except by LockSet and LockAll, which take them in one
// order.
type Locks [1024]sync.Mutex

// Of returns the lock of the partition with the given hash.
func (l *Locks) Of(hash uint64) *sync.Mutex { return &l[hash%uint64(len(l))] }

// Set is a set of locks. The zero Set is empty.
type Set [len(Locks{}) / 64]uint64

// Add adds the lock of the partition with the given hash.
func (s *Set) Add(hash uint64) {
	i := hash % uint64(len(Locks{}))
	s[i/64] |= 1 << (i % 64)
}

// LockSet takes the locks in s, in ascending order. They are held for microseconds.
// +checklocksignore
func (l *Locks) LockSet(s *Set) {
	for at, word := range s {
		for ; word != 0; word &= word - 1 {
			spinlock.Lock(&l[at*64+bits.TrailingZeros64(word)])
		}
	}
}

// UnlockSet undoes LockSet.
// +checklocksignore
func (l *Locks) UnlockSet(s *Set) {
	for at, word := range s {
		for ; word != 0; word &= word - 1 {
			l[at*64+bits.TrailingZeros64(word)].Unlock()
		}
	}
}

// LockAll takes all locks.
// +checklocksignore
func (l *Locks) LockAll() {
	for i := range l {
		l[i].Lock()
	}
}

// UnlockAll undoes LockAll.
// +checklocksignore
func (l *Locks) UnlockAll() {
	for i := range l {
		l[i].Unlock()
	}
}
