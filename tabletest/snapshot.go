package tabletest

import (
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/vfs"
)

// Snapshot is a state of a Server: its tables, entities, access policies and service
// properties. It can be used until the test ends, any number of times and in any order.
type Snapshot struct {
	server  *Server
	files   atomic.Pointer[vfs.Mem]
	flushed sync.Once // files was replaced by a copy with an empty log, or will be
}

// Snapshot returns the present state, with every write that was acknowledged. It waits for
// the requests under way, whose clients must read the responses; later requests wait for it.
// Do not call it from the function of WithObserver. It reads no entity, so its time does not
// depend on how many there are.
func (s *Server) Snapshot() *Snapshot {
	s.gate.Lock()
	defer s.gate.Unlock()
	to := &Snapshot{server: s}
	to.files.Store(s.db.files())
	return to
}

// Reset returns to the state of a Snapshot of this server, with the Timestamps and ETags of
// that state. Later writes get Timestamps that were never issued. The rules of WithFaults
// begin to count again. It calls t.Fatalf if it fails.
//
// It waits for the requests under way, whose clients must read the responses, and later
// requests wait for it, so none sees or changes a mixture of two states. Do not call it from the
// function of WithObserver, and do not use Store meanwhile. An open cursor of Store continues in
// the old state.
//
// Reset reads no entity but those in the log, at most 256 KiB, so its time does not depend
// on how many there are. Soon after the first Reset to a snapshot, its log is empty.
func (s *Server) Reset(to *Snapshot) {
	s.t.Helper()
	if to.server != s {
		s.t.Fatalf("tabletest: Reset to a snapshot of another server")
	}
	s.gate.Lock()
	defer s.gate.Unlock()
	if err := s.db.open(to.files.Load().Clone()); err != nil {
		s.t.Fatalf("tabletest: reset: %v", err)
	}
	to.flushed.Do(func() {
		s.db.background.Go(func() {
			files, err := s.db.flushed(to.files.Load())
			if err != nil {
				s.t.Errorf("tabletest: flush a snapshot: %v", err)
				return
			}
			to.files.Store(files)
		})
	})
	// A new handler, because the old one has cached the service properties.
	h, err := s.options.handler(s.db)
	if err != nil {
		s.t.Fatalf("tabletest: reset: %v", err)
	}
	s.handler = h
	s.options.log.event("reset to a snapshot")
}
