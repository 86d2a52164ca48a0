package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// needKill skips the test where the backend has no Kill.
func (t *tester) needKill() {
	if t.backend.Kill == nil {
		t.Skip("this backend has no Kill")
	}
}

func testKill(t *tester) {
	t.needKill()
	s := t.openPeople()
	t.mixed(s)
	t.survives(s, "kill", func(s store.Store) store.Store { return t.closing(t.backend.Kill(t, s)) })
}

// killed is what a writer knows when its store was killed. It wrote the batches 0, 1, 2 and
// so on, in this order, of which each has two new entities and the entity that counts them.
type killed struct {
	acknowledged int   // batches
	err          error // of the batch after them, nil if there is none
	last         edm.Ticks
}

// testKillWhileBusy kills the backend during writes. What was acknowledged is stored, what
// was refused is not, and what is unknown is stored as a whole or not at all.
func testKillWhileBusy(t *tester) {
	t.needKill()
	s := t.openPeople()
	for round := range 2 {
		var writers [racers]killed
		var all sync.WaitGroup
		var stop atomic.Bool
		begun := make(chan struct{}, racers)
		for w := range writers {
			all.Go(func() { t.writeUntilKilled(s, fmt.Sprintf("%d-%d", round, w), &writers[w], &stop, begun) })
		}
		for range racers {
			t.wait("writes before Kill", first(begun))
		}
		next := t.closing(t.backend.Kill(t, s))
		stop.Store(true)
		t.within("calls that run during Kill", all.Wait)
		s = next
		rows := map[edm.Key]edm.Entity{}
		for _, e := range t.page(s, store.Query{}).Rows {
			rows[e.Key] = e
		}
		for w := range writers {
			t.wantKilled(s, fmt.Sprintf("%d-%d", round, w), &writers[w], rows)
		}
	}
}

// first returns a channel that is closed when c has a value.
func first(c <-chan struct{}) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-c
	}()
	return done
}

// counterRow is the RowKey of an entity that counts batches.
const counterRow = "count"

// writeUntilKilled writes batches to a partition until one fails or stop is set. It sends
// to begun after some of them, or at its end.
func (t *tester) writeUntilKilled(s store.Store, partition string, k *killed, stop *atomic.Bool, begun chan<- struct{}) {
	const some = 5
	for n := 0; !stop.Load(); n++ {
		r, err := s.Apply(t.ctx, people, store.Insert(number(partition, fmt.Sprintf("a%d", n), n)),
			store.Insert(number(partition, fmt.Sprintf("b%d", n), n)), store.InsertOrReplace(number(partition, counterRow, n)))
		if err != nil {
			k.err = err
			break
		}
		k.acknowledged, k.last = n+1, r[2].Timestamp
		if n == some {
			begun <- struct{}{}
		}
	}
	if k.acknowledged <= some {
		t.Errorf("writer %s: %v before Kill", partition, k.err)
		begun <- struct{}{}
	}
}

// wantKilled compares what is stored with what a writer knows.
func (t *tester) wantKilled(s store.Store, partition string, k *killed, rows map[edm.Key]edm.Entity) {
	t.Helper()
	stored := 0
	for n := 0; ; n++ {
		_, a := rows[key(partition, fmt.Sprintf("a%d", n))]
		_, b := rows[key(partition, fmt.Sprintf("b%d", n))]
		if a != b {
			t.Errorf("writer %s: a part of batch %d is stored", partition, n)
		}
		if !a && !b {
			break
		}
		stored++
	}
	most := k.acknowledged
	switch {
	case k.err == nil, errors.Is(k.err, store.ErrUnavailable), errors.Is(k.err, store.ErrReadOnly), errors.Is(k.err, store.ErrClosed):
	case errors.Is(k.err, store.ErrOutcomeUnknown):
		most++
	default:
		t.Errorf("writer %s: got %v from a killed backend", partition, k.err)
	}
	if stored < k.acknowledged || stored > most {
		t.Errorf("writer %s: %d batches are stored, %d were acknowledged, and the next one returned %v", partition, stored, k.acknowledged, k.err)
	}
	counter := rows[key(partition, counterRow)]
	if int(numberOf(counter)) != stored-1 {
		t.Errorf("writer %s: %d batches are stored, and their counter is %s", partition, stored, show(counter))
	}
	if e := t.insertAgain(s, number(partition, counterRow, -1)); e.Timestamp <= max(k.last, counter.Timestamp) {
		t.Errorf("writer %s: Timestamp %d after %d before Kill", partition, e.Timestamp, max(k.last, counter.Timestamp))
	}
}
