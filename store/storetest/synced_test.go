package storetest

import (
	"context"
	"maps"
	"sync"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// syncedMap is a Store of two mapStores with simulated syncs. Writers use front, which
// has all writes; readers use durable, which has the synced writes.
type syncedMap struct {
	early   bool // mutant: errors do not wait
	dirty   bool // mutant: readers use front
	guesses bool // mutant: a failed sync does not make outcomes unknown
	hasty   bool // mutant: a write is acknowledged before it is durable
	stuck   bool // mutant: Close does not wait
	idles   bool // mutant: HoldSync blocks a sync of the store's own
	locks   bool // mutant: a waiting call returns ErrReadOnly after a failed sync
	aborts  bool // mutant: a waiting call returns ErrClosed after Close
	loses   bool // mutant: a power cut loses the last synced write
	torn    bool // mutant: after a failed sync, a power cut leaves a part of a batch
	wavers  bool // mutant: after a failed sync, each power cut has another outcome
	resets  bool // mutant: Timestamps start again after a power cut, a kill or Close
	forgets bool // mutant: they start after the newest entity that is stored
	halves  bool // mutant: the first write that fails because of a kill leaves one operation
	denies  bool // mutant: a write that a kill stores is refused

	mu       sync.Mutex
	changed  *sync.Cond // signals changes of synced, held and failed
	front    *mapStore
	durable  *mapStore
	before   *mapStore // durable before the last sync
	other    *mapStore // the next outcome for wavers
	appended int       // writes in front
	synced   int       // writes in durable
	pending  int       // waiting calls
	held     chan struct{}
	isHeld   bool // held is closed
	failed   bool
	refused  bool // a write, because of failed
	closed   bool
	next     *syncedMap // the store after a kill, which the writes above change
}

func newSyncedMap(m *mapStore) *syncedMap {
	s := &syncedMap{front: m, durable: clone(m)}
	s.changed = sync.NewCond(&s.mu)
	return s
}

// clone returns a copy of m, which shares entities.
func clone(m *mapStore) *mapStore {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := newMap(m.now)
	c.last, c.meta = m.last, m.meta
	for name, t := range m.tables {
		u := *t
		u.rows = maps.Clone(t.rows)
		c.tables[name] = &u
	}
	return c
}

// write executes f on front and waits until its outcome is durable.
func (s *syncedMap) write(f func(m *mapStore) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	if s.failed {
		s.refused = true
		s.changed.Broadcast()
		return store.ErrReadOnly
	}
	err := f(s.front)
	if err == nil {
		s.appended++
	} else if s.early {
		return err
	}
	s.pending++
	defer func() { s.pending--; s.changed.Broadcast() }()
	for at := s.appended; s.synced < at; {
		if s.failed {
			if s.guesses && err != nil {
				return err
			}
			if s.locks && err != nil {
				return store.ErrReadOnly
			}
			return store.ErrOutcomeUnknown
		}
		if s.held == nil {
			s.syncLocked()
			continue
		}
		if !s.isHeld {
			s.isHeld = true
			close(s.held)
		}
		if s.hasty {
			return err
		}
		if s.aborts && s.closed {
			return store.ErrClosed
		}
		s.changed.Wait()
	}
	return err
}

func (s *syncedMap) syncLocked() {
	s.synced, s.before, s.durable = s.appended, s.durable, clone(s.front)
	s.changed.Broadcast()
}

func (s *syncedMap) hold() Hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = make(chan struct{})
	if s.idles {
		s.isHeld = true
		close(s.held)
	}
	return Hold{Held: s.held, Release: func(fail error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.held, s.failed = nil, fail != nil
		s.changed.Broadcast()
	}}
}

// reader returns the store for readers.
func (s *syncedMap) reader() *mapStore {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		m := newMap(fixedClock)
		m.closed = true
		return m
	}
	if s.dirty {
		return s.front
	}
	return s.durable
}

func (s *syncedMap) CreateTable(ctx context.Context, table string) error {
	return s.write(func(m *mapStore) error { return m.CreateTable(ctx, table) })
}

func (s *syncedMap) DeleteTable(ctx context.Context, table string) error {
	return s.write(func(m *mapStore) error { return m.DeleteTable(ctx, table) })
}

func (s *syncedMap) Apply(ctx context.Context, table string, ops ...store.Op) (r []store.Result, err error) {
	err = s.write(func(m *mapStore) error {
		r, err = m.Apply(ctx, table, ops...)
		return err
	})
	if err == store.ErrReadOnly && s.next != nil && (s.halves || s.denies) {
		if s.halves {
			ops, err = ops[:1], store.ErrOutcomeUnknown
		}
		_, _ = s.next.Apply(ctx, table, ops...)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (s *syncedMap) SetTableMeta(ctx context.Context, table string, meta []byte) error {
	return s.write(func(m *mapStore) error { return m.SetTableMeta(ctx, table, meta) })
}

func (s *syncedMap) SetAccountMeta(ctx context.Context, meta []byte) error {
	return s.write(func(m *mapStore) error { return m.SetAccountMeta(ctx, meta) })
}

func (s *syncedMap) Tables(ctx context.Context, from string, limit int) ([]store.TableInfo, error) {
	return s.reader().Tables(ctx, from, limit)
}

func (s *syncedMap) Get(ctx context.Context, table string, key edm.Key) (edm.Entity, error) {
	return s.reader().Get(ctx, table, key)
}

func (s *syncedMap) View(ctx context.Context, table string, key edm.Key, read func(edm.Row) error) error {
	return s.reader().View(ctx, table, key, read)
}

func (s *syncedMap) Query(ctx context.Context, table string, q store.Query) store.Cursor {
	return s.reader().Query(ctx, table, q)
}

func (s *syncedMap) TableMeta(ctx context.Context, table string) ([]byte, error) {
	return s.reader().TableMeta(ctx, table)
}

func (s *syncedMap) AccountMeta(ctx context.Context) ([]byte, error) {
	return s.reader().AccountMeta(ctx)
}

func (s *syncedMap) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.changed.Broadcast()
	for s.pending > 0 && !s.stuck {
		s.changed.Wait()
	}
	return nil
}

// afterPowerCut returns the store after a power cut.
func (s *syncedMap) afterPowerCut() *syncedMap {
	left := clone(s.durable)
	switch {
	case s.loses && s.before != nil:
		left = clone(s.before)
	case s.torn && s.failed:
		left = clone(s.front)
		if t := left.tables["people"]; t != nil {
			delete(t.rows, edm.Key{Partition: "p", Row: "new"})
			t.sorted = nil
		}
	case s.wavers && s.other != nil:
		left = clone(s.other)
	}
	next := newSyncedMap(left)
	if s.wavers && s.failed {
		next.other = s.front
	}
	return next
}

// afterKill returns the store after a kill.
func (s *syncedMap) afterKill() *syncedMap {
	s.mu.Lock()
	s.failed = true
	s.changed.Broadcast()
	s.next = newSyncedMap(clone(s.durable))
	if s.loses && s.before != nil {
		s.next = newSyncedMap(clone(s.before))
	}
	// These mutants change a write that fails because of the kill. The writers stop after it.
	for (s.halves || s.denies) && !s.refused {
		s.changed.Wait()
	}
	s.mu.Unlock()
	return s.next
}

// syncedBackend returns a Backend of syncedMaps. change makes mutants of them.
func syncedBackend(change func(s *syncedMap)) Backend {
	fresh := func(s *syncedMap) store.Store {
		s.mu.Lock() // a write that a kill has caught may change s
		defer s.mu.Unlock()
		if change(s); s.resets || s.forgets {
			s.front.last = 0
		}
		if !s.forgets {
			return s
		}
		for _, t := range s.front.tables {
			for _, e := range t.rows {
				s.front.last = max(s.front.last, e.Timestamp)
			}
		}
		return s
	}
	return Backend{
		Snapshot: true, RisingTimestamps: true, ReadOnlyAfterFailure: true,
		Open: func(testing.TB) store.Store { return fresh(newSyncedMap(newMap(fixedClock))) },
		Reopen: func(tb testing.TB, s store.Store) store.Store {
			if err := s.Close(); err != nil {
				tb.Errorf("Close: %v", err)
			}
			return fresh(newSyncedMap(clone(s.(*syncedMap).durable)))
		},
		PowerCut: func(_ testing.TB, s store.Store) store.Store { return fresh(s.(*syncedMap).afterPowerCut()) },
		Kill:     func(_ testing.TB, s store.Store) store.Store { return fresh(s.(*syncedMap).afterKill()) },
		HoldSync: func(_ testing.TB, s store.Store) Hold { return s.(*syncedMap).hold() },
	}
}

func TestSyncedMap(t *testing.T) {
	Run(t, syncedBackend(func(*syncedMap) {}))
}
