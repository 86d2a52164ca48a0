package workload

import (
	"context"
	"fmt"
	"runtime"

	"github.com/tablerock-db/tablerock/edm"
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

// group commits several batches of different partitions concurrently: the sync of the first
// one blocks until the others are in the log after it, in their order.
func (s *Session) group(ctx context.Context) error {
	if s.o.NoSync || s.Refused {
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
