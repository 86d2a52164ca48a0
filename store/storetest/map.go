package storetest

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"unicode/utf16"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// mapStore is a Store in plain Go maps. It prefers simplicity to speed.
type mapStore struct {
	now func() edm.Ticks

	mu     sync.Mutex
	last   edm.Ticks            // the last assigned Timestamp
	tables map[string]*mapTable // by folded name
	meta   []byte
	closed bool
}

// mapTable is a table. Entities are replaced and never changed, so a reader of an
// entity or of sorted needs no lock.
type mapTable struct {
	info   store.TableInfo
	meta   []byte
	rows   map[edm.Key]*edm.Entity
	sorted []*edm.Entity // rows in order; nil if rows changed
}

// NewMap returns an empty Store in Go maps. It keeps nothing after Close. A Timestamp is
// the time of now, or the previous Timestamp plus one if the time did not advance. With
// a nil now the time is fixed, so that equal sequences of calls give equal Timestamps.
func NewMap(now func() edm.Ticks) store.Store {
	if now == nil {
		now = fixedClock
	}
	return newMap(now)
}

func newMap(now func() edm.Ticks) *mapStore {
	return &mapStore{now: now, tables: map[string]*mapTable{}}
}

func fixedClock() edm.Ticks { return 133_514_496_000_000_000 } // 2024-02-03T16:00:00Z

func (m *mapStore) tickLocked() edm.Ticks {
	m.last = max(m.now(), m.last+1)
	return m.last
}

// enter begins a call. Without an error it returns with m.mu locked; call leave to
// unlock it.
// +checklocksignore
func (m *mapStore) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return store.ErrClosed
	}
	return nil
}

// leave ends a call.
// +checklocksignore
func (m *mapStore) leave() { m.mu.Unlock() }

// enterTable is enter for a call on a table that must exist.
func (m *mapStore) enterTable(ctx context.Context, table string) (*mapTable, error) {
	if err := edm.CheckTableName(table); err != nil {
		return nil, err
	}
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	t, ok := m.tables[edm.FoldTableName(table)]
	if !ok {
		m.leave()
		return nil, store.ErrTableNotFound
	}
	return t, nil
}

// CreateTable implements store.Store.
func (m *mapStore) CreateTable(ctx context.Context, table string) error {
	if err := edm.CheckTableName(table); err != nil {
		return err
	}
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.leave()
	name := edm.FoldTableName(table)
	if _, ok := m.tables[name]; ok {
		return store.ErrTableExists
	}
	m.tables[name] = &mapTable{
		info: store.TableInfo{Name: table, Created: m.tickLocked()},
		rows: map[edm.Key]*edm.Entity{},
	}
	return nil
}

// DeleteTable implements store.Store.
func (m *mapStore) DeleteTable(ctx context.Context, table string) error {
	if _, err := m.enterTable(ctx, table); err != nil {
		return err
	}
	defer m.leave()
	delete(m.tables, edm.FoldTableName(table))
	return nil
}

// Tables implements store.Store.
func (m *mapStore) Tables(ctx context.Context, from string, limit int) ([]store.TableInfo, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.leave()
	var list []store.TableInfo
	for name, t := range m.tables {
		if name >= edm.FoldTableName(from) {
			list = append(list, t.info)
		}
	}
	slices.SortFunc(list, func(a, b store.TableInfo) int {
		return strings.Compare(edm.FoldTableName(a.Name), edm.FoldTableName(b.Name))
	})
	if limit > 0 && len(list) > limit {
		list = list[:limit]
	}
	return list, nil
}

// TableMeta implements store.Store.
func (m *mapStore) TableMeta(ctx context.Context, table string) ([]byte, error) {
	t, err := m.enterTable(ctx, table)
	if err != nil {
		return nil, err
	}
	defer m.leave()
	return bytes.Clone(t.meta), nil
}

// SetTableMeta implements store.Store.
func (m *mapStore) SetTableMeta(ctx context.Context, table string, meta []byte) error {
	if err := edm.CheckTableName(table); err != nil {
		return err
	}
	if err := store.CheckMeta(table, len(meta)); err != nil {
		return err
	}
	t, err := m.enterTable(ctx, table)
	if err != nil {
		return err
	}
	defer m.leave()
	t.meta = copyMeta(meta)
	return nil
}

// AccountMeta implements store.Store.
func (m *mapStore) AccountMeta(ctx context.Context) ([]byte, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.leave()
	return bytes.Clone(m.meta), nil
}

// SetAccountMeta implements store.Store.
func (m *mapStore) SetAccountMeta(ctx context.Context, meta []byte) error {
	if err := store.CheckMeta("", len(meta)); err != nil {
		return err
	}
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.leave()
	m.meta = copyMeta(meta)
	return nil
}

// copyMeta returns a copy of meta, nil if it is empty.
func copyMeta(meta []byte) []byte {
	if len(meta) == 0 {
		return nil
	}
	return bytes.Clone(meta)
}

// Close implements store.Store.
func (m *mapStore) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.tables, m.meta = nil, nil
	return nil
}

// Get implements store.Store.
func (m *mapStore) Get(ctx context.Context, table string, key edm.Key) (edm.Entity, error) {
	var e edm.Entity
	err := m.View(ctx, table, key, func(r edm.Row) error {
		e = edm.EntityOf(r)
		return nil
	})
	return e, err
}

// View implements store.Store.
func (m *mapStore) View(ctx context.Context, table string, key edm.Key, read func(edm.Row) error) error {
	t, err := m.enterTable(ctx, table)
	if err != nil {
		return err
	}
	e, ok := t.rows[key]
	m.leave()
	if !ok {
		return store.ErrEntityNotFound
	}
	return read(e.View())
}

// Apply implements store.Store.
func (m *mapStore) Apply(ctx context.Context, table string, ops ...store.Op) ([]store.Result, error) {
	if err := store.CheckBatch(table, ops, nil); err != nil {
		return nil, err
	}
	t, err := m.enterTable(ctx, table)
	if err == store.ErrTableNotFound {
		return nil, &store.OpError{Err: err}
	}
	if err != nil {
		return nil, err
	}
	defer m.leave()
	// Keys in a batch are distinct, so the ops are independent.
	next := make([]*edm.Entity, len(ops))
	for i := range ops {
		if next[i], err = resolve(t.rows[ops[i].Entity.Key], &ops[i]); err != nil {
			return nil, &store.OpError{Index: i, Executed: true, Err: err}
		}
	}
	results := make([]store.Result, len(ops))
	for i, e := range next {
		ts := m.tickLocked()
		if e == nil {
			delete(t.rows, ops[i].Entity.Key)
			continue
		}
		e.Timestamp = ts
		t.rows[e.Key] = e
		results[i] = store.Result{Timestamp: ts, ETag: ts.ETag()}
	}
	t.sorted = nil
	return results, nil
}

// resolve returns the result of op on old, which is nil if there is no entity. The
// result owns its memory; it is nil for a deletion.
func resolve(old *edm.Entity, op *store.Op) (*edm.Entity, error) {
	switch op.Kind {
	case store.OpInsert:
		if old != nil {
			return nil, store.ErrEntityExists
		}
	case store.OpMerge, store.OpReplace, store.OpDelete:
		if old == nil {
			return nil, store.ErrEntityNotFound
		}
		if op.IfMatch != store.Any && op.IfMatch != old.Timestamp.ETag() {
			return nil, store.ErrPrecondition
		}
	}
	if op.Kind == store.OpDelete {
		return nil, nil
	}
	e := &edm.Entity{Key: op.Entity.Key}
	before := edm.Properties(nil)
	if old != nil && (op.Kind == store.OpMerge || op.Kind == store.OpInsertOrMerge) {
		before = old.Properties
	}
	for _, p := range before {
		if v := op.Entity.Properties.Get(p.Name); !v.IsNull() {
			p.Value = v
		}
		e.Properties = append(e.Properties, p)
	}
	for _, p := range op.Entity.Properties {
		if !p.Value.IsNull() && before.Get(p.Name).IsNull() {
			e.Properties = append(e.Properties, p)
		}
	}
	for i := range e.Properties {
		e.Properties[i].Value = e.Properties[i].Value.Clone()
	}
	if op.Kind != store.OpInsert {
		e.Properties = byName(e.Properties)
	}
	return e, edm.CheckTotals(e.Key, e.Properties)
}

// byName returns a copy of p in the order of the names by UTF-16 code units.
func byName(p edm.Properties) edm.Properties {
	p = slices.Clone(p)
	units := func(s string) []uint16 { return utf16.Encode([]rune(s)) }
	slices.SortFunc(p, func(a, b edm.Property) int { return slices.Compare(units(a.Name), units(b.Name)) })
	return p
}
