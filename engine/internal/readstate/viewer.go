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
	// Shard is the shard for Current.Pin. Reads on different processors mostly have
	// different ones. If the key decided, each pin would find a cache line that another
	// processor wrote: a get in ycsb/mix=C needs 3 % less CPU (bench/peers).
	Shard uint64
}

var (
	viewers sync.Pool
	made    atomic.Uint64
)

// TakeViewer returns a Viewer that nothing else uses. Call Put after the read.
func TakeViewer() *Viewer {
	if v, ok := viewers.Get().(*Viewer); ok {
		return v
	}
	return &Viewer{Shard: made.Add(1)}
}

// Put ends the use of v.
func (v *Viewer) Put() { viewers.Put(v) }
