package engine_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// rig is a database in an in-memory file system that can lose power and whose syncs
// can be blocked.
type rig struct {
	disk *vfs.Mem
	gate *gate
}

// gate blocks the syncs of log segments while it is shut.
type gate struct {
	mu   sync.Mutex
	shut chan struct{} // nil when open; closed to release the blocked syncs
	fail error
	held chan struct{}
	seen atomic.Bool
}

func (g *gate) rule(op vfs.Op) *errorfs.Fault {
	if op.Kind != vfs.OpSync || !strings.HasSuffix(op.Name, ".wal") {
		return nil
	}
	g.mu.Lock()
	shut, held := g.shut, g.held
	g.mu.Unlock()
	if shut != nil {
		if g.seen.CompareAndSwap(false, true) {
			close(held)
		}
		<-shut
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fail != nil {
		return &errorfs.Fault{Err: g.fail, Sync: errorfs.SyncForgets}
	}
	return nil
}

// rigs maps open databases to their rigs.
type rigs struct {
	mu   sync.Mutex
	byDB map[store.Store]*rig
	opts engine.Options
}

func (r *rigs) open(tb testing.TB, disk *vfs.Mem) store.Store {
	g := new(gate)
	o := r.opts
	o.FS = errorfs.Wrap(disk, g.rule)
	db, err := engine.Open("db", o)
	if err != nil {
		tb.Fatalf("Open: %v", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byDB[db] = &rig{disk: disk, gate: g}
	return db
}

func (r *rigs) rig(s store.Store) *rig {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byDB[s]
}

func (r *rigs) backend() storetest.Backend {
	return storetest.Backend{
		Open: func(tb testing.TB) store.Store { return r.open(tb, vfs.NewCrashMem()) },
		Reopen: func(tb testing.TB, s store.Store) store.Store {
			if err := s.Close(); err != nil {
				tb.Fatalf("Close: %v", err)
			}
			return r.open(tb, r.rig(s).disk)
		},
		PowerCut: func(tb testing.TB, s store.Store) store.Store {
			disk := r.rig(s).disk.Crash(vfs.CrashOptions{Mode: vfs.CrashMin})
			_ = s.Close() // fails if a sync has failed
			return r.open(tb, disk)
		},
		HoldSync: func(tb testing.TB, s store.Store) storetest.Hold {
			g := r.rig(s).gate
			g.mu.Lock()
			defer g.mu.Unlock()
			g.shut, g.held = make(chan struct{}), make(chan struct{})
			g.seen.Store(false)
			return storetest.Hold{Held: g.held, Release: func(fail error) {
				g.mu.Lock()
				defer g.mu.Unlock()
				g.fail = fail
				close(g.shut)
				g.shut = nil
			}}
		},
	}
}

func TestContract(t *testing.T) {
	for _, c := range []struct {
		name string
		opts engine.Options
	}{
		{"options=default", engine.Options{SegmentBytes: 1 << 20, CacheBytes: 1 << 20}},
		{"options=small", engine.Options{SegmentBytes: 64 << 10, FileBytes: 64 << 10, TierRuns: 2, CacheBytes: 64 << 10}},
		{"options=manual", engine.Options{SegmentBytes: 64 << 10, FileBytes: 64 << 10, TierRuns: 2, CacheBytes: 1 << 20, Testing: engine.TestHooks{Manual: true}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &rigs{byDB: make(map[store.Store]*rig), opts: c.opts}
			storetest.Run(t, r.backend())
		})
	}
}

func TestContractWithoutSync(t *testing.T) {
	r := &rigs{byDB: make(map[store.Store]*rig), opts: engine.Options{SegmentBytes: 64 << 10, NoSync: true, CacheBytes: 1 << 20}}
	b := r.backend()
	b.HoldSync, b.PowerCut = nil, nil
	storetest.Run(t, b)
}
