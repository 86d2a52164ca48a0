// Package partlock has the locks of partitions.
package partlock

import "sync"

// Locks has one lock for each partition. Partitions share them by hash.
type Locks [1024]sync.Mutex

// Of returns the lock of the partition with the given hash.
func (l *Locks) Of(hash uint64) *sync.Mutex { return &l[hash%uint64(len(l))] }

// LockAll takes all locks. Others must take at most one.
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
