package readstate

import (
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/sstable"
)

// Viewer is the memory of one point read.
type Viewer struct {
	Key  []byte
	Mem  codec.Row
	Disk sstable.Row
	// Shard is the shard for Current.Pin and State.Unpin. Reads at the same time mostly have
	// different ones. With a shard by the hash of the key, a pin often finds a cache line that
	// another processor wrote: gets of 16 readers need 4 % more CPU, those of YCSB C 2 to 3 %
	// (bench/peers, get/key=present/readers=16 and ycsb/mix=C).
	Shard uint64
}

var (
	made    atomic.Uint64
	viewers = sync.Pool{New: func() any { return &Viewer{Shard: made.Add(1)} }}
)

// TakeViewer returns a Viewer that nothing else uses. Call Put after the read.
func TakeViewer() *Viewer { return viewers.Get().(*Viewer) }

// Put ends the use of v.
func (v *Viewer) Put() { viewers.Put(v) }
