package engine_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// tick is a clock that advances by one step with each Now.
type tick struct{ n atomic.Int64 }

func (c *tick) Now() time.Time {
	return time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(c.n.Add(1)) * time.Millisecond)
}

func (c *tick) AfterFunc(time.Duration, func()) func() bool { return func() bool { return true } }

// source derives random bytes from a seed.
type source struct{ *rand.Rand }

func (s source) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(s.Uint32())
	}
	return len(p), nil
}

// TestDeterminism runs one seed twice. The disks must be equal, byte for byte.
func TestDeterminism(t *testing.T) {
	race.SkipOneGoroutine(t)
	run := func(seed uint64) string {
		r := rand.New(rand.NewPCG(seed, 0))
		disk := vfs.NewMem()
		o := manual(disk)
		o.Testing.Clock, o.Testing.Random = new(tick), source{rand.New(rand.NewPCG(seed, 1))}
		db := mustCreate(t, o)
		for i := range 1500 {
			p := fmt.Sprint("p", r.IntN(5))
			row := fmt.Sprint(r.IntN(50))
			var err error
			switch r.IntN(40) {
			case 0:
				err = db.Flush(t.Context())
			case 1:
				err = db.Compact(t.Context())
			case 2:
				if err = db.DeleteTable(t.Context(), table); err == nil {
					err = db.CreateTable(t.Context(), table)
				}
			case 3:
				closeDB := (*engine.DB).Close
				if i%2 == 0 {
					closeDB = closeAtOnce
				}
				check(t, "Close", closeDB(db))
				db = mustOpen(t, "db", o)
			case 4, 5, 6, 7:
				_, err = db.Step(t.Context())
			case 8, 9:
				_, err = db.Apply(t.Context(), table, store.Delete(edm.Key{Partition: p, Row: row}, store.Any))
			case 10:
				err = db.Checkpoint(t.Context(), fmt.Sprint("copy", i))
			default:
				e := entity(p, row, int64(i), r.IntN(4000))
				for k := range r.IntN(4) {
					e.Properties = append(e.Properties, edm.Property{Name: fmt.Sprintf("P%d_%d", r.IntN(3), k), Value: edm.Int32(int32(k))})
				}
				_, err = db.Apply(t.Context(), table, store.InsertOrMerge(e))
			}
			if err != nil && !errors.Is(err, store.ErrEntityNotFound) {
				t.Fatalf("seed %d, step %d: %v", seed, i, err)
			}
		}
		check(t, "Close", db.Close())
		return treeOf(t, disk, "/")
	}
	const seed = 1
	first, second := run(seed), run(seed)
	if first != second {
		t.Errorf("seed %d left\n%s and then\n%s", seed, first, second)
	}
	if other := run(seed + 1); other == first {
		t.Errorf("seeds %d and %d left the same disk", seed, seed+1)
	}
}
