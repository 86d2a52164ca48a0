package workload

import (
	"context"
	"fmt"
	"slices"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/oracle"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
)

// load loads entities of all partitions in one install, which is a commit. Keys repeat, and
// the last entity of a key counts.
func (s *Session) load(ctx context.Context) error {
	table := s.someTable()
	var list []edm.Entity
	last := map[edm.Key]int{}
	for i := range 1 + s.rng.IntN(40) {
		key := edm.Key{Partition: partitions[s.rng.IntN(len(partitions))], Row: rows[s.rng.IntN(len(rows))]}
		if s.rng.IntN(3) == 0 {
			key.Row = fmt.Sprintf("n%02d", s.rng.IntN(100))
		}
		list = append(list, edm.Entity{Key: key, Properties: s.properties()})
		last[key] = i
	}
	if s.rng.IntN(2) == 0 {
		clear(last)
		slices.SortStableFunc(list, func(a, b edm.Entity) int { return a.Key.Compare(b.Key) })
		for i := range list {
			last[list[i].Key] = i
		}
	}
	what := fmt.Sprintf("load of %d entities into %s", len(list), table)
	s.begin(what)
	p := Pending{What: what}
	for i := range list {
		if last[list[i].Key] != i {
			continue
		}
		op := store.InsertOrReplace(list[i])
		props, _, err := s.State.Table(table).Resolve(&op)
		if err != nil {
			return err
		}
		p.Effects = append(p.Effects, oracle.Effect{Kind: oracle.Put, Table: table, Entity: edm.Entity{Key: op.Entity.Key, Properties: props}})
	}
	result, err := s.DB.Load(ctx, table, func(yield func(edm.Entity, error) bool) {
		for _, e := range list {
			if !yield(e, nil) {
				return
			}
		}
	}, engine.LoadOptions{})
	if err != nil {
		if result.Installs > 0 {
			return fmt.Errorf("%s: failed after its install: %w", what, err)
		}
		return s.failed(what, p, err)
	}
	if result.Installs != 1 || result.Entities != int64(len(list)) || result.Timestamp <= s.Head.MaxTick {
		return fmt.Errorf("%s: result %+v after Timestamp %d", what, result, s.Head.MaxTick)
	}
	for i := range p.Effects {
		p.Effects[i].Entity.Timestamp = result.Timestamp
	}
	if err := s.commit(what, p.Effects); err != nil {
		return err
	}
	s.floor = s.Head // with NoSync an install is durable, and everything before it
	return nil
}
