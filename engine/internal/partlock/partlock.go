// Package partlock has the locks of partitions.
package partlock

import (
	"math/bits"
	"sync"

	"github.com/tablerock-db/tablerock/engine/internal/spinlock"
)

// Locks has one lock for each partition. Partitions share them by hash. A goroutine that
// holds one of them waits for no other, except in LockSet and LockAll, which take them in
// ascending order then.
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

// next returns the index of the first lock in s from i on, and -1 if there is none.
func (s *Set) next(i int) int {
	for at := i / 64; at < len(s); at++ {
		word := s[at]
		if at == i/64 {
			word = word >> (i % 64) << (i % 64)
		}
		if word != 0 {
			return at*64 + bits.TrailingZeros64(word)
		}
	}
	return -1
}

// attempts is how often LockSet waits for one lock before it keeps locks while it waits.
const attempts = 16

// LockSet takes the locks in s. Another goroutine may hold one of them while it reads files.
// LockSet has none of the others while it waits for that one, the first 16 times, so that
// writes of other partitions need not wait too.
// +checklocksignore
func (l *Locks) LockSet(s *Set) {
	held := -1
	for range attempts {
		busy := l.tryLockSet(s, held)
		if busy < 0 {
			return
		}
		spinlock.Lock(&l[busy])
		held = busy
	}
	l[held].Unlock()
	for i := s.next(0); i >= 0; i = s.next(i + 1) {
		spinlock.Lock(&l[i])
	}
}

// tryLockSet takes the locks in s, of which the caller has the lock held, -1 for none. If
// another goroutine has one of them, tryLockSet returns its index, and no lock is taken.
// +checklocksignore
func (l *Locks) tryLockSet(s *Set, held int) (busy int) {
	for i := s.next(0); i >= 0; i = s.next(i + 1) {
		if i == held || l[i].TryLock() {
			continue
		}
		for taken := s.next(0); taken < i; taken = s.next(taken + 1) {
			if taken != held {
				l[taken].Unlock()
			}
		}
		if held >= 0 {
			l[held].Unlock()
		}
		return i
	}
	return -1
}

// UnlockSet undoes LockSet.
// +checklocksignore
func (l *Locks) UnlockSet(s *Set) {
	for i := s.next(0); i >= 0; i = s.next(i + 1) {
		l[i].Unlock()
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
