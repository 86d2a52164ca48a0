package postgres

import (
	"context"
	"math"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres/internal/wire"
)

var (
	registerAccount = wire.NewStatement("register", 0, "INSERT INTO tr_accounts (account, meta) VALUES ($1, '') ON CONFLICT DO NOTHING", wire.OIDText)
	createTable     = wire.NewStatement("create", 0, `INSERT INTO tr_tables (account, folded, name, created, meta, long)
		SELECT $1, $2, $3, `+tickSQL+`, '', false FROM `+clockRow+` ON CONFLICT DO NOTHING`, wire.OIDText, wire.OIDBytea, wire.OIDText)
	dropTable      = wire.NewStatement("drop", 0, dropSQL("pg_current_xact_id()::text::bigint"), wire.OIDText, wire.OIDBytea)
	dropTableThere = wire.NewStatement("drop_any", 0, dropSQL("0"), wire.OIDText, wire.OIDBytea)
	listTables     = wire.NewStatement("tables", 2, "SELECT name, created FROM tr_tables WHERE account = $1 AND folded >= $2 ORDER BY folded LIMIT $3",
		wire.OIDText, wire.OIDBytea, wire.OIDInt8)
	tableMeta    = wire.NewStatement("meta", 1, "SELECT meta FROM tr_tables WHERE account = $1 AND folded = $2", wire.OIDText, wire.OIDBytea)
	setTableMeta = wire.NewStatement("set_meta", 0, "UPDATE tr_tables SET meta = $3 WHERE account = $1 AND folded = $2",
		wire.OIDText, wire.OIDBytea, wire.OIDBytea)
	accountMeta    = wire.NewStatement("account_meta", 1, "SELECT meta FROM tr_accounts WHERE account = $1", wire.OIDText)
	setAccountMeta = wire.NewStatement("set_account_meta", 0, `INSERT INTO tr_accounts (account, meta) VALUES ($1, $2)
		ON CONFLICT (account) DO UPDATE SET meta = excluded.meta`, wire.OIDText, wire.OIDBytea)
)

// dropSQL drops a table: its row moves to tr_dead, with the number of the transaction. A write
// that read the id before may add entities until it ends, so the sweeper waits for all transactions that are not newer than xid.
func dropSQL(xid string) string {
	return `WITH d AS (DELETE FROM tr_tables WHERE account = $1 AND folded = $2 RETURNING id)
		INSERT INTO tr_dead (id, xid, dropped) SELECT d.id, ` + xid + `, ` + clockSQL + ` FROM d`
}

// register adds the account to tr_accounts, if it is new.
func (s *Store) register(ctx context.Context, c *wire.Conn) error {
	c.Queue(registerAccount, s.account)
	_, err := c.RoundTrip(ctx, nil)
	return err
}

// change executes one statement that writes. It returns none if the statement changed no
// row.
func (s *Store) change(ctx context.Context, none error, st *wire.Statement, args ...[]byte) error {
	return s.db.transact(ctx, func(c *wire.Conn) error {
		c.Queue(st, args...)
		rows, err := c.Commit(nil)
		if err == nil && rows[0] == 0 {
			// Nothing was written, so the commit did not wait for a standby: the refusal is
			// of the primary only if it still is one.
			if err = s.db.heart.check(c); err == nil {
				err = none
			}
		}
		return err
	})
}

// beginTable is begin for a call with the name of a table, which it returns folded.
func (s *Store) beginTable(ctx context.Context, table string) (folded []byte, err error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	if err := edm.CheckTableName(table); err != nil {
		s.calls.Done()
		return nil, err
	}
	return []byte(edm.FoldTableName(table)), nil
}

// CreateTable implements store.Store.
func (s *Store) CreateTable(ctx context.Context, table string) error {
	folded, err := s.beginTable(ctx, table)
	if err != nil {
		return err
	}
	defer s.calls.Done()
	return s.change(ctx, store.ErrTableExists, createTable, s.account, folded, []byte(table))
}

// DeleteTable implements store.Store. The sweeper removes the entities later.
func (s *Store) DeleteTable(ctx context.Context, table string) error {
	folded, err := s.beginTable(ctx, table)
	if err != nil {
		return err
	}
	defer s.calls.Done()
	st := dropTable
	if s.db.kind != wire.PostgreSQL {
		st = dropTableThere
	}
	return s.change(ctx, store.ErrTableNotFound, st, s.account, folded)
}

// Tables implements store.Store.
func (s *Store) Tables(ctx context.Context, from string, limit int) ([]store.TableInfo, error) {
	most := int64(limit)
	if limit <= 0 {
		most = math.MaxInt64
	}
	var list []store.TableInfo
	err := s.read(ctx, func(c *wire.Conn) error {
		list = nil
		c.Queue(listTables, s.account, []byte(edm.FoldTableName(from)), wire.Int8Arg(most))
		_, err := c.RoundTrip(ctx, func(_ int, values [][]byte) error {
			created, err := wire.Int8Of(values[1])
			list = append(list, store.TableInfo{Name: string(values[0]), Created: edm.Ticks(created)})
			return err
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// metaOf returns the metadata that a statement selects, or none if it selects no row.
func (s *Store) metaOf(ctx context.Context, none error, st *wire.Statement, args ...[]byte) (meta []byte, err error) {
	err = s.db.read(ctx, func(c *wire.Conn) error {
		found := none
		c.Queue(st, args...)
		_, err := c.RoundTrip(ctx, func(_ int, values [][]byte) error {
			meta, found = append([]byte(nil), values[0]...), nil
			return nil
		})
		if err == nil {
			err = found
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return meta, nil
}

// TableMeta implements store.Store.
func (s *Store) TableMeta(ctx context.Context, table string) ([]byte, error) {
	folded, err := s.beginTable(ctx, table)
	if err != nil {
		return nil, err
	}
	defer s.calls.Done()
	return s.metaOf(ctx, store.ErrTableNotFound, tableMeta, s.account, folded)
}

// SetTableMeta implements store.Store.
func (s *Store) SetTableMeta(ctx context.Context, table string, meta []byte) error {
	folded, err := s.beginTable(ctx, table)
	if err != nil {
		return err
	}
	defer s.calls.Done()
	if err := store.CheckMeta(table, len(meta)); err != nil {
		return err
	}
	return s.change(ctx, store.ErrTableNotFound, setTableMeta, s.account, folded, notNull(meta))
}

// AccountMeta implements store.Store.
func (s *Store) AccountMeta(ctx context.Context) ([]byte, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.calls.Done()
	return s.metaOf(ctx, nil, accountMeta, s.account)
}

// SetAccountMeta implements store.Store.
func (s *Store) SetAccountMeta(ctx context.Context, meta []byte) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	if err := store.CheckMeta("", len(meta)); err != nil {
		return err
	}
	return s.change(ctx, nil, setAccountMeta, s.account, notNull(meta))
}

// notNull returns b as a parameter that is not null.
func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
