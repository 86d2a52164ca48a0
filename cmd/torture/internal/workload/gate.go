package workload

import (
	"path"
	"sync"

	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// gate holds up the next sync of a log segment, so that commits gather behind
// it.
type gate struct {
	mu sync.Mutex
	// +checklocks:mu
	held chan struct{} // closed when a sync is held; nil when the gate is open
	// +checklocks:mu
	release chan struct{}
}

// shut returns a channel that is closed when a sync has come, and a function
// that lets it go.
func (g *gate) shut() (held <-chan struct{}, open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held, g.release = make(chan struct{}), make(chan struct{})
	release := g.release
	return g.held, sync.OnceFunc(func() {
		g.mu.Lock()
		g.held = nil
		g.mu.Unlock()
		close(release)
	})
}

func (g *gate) rule(op vfs.Op) *errorfs.Fault {
	if op.Kind != vfs.OpSync || path.Ext(op.Name) != string(filename.WAL) {
		return nil
	}
	g.mu.Lock()
	held, release := g.held, g.release
	g.held = nil
	g.mu.Unlock()
	if held != nil {
		close(held)
		<-release
	}
	return nil
}
