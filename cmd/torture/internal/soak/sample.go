package soak

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Sample has the sizes of a database at one time. The live ones are those of a fresh copy of
// the entities that tables have, as PostgreSQL fills pages of a table and of a new index.
type Sample struct {
	Elapsed       time.Duration
	Ops           int64 // so far
	Unknown       uint64
	LiveRows      int64
	DeadRows      int64 // an estimate of PostgreSQL, and the rows of dropped tables
	LiveTable     int64 // bytes
	Table         int64
	LiveIndex     int64
	Index         int64
	DroppedTables int64 // that are not swept
}

// Ratios relates all, live and dead, to what is live.
type Ratios struct{ Rows, Table, Index float64 }

// Ratios returns the ratios of s.
func (s Sample) Ratios() Ratios {
	of := func(all, live int64) float64 { return float64(all) / float64(max(live, 1)) }
	return Ratios{of(s.LiveRows+s.DeadRows, s.LiveRows), of(s.Table, s.LiveTable), of(s.Index, s.LiveIndex)}
}

func (r Ratios) max(o Ratios) Ratios {
	return Ratios{max(r.Rows, o.Rows), max(r.Table, o.Table), max(r.Index, o.Index)}
}

// Worst returns the greatest ratio.
func (r Ratios) Worst() float64 { return max(r.Rows, r.Table, r.Index) }

// meter measures a database over a connection of its own.
type meter struct{ c *pgconn.PgConn }

func connect(ctx context.Context, url string) (*meter, error) {
	c, err := pgconn.Connect(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("connect to measure: %w", err)
	}
	return &meter{c}, nil
}

func (m *meter) close() { _ = m.c.Close(context.Background()) }

// A fresh page of 8,192 bytes has these bytes of rows and of index tuples: the fillfactor of
// the table is 80 %, that of an index 90 %.
const (
	pageBytes  = 8192
	tableBytes = 80 * (pageBytes - 24) / 100
	indexBytes = 90 * (pageBytes - 40) / 100
)

// sizes reads all live entities. A row has the size of its columns with a header of 24
// bytes and a pointer of 4; an index tuple has a header of 8, the columns and a pointer.
const sizes = `SELECT count(l.id), coalesce(sum((pg_column_size(e) + 7) / 8 * 8 + 4) FILTER (WHERE l.id IS NOT NULL), 0)::bigint,
	coalesce(sum((8 + 8 + 1 + length(e.p) + 1 + length(e.r) + 7) / 8 * 8 + 4) FILTER (WHERE l.id IS NOT NULL), 0)::bigint,
	count(*) FILTER (WHERE l.id IS NULL) + (SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'tr_entities'),
	pg_relation_size('tr_entities'), pg_indexes_size('tr_entities'), (SELECT count(*) FROM tr_dead)
	FROM tr_entities AS e LEFT JOIN tr_tables AS l ON l.id = e.tid`

func (m *meter) sample(ctx context.Context) (Sample, error) {
	var s Sample
	r := m.c.ExecParams(ctx, sizes, nil, nil, nil, nil).Read()
	if r.Err != nil {
		return s, fmt.Errorf("measure: %w", r.Err)
	}
	for i, v := range []*int64{&s.LiveRows, &s.LiveTable, &s.LiveIndex, &s.DeadRows, &s.Table, &s.Index, &s.DroppedTables} {
		n, err := strconv.ParseInt(string(r.Rows[0][i]), 10, 64)
		if err != nil {
			return s, fmt.Errorf("measure: %w", err)
		}
		*v = n
	}
	s.LiveTable = s.LiveTable * pageBytes / tableBytes
	s.LiveIndex = s.LiveIndex * pageBytes / indexBytes
	return s, nil
}
