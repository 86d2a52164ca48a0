//go:build linux

package failover

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/cluster"
	"github.com/tablerock-db/tablerock/cmd/torture/internal/history"
	"github.com/tablerock-db/tablerock/cmd/torture/internal/rest"
)

const (
	counterClients = 8
	pairClients    = 4
	keyClients     = 4
	readers        = 6
	pageReaders    = 3
	// ownClient is the number of the client that prepares a trial and reads at its end.
	ownClient = 1000
)

// load is a set of clients that write and read until they are stopped.
type load struct {
	log     *history.Log
	names   names
	servers []*rest.Client
	seed    uint64
	writers int
	ctx     context.Context
	cancel  context.CancelFunc
	wg      sync.WaitGroup

	acked   atomic.Int64 // batches
	lastAck atomic.Int64 // time of the last acknowledged batch
	reads   atomic.Int64 // reads that were answered
	enough  int64        // batches after which writers pause, so that the cluster recovers sooner
	values  atomic.Int64 // the last value of a key

	mu      sync.Mutex
	strange map[string]int // responses that no request may have, guarded by mu
	gap     time.Duration  // the longest time without an answered read, guarded by mu
	read    int64          // time of the last answered read, guarded by mu
}

// names are the tables of a trial.
type names struct{ batches, keys, dropped string }

func namesOf(trial uint64) names {
	return names{fmt.Sprintf("Batches%d", trial), fmt.Sprintf("Keys%d", trial), fmt.Sprintf("Dropped%d", trial)}
}

// newLoad returns a load whose clients have not started.
func newLoad(ctx context.Context, servers []*rest.Client, trial, seed uint64, writers int, enough int64) *load {
	l := &load{
		log: history.NewLog(), names: namesOf(trial), servers: servers, seed: seed, writers: writers, enough: enough,
		strange: map[string]int{}, read: cluster.Now(),
	}
	l.ctx, l.cancel = context.WithCancel(ctx)
	return l
}

// start starts the clients. The tables exist.
func (l *load) start(drops bool) {
	number := 0
	add := func(n int, steps func(c *client, i int) func()) {
		for i := range n {
			c := l.client(number)
			number++
			step := steps(c, i)
			l.wg.Go(func() {
				for l.ctx.Err() == nil {
					step()
				}
			})
		}
	}
	add(l.writers, newWriter)
	add(counterClients, newCounter)
	add(pairClients, newPair)
	add(keyClients, newKeys)
	add(readers, newReader)
	add(pageReaders, newPages)
	if drops {
		add(keyClients, newDroppedKeys)
		add(1, newDropper)
	}
}

func (l *load) client(number int) *client {
	rng := rand.New(rand.NewPCG(l.seed, uint64(number)))
	return &client{number: number, l: l, rng: rng, server: number % len(l.servers), servers: l.servers}
}

// stop ends the clients after their present requests.
func (l *load) stop() {
	l.cancel()
	l.wg.Wait()
}

// unique are the parts of a response that no other one has.
var unique = regexp.MustCompile(`\\nRequestId:.*`)

func (l *load) unexpected(server int, problem string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.strange[fmt.Sprintf("server %d: %s", server, unique.ReplaceAllString(problem, ""))]++
}

// answered counts a read that was answered.
func (l *load) answered() {
	l.reads.Add(1)
	now := cluster.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gap = max(l.gap, time.Duration(now-l.read))
	l.read = now
}

// value returns a number that no other write of the load has.
func (l *load) value() int64 { return l.values.Add(1) }
