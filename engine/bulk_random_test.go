package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// TestLoadStops runs two Loads at once, each of several installs of several files, until at a
// random operation one fails, their ctx ends, or the database is closed. The table then has as many
// entities as were reported, and no file is open.
func TestLoadStops(t *testing.T) {
	failed := 0
	for seed := range uint64(200 / stride(10)) {
		r := rand.New(rand.NewPCG(seed, 9))
		disk := vfs.NewMem()
		handles := newCounting(disk)
		injected := errorfs.Wrap(handles, nil)
		o := small(injected)
		o.NoSync = r.IntN(2) == 0
		o.Testing.LoadBytes = int64(1000 + r.IntN(200_000))
		db := mustCreate(t, o)
		ctx, cancel := context.WithCancel(t.Context())
		var closing sync.WaitGroup
		stops := []func() *errorfs.Fault{
			func() *errorfs.Fault { return &errorfs.Fault{Err: syscall.ENOSPC} },
			func() *errorfs.Fault { return &errorfs.Fault{Err: syscall.EIO} },
			func() *errorfs.Fault { cancel(); return nil },
			func() *errorfs.Fault { closing.Go(func() { _ = closeAtOnce(db) }); return nil },
		}
		at, stop := 1+r.IntN(200), stops[r.IntN(len(stops))]
		var mu sync.Mutex
		n := 0
		injected.SetRule(func(vfs.Op) *errorfs.Fault {
			mu.Lock()
			defer mu.Unlock()
			if n++; n == at {
				return stop()
			}
			return nil
		})
		var loads sync.WaitGroup
		var results [2]engine.LoadResult
		var errs [2]error
		for w := range results {
			list := make([]edm.Entity, 1+r.IntN(3000))
			for i := range list {
				list[i] = entity(fmt.Sprint("p", w), fmt.Sprintf("%06d", i), int64(i), 100)
			}
			if r.IntN(2) == 0 {
				r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			}
			loads.Go(func() { results[w], errs[w] = db.Load(ctx, table, sequence(list), engine.LoadOptions{}) })
		}
		loads.Wait()
		injected.SetRule(nil)
		mu.Lock()
		n = at // background work that asks the rule still stops nothing
		mu.Unlock()
		closing.Wait()
		_ = closeAtOnce(db)
		cancel()
		if left := handles.left(); len(left) > 0 {
			t.Errorf("seed %d: %v are open; %v", seed, left, errs)
		}
		o.FS = disk
		db = mustOpen(t, "db", o)
		counts := map[string]int64{}
		for e, err := range store.Entities(db.Query(t.Context(), table, store.Query{})) {
			check(t, "Query", err)
			counts[e.Key.Partition]++
		}
		for w, err := range errs {
			if err != nil {
				failed++
			}
			got, want := counts[fmt.Sprint("p", w)], results[w].Entities
			if got != want && (!errors.Is(err, store.ErrOutcomeUnknown) || got < want) {
				t.Errorf("seed %d: load %d has %d entities, %d are reported: %v", seed, w, got, want, err)
			}
		}
		check(t, "Close", db.Close())
	}
	if failed == 0 {
		t.Error("no Load failed")
	}
	t.Logf("%d Loads failed", failed)
}
