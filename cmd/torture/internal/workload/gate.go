package workload

import (
	"path"
	"sync"

	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// gate blocks the next sync of a log segment, so that commits queue behind it.
type gate struct {
	mu sync.Mutex
	// +checklocks:mu
	blocked chan struct{} // closed when a sync blocks; nil when the gate is open
	// +checklocks:mu
	release chan struct{}
}

// shut returns a channel that is closed when a sync blocks, and a function that unblocks
// it.
func (g *gate) shut() (blocked <-chan struct{}, open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.blocked, g.release = make(chan struct{}), make(chan struct{})
	release := g.release
	return g.blocked, sync.OnceFunc(func() {
		g.mu.Lock()
		g.blocked = nil
		g.mu.Unlock()
		close(release)
	})
}

func (g *gate) rule(op vfs.Op) *errorfs.Fault {
	if op.Kind != "sync" || path.Ext(op.Name) != string(filename.WAL) {
		return nil
	}
	g.mu.Lock()
	blocked, release := g.blocked, g.release
	g.blocked = nil
	g.mu.Unlock()
	if blocked != nil {
		close(blocked)
		<-release
	}
	return nil
}
