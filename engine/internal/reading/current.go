package reading

import (
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/engine/internal/commitlog"
)

// Current is the State that reads look at. The zero Current has none. Its
// methods may be called concurrently.
type Current struct {
	state atomic.Pointer[State]
	// mu is held to replace state.
	mu sync.Mutex
}

// Load returns the current state without a pin, nil if there is none.
func (c *Current) Load() *State { return c.state.Load() }

// Pin returns the current state, held until Unpin is called with the same
// shard, or nil if there is none.
func (c *Current) Pin(shard uint64) *State {
	for {
		s := c.state.Load()
		if s == nil {
			return nil
		}
		s.pins[shard%pinShards].n.Add(1)
		// Whoever retires s replaces it first and reads the counters after: if s
		// is still current here, it will see this pin.
		if c.state.Load() == s {
			return s
		}
		s.Unpin(shard)
	}
}

// Start makes s the first state.
func (c *Current) Start(s *State) { c.state.Store(s) }

// Replace puts the state that next makes of the memtables in the place of the
// current one. Nobody else replaces it meanwhile.
func (c *Current) Replace(next func(mems []*commitlog.Segment) *State) {
	c.mu.Lock()
	old := c.state.Load()
	c.state.Store(next(old.Mems))
	c.mu.Unlock()
	old.Retire()
}

// End leaves no state, and returns the last one for the caller to retire, nil if
// there is none.
func (c *Current) End() *State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.Swap(nil)
}
