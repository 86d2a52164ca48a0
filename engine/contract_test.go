package engine_test

import (
	"errors"
	"path"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
	"github.com/tablerock-db/tablerock/wal"
)

// rig is a database in an in-memory file system that can lose power and whose syncs
// can be blocked.
type rig struct {
	disk *vfs.Mem
	gate *gate
}

// gate blocks the syncs of log segments while it is shut, except those that cover no
// record since then, such as the sync of the seal of an idle log.
type gate struct {
	disk *vfs.Mem
	mu   sync.Mutex
	shut *shutGate // nil when open
	fail error

	killed bool // every operation fails
}

var errKilled = errors.New("the process was killed")

// shutGate is the state of a gate while it is shut.
type shutGate struct {
	tb      testing.TB
	dbid    [16]byte
	lastSeq uint64 // of the records before it was shut
	seen    atomic.Bool
	held    chan struct{} // closed when the first sync blocks
	release chan struct{} // closed to release the blocked syncs
}

// covers reports whether a sync of the segment covers a record since the gate was shut.
func (s *shutGate) covers(disk *vfs.Mem, name string, number uint64) bool {
	info, err := wal.Inspect(disk, name, s.dbid, number)
	if err != nil {
		s.tb.Errorf("inspect %s: %v", name, err)
		return false
	}
	o := wal.ReplayOptions{DBID: s.dbid, Number: number, Image: make([]byte, info.Bytes)}
	end, err := wal.Replay(disk, name, o, func(wal.RecordView) error { return nil })
	if err != nil {
		s.tb.Errorf("replay %s: %v", name, err)
	}
	return end.LastSeq > s.lastSeq
}

func (g *gate) rule(op vfs.Op) *errorfs.Fault {
	g.mu.Lock()
	killed := g.killed
	g.mu.Unlock()
	if killed {
		return &errorfs.Fault{Err: errKilled}
	}
	kind, number := filename.Parse(path.Base(op.Name))
	if op.Kind != "sync" || kind != filename.WAL {
		return nil
	}
	g.mu.Lock()
	shut := g.shut
	g.mu.Unlock()
	if shut != nil && shut.covers(g.disk, op.Name, number) {
		if shut.seen.CompareAndSwap(false, true) {
			close(shut.held)
		}
		<-shut.release
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
	// wrap returns the Store to test for a database. Nil is the database itself.
	wrap func(db *engine.DB) store.Store
}

func (r *rigs) open(tb testing.TB, disk *vfs.Mem) store.Store {
	g := &gate{disk: disk}
	o := r.opts
	o.FS = errorfs.Wrap(disk, g.rule)
	db, err := engine.Open("db", o)
	if err != nil {
		tb.Fatalf("Open: %v", err)
	}
	s := store.Store(db)
	if r.wrap != nil {
		s = r.wrap(db)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byDB[s] = &rig{disk: disk, gate: g}
	return s
}

func (r *rigs) rig(s store.Store) *rig {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byDB[s]
}

func (r *rigs) backend() storetest.Backend {
	return storetest.Backend{
		Snapshot: true, RisingTimestamps: true, ReadOnlyAfterFailure: true,
		Open: func(tb testing.TB) store.Store { return r.open(tb, vfs.NewCrashMem()) },
		Reopen: func(tb testing.TB, s store.Store) store.Store {
			if err := s.Close(); err != nil {
				tb.Fatalf("Close: %v", err)
			}
			return r.open(tb, r.rig(s).disk)
		},
		PowerCut: func(tb testing.TB, s store.Store) store.Store {
			disk := r.rig(s).disk.Crash(vfs.CrashOptions{Mode: "min"})
			_ = s.Close() // fails if a sync has failed
			return r.open(tb, disk)
		},
		Kill: func(tb testing.TB, s store.Store) store.Store {
			r1 := r.rig(s)
			// An operation that began before the failure is in the clone or is followed by
			// a sync that fails, so no write that is not in the clone is acknowledged.
			r1.gate.mu.Lock()
			r1.gate.killed = true
			r1.gate.mu.Unlock()
			disk := r1.disk.Clone()
			_ = s.Close() // fails, because every operation does
			return r.open(tb, disk)
		},
		HoldSync: func(tb testing.TB, s store.Store) storetest.Hold {
			g := r.rig(s).gate
			m, err := manifest.Read(g.disk, "db")
			if err != nil {
				tb.Fatalf("read manifest: %v", err)
			}
			stats, err := s.(interface{ Stats() (engine.Stats, error) }).Stats()
			if err != nil {
				tb.Fatalf("Stats: %v", err)
			}
			g.mu.Lock()
			defer g.mu.Unlock()
			shut := &shutGate{tb: tb, dbid: m.DBID, lastSeq: stats.LastSequence, held: make(chan struct{}), release: make(chan struct{})}
			g.shut = shut
			return storetest.Hold{Held: shut.held, Release: func(fail error) {
				g.mu.Lock()
				defer g.mu.Unlock()
				g.fail, g.shut = fail, nil
				close(shut.release)
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
	b.HoldSync, b.PowerCut, b.Kill = nil, nil, nil
	storetest.Run(t, b)
}
