package commitlog

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/engine/internal/emptyrange"
)

// registry is the set of sequence numbers at which readers read. A reader takes
// its number and registers it under Log.applyMu. The applier reads the registry
// under the same mutex before it discards a version, so no version is discarded
// between the two steps.
type registry struct {
	// mu is for compactions, which read the list without Log.applyMu.
	mu sync.Mutex
	// +checklocks:mu
	seqs []uint64 // ascending, one for each registration
	// top is the last of seqs, 0 if there is none.
	top atomic.Uint64
}

// newest returns the newest registered sequence number, 0 if there is none.
func (r *registry) newest() uint64 { return r.top.Load() }

func (r *registry) add(seq uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, _ := slices.BinarySearch(r.seqs, seq)
	r.seqs = slices.Insert(r.seqs, i, seq)
	r.top.Store(r.seqs[len(r.seqs)-1])
}

// remove undoes one add. It reports whether no reader is left at seq or an older number.
func (r *registry) remove(seq uint64) (oldest bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i, ok := slices.BinarySearch(r.seqs, seq); ok {
		r.seqs = slices.Delete(r.seqs, i, i+1)
	}
	top := uint64(0)
	if n := len(r.seqs); n > 0 {
		top = r.seqs[n-1]
	}
	r.top.Store(top)
	return len(r.seqs) == 0 || r.seqs[0] > seq
}

// Register calls at with the published sequence number, which is not inside a
// record, and ranges of keys that have no entity at this number. Until Unregister, every version is kept that a reader at that number
// sees. at must not call the Log.
func (l *Log) Register(at func(seq uint64, empty emptyrange.List)) {
	l.applyMu.Lock()
	defer l.applyMu.Unlock()
	l.readers.add(l.applied)
	at(l.applied, l.empty)
}

// Unregister undoes one Register that gave seq. It reports whether no reader is left at seq or
// an older number.
func (l *Log) Unregister(seq uint64) (oldest bool) { return l.readers.remove(seq) }

// Registered returns the registered sequence numbers, ascending, each once.
func (l *Log) Registered() []uint64 {
	l.readers.mu.Lock()
	defer l.readers.mu.Unlock()
	return slices.Compact(slices.Clone(l.readers.seqs))
}

// FinalSeq returns a sequence number. Every reader, also a later one, sees each applied record up to
// it, and no crash can undo it.
func (l *Log) FinalSeq() uint64 {
	final := uint64(math.MaxUint64)
	if l.o.NoSync {
		final = l.DurableSeq()
	}
	l.readers.mu.Lock()
	defer l.readers.mu.Unlock()
	if len(l.readers.seqs) > 0 {
		final = min(final, l.readers.seqs[0])
	}
	return final
}
