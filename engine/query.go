package engine

import (
	"context"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine/internal/scan"
	"github.com/tablerock-db/tablerock/internal/lsm"
	"github.com/tablerock-db/tablerock/internal/memtable"
	"github.com/tablerock-db/tablerock/internal/merge"
	"github.com/tablerock-db/tablerock/store"
)

// Query implements store.Store.
func (db *DB) Query(ctx context.Context, table string, q store.Query) store.Cursor {
	m := db.takeMoment()
	if m == nil {
		return scan.Failed(store.ErrClosed)
	}
	c, err := m.query(ctx, table, q, m.release)
	if err != nil {
		m.release()
		return scan.Failed(err)
	}
	return c
}

// query returns a cursor at m that calls release when it is closed.
func (m *moment) query(ctx context.Context, table string, q store.Query, release func()) (store.Cursor, error) {
	if err := edm.CheckTableName(table); err != nil {
		return nil, err
	}
	if err := store.CheckQuery(q); err != nil {
		return nil, err
	}
	info := m.catalog.Lookup(table)
	if info == nil {
		return nil, store.ErrTableNotFound
	}
	return scan.New(ctx, scan.Input{Table: info.ID, Sources: m.sources, Close: release}, q), nil
}

// sources returns one source for every memtable and run that can hold keys in
// [lower, upper), newest first.
func (m *moment) sources(lower, upper []byte) []merge.Source {
	var out []merge.Source
	for _, seg := range m.state.mems {
		if !seg.Empty() {
			o := memtable.IterOptions{Lower: lower, Upper: upper, Snapshot: m.seq}
			out = append(out, seg.Table.NewIterator(o))
		}
	}
	return m.state.version.AppendSources(out, lsm.IterOptions{Lower: lower, Upper: upper, Snapshot: m.seq, Fill: true})
}
