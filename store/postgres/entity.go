package postgres

import (
	"context"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres/internal/layout"
	"github.com/tablerock-db/tablerock/store/postgres/internal/wire"
)

var (
	getEntity = wire.NewStatement("get", 3, "SELECT t.id, f.ts, f.v FROM tr_tables AS t LEFT JOIN LATERAL (SELECT e.ts, e.v FROM tr_entities AS e "+
		"WHERE e.tid = t.id AND e.p = $3 AND e.r = $4 LIMIT 1) AS f ON true"+inTable, wire.OIDText, wire.OIDBytea, wire.OIDBytea, wire.OIDBytea)
	getLong = wire.NewStatement("get_long", 3, "SELECT t.id, f.ts, f.v FROM tr_tables AS t LEFT JOIN LATERAL (SELECT e.ts, e.v FROM tr_long AS e "+
		"WHERE e.tid = t.id AND e.h = $3 LIMIT 1) AS f ON true"+inTable, wire.OIDText, wire.OIDBytea, wire.OIDBytea)
)

// Names of the tables of entities for errors.
const (
	entitiesTable = "tr_entities"
	longTable     = "tr_long"
)

// noKey is in no row: a component has no such byte.
var noKey = layout.Key{P: []byte{0xFF}}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, table string, key edm.Key) (e edm.Entity, err error) {
	err = s.View(ctx, table, key, func(row edm.Row) error {
		e = edm.EntityOf(row)
		return nil
	})
	return e, err
}

// View implements store.Store. It copies the row, so that read needs no connection.
func (s *Store) View(ctx context.Context, table string, key edm.Key, read func(edm.Row) error) error {
	row, err := s.fetch(ctx, table, key)
	if err != nil {
		return err
	}
	return read(row)
}

// fetch returns an entity, which owns its memory.
func (s *Store) fetch(ctx context.Context, table string, key edm.Key) (*codec.Row, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.calls.Done()
	if err := edm.CheckTableName(table); err != nil {
		return nil, err
	}
	at := noKey // of an illegal key, to look for the table only
	if edm.CheckKey(key) == nil {
		at = layout.KeyOf(key)
	}
	folded := []byte(edm.FoldTableName(table))
	row := new(codec.Row)
	err := s.db.read(ctx, func(c *wire.Conn) error {
		name := entitiesTable
		if at.H != nil {
			name = longTable
			c.Queue(getLong, s.account, folded, at.H)
		} else {
			c.Queue(getEntity, s.account, folded, at.P, at.R)
		}
		failed := store.ErrTableNotFound
		_, err := c.RoundTrip(ctx, func(_ int, values [][]byte) error {
			if values[1] == nil {
				failed = store.ErrEntityNotFound
				return nil
			}
			failed = nil
			ts, err := wire.Int8Of(values[1])
			if err != nil {
				return err
			}
			buf := layout.UserKey(make([]byte, 0, layout.KeyOverhead+len(at.P)+len(at.R)+len(values[2])), at.P, at.R)
			n := len(buf)
			buf = append(buf, values[2]...)
			return s.db.shapes.Decode(row, name, buf[:n:n], ts, buf[n:])
		})
		if err == nil {
			err = failed
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return row, nil
}
