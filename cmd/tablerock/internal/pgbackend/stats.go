package pgbackend

import (
	"context"
	"fmt"
	"time"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/output"
	"github.com/tablerock-db/tablerock/store"
)

// sampleTime limits the time to wait for the sizes of a database that was just opened.
const sampleTime = 5 * time.Second

// Figures returns the statistics of a store of Open: the number of tables of its account, and
// figures of the database, which are zero for a server that does not show them.
func Figures(ctx context.Context, s store.Store) (output.Record, error) {
	tables, err := s.Tables(ctx, "", 0)
	if err != nil {
		return nil, err
	}
	db := s.(*single).db
	deadline := time.After(sampleTime)
	tick := time.NewTicker(sampleTime / 200)
	defer tick.Stop()
	for db.Stats().Sample.Time.IsZero() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-deadline:
			return nil, fmt.Errorf("%w: the sizes of the database are not known after %s: a table may be locked", store.ErrUnavailable, sampleTime)
		}
	}
	stats := db.Stats()
	return output.Record{
		{"tables", len(tables)},
		{"database_entities", stats.Sample.LiveRows},
		{"database_dead_rows", stats.Sample.DeadRows},
		{"database_table_bytes", stats.Sample.TableBytes},
		{"database_index_bytes", stats.Sample.IndexBytes},
		{"database_dropped_tables", stats.Sample.DroppedTables},
	}, nil
}
