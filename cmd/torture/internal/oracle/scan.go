package oracle

import (
	"context"
	"fmt"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// Reader is the part of a database that Scan reads.
type Reader interface {
	Tables(ctx context.Context, from string, limit int) ([]store.TableInfo, error)
	View(ctx context.Context, table string, key edm.Key, read func(edm.Row) error) error
	Query(ctx context.Context, table string, q store.Query) store.Cursor
	TableMeta(ctx context.Context, table string) ([]byte, error)
	AccountMeta(ctx context.Context) ([]byte, error)
}

// Scanned is the result of Scan.
type Scanned struct {
	Sum     uint64
	Rows    int
	MaxTick edm.Ticks
}

// Scan reads the whole database: each table forward, backward and by a get of each key. It
// returns an error if the three differ or are out of order.
func Scan(ctx context.Context, r Reader) (Scanned, error) {
	var out Scanned
	tables, err := r.Tables(ctx, "", 0)
	if err != nil {
		return out, fmt.Errorf("list tables: %w", err)
	}
	s := scanner{r: r}
	for i, info := range tables {
		if i > 0 && CompareInfo(tables[i-1], info) >= 0 {
			return out, fmt.Errorf("table %q follows %q", info.Name, tables[i-1].Name)
		}
		if err := s.table(ctx, info, &out); err != nil {
			return out, fmt.Errorf("table %s: %w", info.Name, err)
		}
	}
	meta, err := r.AccountMeta(ctx)
	if err != nil {
		return out, fmt.Errorf("metadata of the account: %w", err)
	}
	out.Sum += sumMeta("", meta)
	return out, nil
}

type scanner struct {
	r    Reader
	sums Summer
	keys []edm.Key
}

func (s *scanner) table(ctx context.Context, info store.TableInfo, out *Scanned) error {
	folded := edm.FoldTableName(info.Name)
	meta, err := s.r.TableMeta(ctx, info.Name)
	if err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	out.Sum += sumTable(info) + sumMeta(folded, meta)
	s.keys = s.keys[:0]
	forward, most, err := s.query(ctx, folded, false)
	if err != nil {
		return fmt.Errorf("query: %w", err)
	}
	keys := len(s.keys)
	s.keys = s.keys[:0]
	backward, _, err := s.query(ctx, folded, true)
	if err != nil {
		return fmt.Errorf("reverse query: %w", err)
	}
	if forward != backward || len(s.keys) != keys {
		return fmt.Errorf("%d rows backward differ from %d rows forward", len(s.keys), keys)
	}
	var gets uint64
	for _, k := range s.keys {
		err := s.r.View(ctx, folded, k, func(row edm.Row) error {
			gets += s.sums.Row(folded, row)
			return nil
		})
		if err != nil {
			return fmt.Errorf("get %.60q: %w", k, err)
		}
	}
	if gets != forward {
		return fmt.Errorf("%d gets differ from the query", len(s.keys))
	}
	out.Sum += forward
	out.Rows += keys
	out.MaxTick = max(out.MaxTick, most)
	return nil
}

func (s *scanner) query(ctx context.Context, table string, reverse bool) (sum uint64, most edm.Ticks, err error) {
	c := s.r.Query(ctx, table, store.Query{Reverse: reverse})
	defer func() {
		if cerr := c.Close(); err == nil {
			err = cerr
		}
	}()
	for c.Next() {
		row := c.Row()
		k := row.Key()
		if n := len(s.keys); n > 0 && (k.Compare(s.keys[n-1]) <= 0) != reverse {
			return 0, 0, fmt.Errorf("row %.60q follows %.60q", k, s.keys[n-1])
		}
		s.keys = append(s.keys, k)
		sum += s.sums.Row(table, row)
		most = max(most, row.Timestamp())
	}
	return sum, most, c.Err()
}

// Load reads the whole database into a State, for Diff.
func Load(ctx context.Context, r Reader) (*State, error) {
	s := NewState()
	tables, err := r.Tables(ctx, "", 0)
	if err != nil {
		return nil, fmt.Errorf("list tables: %w", err)
	}
	for _, info := range tables {
		folded := edm.FoldTableName(info.Name)
		s.Apply(Effect{Kind: Create, Table: folded, Info: info})
		meta, err := r.TableMeta(ctx, folded)
		if err != nil {
			return nil, fmt.Errorf("metadata of %s: %w", folded, err)
		}
		s.Apply(Effect{Kind: SetMeta, Table: folded, Meta: meta})
		for e, err := range store.Entities(r.Query(ctx, folded, store.Query{})) {
			if err != nil {
				return nil, fmt.Errorf("query %s: %w", folded, err)
			}
			s.Apply(Effect{Kind: Put, Table: folded, Entity: e})
		}
	}
	meta, err := r.AccountMeta(ctx)
	if err != nil {
		return nil, fmt.Errorf("metadata of the account: %w", err)
	}
	s.Apply(Effect{Kind: SetMeta, Meta: meta})
	return s, nil
}
