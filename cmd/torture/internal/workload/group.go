package workload

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
)

// member is one writer of a group commit.
type member struct {
	table   string
	ops     []store.Op
	pending Pending
	results []store.Result
	err     error
	done    chan struct{}
}

// group commits several batches of different partitions, by one call of ApplyBatches or
// concurrently: then the sync of the first one blocks until the others are in the log after it,
// in their order.
func (s *Session) group(ctx context.Context) error {
	if s.Refused {
		return s.single(ctx)
	}
	if via, ok := s.via.(applier); ok && s.rng.IntN(2) == 0 {
		return s.together(ctx, via)
	}
	if s.o.NoSync {
		return s.single(ctx)
	}
	// Finish the background work, so that no writer does any of it.
	if err := s.maintain("background work before a group", func() error { return s.workUpTo(ctx, 100) }); err != nil {
		return err
	}
	s.end()
	members := s.members(2 + s.rng.IntN(5))
	s.begin(fmt.Sprintf("group of %d", len(members)))
	blocked, open := s.gate.shut()
	defer open()
	start := func(m *member) {
		go func() {
			defer close(m.done)
			if m.results, m.err = s.via.Apply(ctx, m.table, m.ops...); m.err == nil {
				s.epoch.acks.Add(1)
			}
		}()
	}
	start(members[0])
	select {
	case <-blocked:
	case <-members[0].done:
	}
	for _, m := range members[1:] {
		before := s.logBytes()
		start(m)
		for !m.isDone() && s.logBytes() == before {
			runtime.Gosched()
		}
	}
	open()
	for _, m := range members {
		<-m.done
	}
	return s.recordOutcomes(members)
}

// applier is a store that applies several batches in one call.
type applier interface {
	ApplyBatches(ctx context.Context, table string, batches [][]store.Op) ([][]store.Result, error)
}

// together commits batches by one call of ApplyBatches, each second one of them with an
// operation that depends on what is stored.
func (s *Session) together(ctx context.Context, via applier) error {
	members := s.members(1 + s.rng.IntN(12))
	table := members[0].table
	var batches [][]store.Op
	for i, m := range members {
		if m.table = table; s.rng.IntN(2) == 0 {
			m.ops[0].Kind = store.OpInsertOrMerge
		}
		m.pending, _ = s.expect(table, m.ops)
		m.pending.What = fmt.Sprintf("batch %d of a call, %d ops in %s", i, len(m.ops), table)
		batches = append(batches, m.ops)
	}
	s.begin(fmt.Sprintf("%d batches in a call", len(members)))
	results, err := via.ApplyBatches(ctx, table, batches)
	var failed engine.BatchErrors
	if err != nil && !errors.As(err, &failed) {
		return fmt.Errorf("ApplyBatches: %w is no engine.BatchErrors", err)
	}
	for i, m := range members {
		if failed != nil {
			m.err = failed[i]
		}
		if m.results = results[i]; m.err == nil {
			s.epoch.acks.Add(1)
		}
	}
	return s.recordOutcomes(members)
}

func (m *member) isDone() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

// logBytes returns the size of the log, which grows with every append.
func (s *Session) logBytes() int64 {
	stats, err := s.DB.Stats()
	if err != nil {
		return -1
	}
	return stats.WALBytes
}

// members returns batches of different partitions.
func (s *Session) members(n int) []*member {
	var out []*member
	for i := range n {
		table := s.someTable()
		var ops []store.Op
		for j := range 1 + s.rng.IntN(4) {
			key := edm.Key{Partition: fmt.Sprintf("g%d", i), Row: rows[j]}
			ops = append(ops, store.InsertOrReplace(edm.Entity{Key: key, Properties: s.properties()}))
		}
		p, _ := s.expect(table, ops)
		p.What = fmt.Sprintf("member %d of a group, %d ops in %s", i, len(ops), table)
		out = append(out, &member{table: table, ops: ops, pending: p, done: make(chan struct{})})
	}
	return out
}

// recordOutcomes records the results of the members in the order of the log.
func (s *Session) recordOutcomes(members []*member) error {
	for _, m := range members {
		var err error
		if m.err == nil {
			err = s.acknowledged(m.pending, m.ops, m.results)
		} else {
			err = s.failed(m.pending.What, m.pending, m.err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
